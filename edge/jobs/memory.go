package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"millrace/domain/artifact"
	"millrace/edge/simulator"
)

// stage is how far a job is.
type stage string

const (
	accepted stage = "accepted"
	begun    stage = "begun"
	done     stage = "done"
)

// record is what is remembered of one run.
type record struct {
	RunID string `json:"run_id"`
	Stage stage  `json:"stage"`
	// Job is kept until the job is done.
	Job *artifact.JobDocument `json:"job,omitempty"`
	// Reply is what is answered, again whenever the job comes again.
	Reply    *artifact.JobReply `json:"reply,omitempty"`
	Answered bool               `json:"answered,omitempty"`
}

// notebook is the content of the file.
type notebook struct {
	Adjustment simulator.Adjustment `json:"adjustment"`
	// Forgotten is the latest run that was forgotten; run ids sort by time.
	Forgotten string   `json:"forgotten,omitempty"`
	Records   []record `json:"records"`
}

// maxRecords is how many runs are remembered.
const maxRecords = 500

// Memory keeps the jobs of a factory, and what they changed, over restarts: one
// file that is replaced as a whole, so that a change and the word that it was made
// are kept together or not at all.
type Memory struct {
	path  string
	limit int

	mu   sync.Mutex
	book notebook
}

// OpenMemory reads the file at path, which need not exist. A job that was begun
// and not ended is over: nobody knows whether it was done, so it is not done
// again and its reply says so.
func OpenMemory(path string) (*Memory, error) {
	m := &Memory{path: path, limit: maxRecords}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the memory of jobs: %w", err)
	}
	if err := json.Unmarshal(content, &m.book); err != nil {
		return nil, fmt.Errorf("open the memory of jobs: %s: %w", path, err)
	}
	return m, nil
}

// Adjustment is what jobs changed.
func (m *Memory) Adjustment() simulator.Adjustment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.book.Adjustment
}

// errForgotten tells that a run is older than what is remembered: it may have
// been done.
var errForgotten = errors.New("the run is older than what is remembered")

// remember writes a new run down. A run that is known already is not new; when it
// was done, it is answered again.
func (m *Memory) remember(r record) (isNew bool, err error) {
	err = m.change(func(book *notebook) error {
		i, known := book.find(r.RunID)
		switch {
		case known:
			book.Records[i].Answered = false
			return nil
		case r.RunID <= book.Forgotten:
			return errForgotten
		}
		isNew = true
		book.Records = slices.Insert(book.Records, i, r)
		book.forget(m.limit)
		return nil
	})
	return isNew && err == nil, err
}

// next is the first run at a stage.
func (m *Memory) next(at stage) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.book.Records, func(r record) bool { return r.Stage == at })
	if i < 0 {
		return record{}, false
	}
	return m.book.Records[i], true
}

// begin writes down that a job is being done.
func (m *Memory) begin(runID string) error {
	return m.change(func(book *notebook) error { return book.set(runID, func(r *record) { r.Stage = begun }) })
}

// finish writes down how a job ended and, where it changed something, what is so
// from now on.
func (m *Memory) finish(reply artifact.JobReply, change *simulator.Adjustment) error {
	return m.change(func(book *notebook) error {
		if change != nil {
			book.Adjustment = *change
		}
		return book.set(reply.RunID, func(r *record) { r.Stage, r.Job, r.Reply, r.Answered = done, nil, &reply, false })
	})
}

// unanswered is the first reply that the broker has not confirmed.
func (m *Memory) unanswered() (artifact.JobReply, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.book.Records {
		if r.Stage == done && !r.Answered {
			return *r.Reply, true
		}
	}
	return artifact.JobReply{}, false
}

// answered writes down that the broker has a reply.
func (m *Memory) answered(runID string) error {
	return m.change(func(book *notebook) error { return book.set(runID, func(r *record) { r.Answered = true }) })
}

// change makes a change that is in the file, too, or not at all.
func (m *Memory) change(do func(*notebook) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.book
	next.Records = slices.Clone(m.book.Records)
	if err := do(&next); err != nil {
		return err
	}
	if err := m.write(next); err != nil {
		return fmt.Errorf("remember jobs: %w", err)
	}
	m.book = next
	return nil
}

// write replaces the file. A crash leaves the old or the new one.
func (m *Memory) write(book notebook) error {
	body, err := json.Marshal(book)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(m.path), "."+filepath.Base(m.path)+"-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(body, '\n'))
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), m.path); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

func (b *notebook) find(runID string) (int, bool) {
	return slices.BinarySearchFunc(b.Records, runID, func(r record, id string) int { return cmp.Compare(r.RunID, id) })
}

func (b *notebook) set(runID string, do func(*record)) error {
	i, known := b.find(runID)
	if !known {
		return fmt.Errorf("run %s: %w", runID, errForgotten)
	}
	do(&b.Records[i])
	return nil
}

// forget drops the oldest answered runs beyond the limit.
func (b *notebook) forget(limit int) {
	for i := 0; len(b.Records) > limit && i < len(b.Records); {
		if r := b.Records[i]; r.Stage == done && r.Answered {
			b.Forgotten = max(b.Forgotten, r.RunID)
			b.Records = slices.Delete(b.Records, i, i+1)
			continue
		}
		i++
	}
}
