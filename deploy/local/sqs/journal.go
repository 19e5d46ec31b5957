package sqs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
)

const (
	// journalFile is beside kumo's own files, which end in .json.
	journalFile = "inflight.jsonl"
	// compactFrom is the size from which the journal is rewritten with its live entries only.
	compactFrom = 8 << 20
	// maxHandles bounds the receipt handles known of one message. kumo forgets a handle when it
	// hands the message out again, so older ones delete nothing.
	maxHandles = 16
)

// journal knows the messages that were received and not deleted, which kumo keeps in memory only.
// It is a file of JSON lines that is only appended to: a kill leaves whole lines and at most a torn
// last one. Bodies stay in the file; memory has where they are. It is not synced: it outlives the
// process, not the machine.
type journal struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	limit   int64             // the size from which it is compacted
	entries map[string]*entry // by message id
	owners  map[string]string // message id by receipt handle
}

// entry is one message in flight and where in the file the line with its body is.
type entry struct {
	queue    string
	handles  []string
	at, size int64
}

// line is one record: a message that was received, with its body the first time; one that was sent
// again and has another id since; or ids of messages that are done with.
type line struct {
	ID         string          `json:"id,omitempty"`
	Was        string          `json:"was,omitempty"`
	Queue      string          `json:"queue,omitempty"`
	Handles    []string        `json:"handles,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
	Done       []string        `json:"done,omitempty"`
}

// openJournal reads the journal at path, or makes it.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal of messages in flight: %w", err)
	}
	j := &journal{path: path, file: file, limit: compactFrom, entries: map[string]*entry{}, owners: map[string]string{}}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// load reads all lines and cuts a torn last one off, so that the next is a line of its own.
func (j *journal) load() error {
	reader := bufio.NewReaderSize(j.file, 1<<16)
	unreadable := 0
	for {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read journal of messages in flight: %w", err)
		}
		var l line
		if json.Unmarshal(text, &l) != nil {
			unreadable++
		} else {
			j.apply(l, j.size, int64(len(text)))
		}
		j.size += int64(len(text))
	}
	if unreadable > 0 {
		slog.Warn("lines of the journal of messages in flight are unreadable", "lines", unreadable, "path", j.path)
	}
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("cut torn line off the journal of messages in flight: %w", err)
	}
	return nil
}

// apply brings the entries up to date with a line that is at a place in the file.
func (j *journal) apply(l line, at, size int64) {
	for _, id := range l.Done {
		j.forget(id)
	}
	if l.ID == "" {
		return
	}
	e := j.entries[l.ID]
	switch {
	case l.Was != "" && j.entries[l.Was] != nil:
		was := j.entries[l.Was]
		e = &entry{queue: was.queue, at: was.at, size: was.size}
		j.forget(l.Was)
	case l.Body != nil:
		handles := []string(nil)
		if e != nil {
			handles = e.handles
		}
		e = &entry{queue: l.Queue, handles: handles, at: at, size: size}
	case e == nil:
		return
	}
	if l.Queue != "" {
		e.queue = l.Queue
	}
	j.entries[l.ID] = e
	for _, handle := range l.Handles {
		j.own(l.ID, e, handle)
	}
}

func (j *journal) own(id string, e *entry, handle string) {
	e.handles = append(e.handles, handle)
	j.owners[handle] = id
	if len(e.handles) > maxHandles {
		delete(j.owners, e.handles[0])
		e.handles = slices.Delete(e.handles, 0, 1)
	}
}

func (j *journal) forget(id string) {
	if e := j.entries[id]; e != nil {
		for _, handle := range e.handles {
			delete(j.owners, handle)
		}
		delete(j.entries, id)
	}
}

// received notes messages that are about to be handed out. The body of one that is known already
// isn't written again.
func (j *journal) received(messages []line) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, m := range messages {
		if j.entries[m.ID] != nil {
			messages[i].Body, messages[i].Attributes = nil, nil
		}
	}
	return j.write(messages...)
}

// deleted notes that messages were deleted by these receipt handles.
func (j *journal) deleted(handles ...string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for _, handle := range handles {
		if id, known := j.owners[handle]; known {
			ids = append(ids, id)
		}
	}
	return j.done(ids)
}

// dropped notes that messages are gone, or known to be safe without the journal.
func (j *journal) dropped(ids []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done(ids)
}

func (j *journal) done(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return j.write(line{Done: ids})
}

// resent notes that a message is in its queue again, under another id.
func (j *journal) resent(was, id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(line{ID: id, Was: was})
}

// ids returns the messages in flight, the longest known first: of one queue, or of all when queue
// is empty.
func (j *journal) ids(queue string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sorted(queue)
}

func (j *journal) sorted(queue string) []string {
	var ids []string
	for id, e := range j.entries {
		if queue == "" || e.queue == queue {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(j.entries[a].at, j.entries[b].at) })
	return ids
}

// message reads a message in flight back; false when there is none with that id.
func (j *journal) message(id string) (line, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[id]
	if e == nil {
		return line{}, false, nil
	}
	l, err := j.read(id, e)
	return l, err == nil, err
}

func (j *journal) read(id string, e *entry) (line, error) {
	text := make([]byte, e.size)
	if _, err := j.file.ReadAt(text, e.at); err != nil {
		return line{}, fmt.Errorf("read message %s in flight: %w", id, err)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return line{}, fmt.Errorf("read message %s in flight: %w", id, err)
	}
	l.ID, l.Queue, l.Handles, l.Was = id, e.queue, e.handles, ""
	return l, nil
}

// write appends lines in one call, brings the entries up to date, and compacts a journal that has
// grown. What a failing call wrote is cut off again.
func (j *journal) write(lines ...line) error {
	var buffer bytes.Buffer
	ends := make([]int64, len(lines))
	encoder := newEncoder(&buffer)
	for i, l := range lines {
		if err := encoder.Encode(l); err != nil {
			return fmt.Errorf("encode message in flight: %w", err)
		}
		ends[i] = int64(buffer.Len())
	}
	if _, err := j.file.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("note messages in flight: %w", errors.Join(err, j.file.Truncate(j.size)))
	}
	begin := int64(0)
	for i, l := range lines {
		j.apply(l, j.size+begin, ends[i]-begin)
		begin = ends[i]
	}
	j.size += begin
	if j.size <= j.limit {
		return nil
	}
	if err := j.compact(); err != nil { // what is written counts; it may work later
		j.limit = 2 * j.size
		slog.Warn("the journal of messages in flight grows", "size", j.size, "error", err)
	}
	return nil
}

// newEncoder leaves text as it is: escapes for web pages would make bodies longer.
func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// close ends the use of the journal.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("close journal of messages in flight: %w", err)
	}
	return nil
}
