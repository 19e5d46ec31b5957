package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Entry is a message file: its name, and when it was last modified. Entries are
// ordered by that time, then by name, which is the order of publishing.
type Entry struct {
	Name     string
	Modified time.Time
}

// Compare is negative when e is published before other.
func (e Entry) Compare(other Entry) int {
	return cmp.Or(e.Modified.Compare(other.Modified), cmp.Compare(e.Name, other.Name))
}

// readChunk is how many directory entries are read at a time.
const readChunk = 1024

// Scan returns the first entries after the given one in the order of
// publishing, at most limit; the zero Entry is before all. It remembers no more
// than limit entries however many files there are, so that a backlog of any
// size is walked in bounded memory.
//
// Entries are regular files directly in the root whose names end in .json and
// do not start with a dot.
func (d *Dir) Scan(after Entry, limit int) ([]Entry, error) {
	dir, err := os.Open(d.root)
	if err != nil {
		return nil, fmt.Errorf("scan outbox: %w", err)
	}
	defer func() { _ = dir.Close() }()
	first := firstEntries{limit: limit}
	for {
		chunk, err := dir.ReadDir(readChunk)
		for _, file := range chunk {
			if entry, ok := entryOf(file); ok && after.Compare(entry) < 0 {
				first.add(entry)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return first.sorted(), nil
		case err != nil:
			return nil, fmt.Errorf("scan outbox: %w", err)
		}
	}
}

func entryOf(file fs.DirEntry) (Entry, bool) {
	name := file.Name()
	if !file.Type().IsRegular() || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, suffix) {
		return Entry{}, false
	}
	info, err := file.Info()
	if err != nil {
		// It was deleted since the directory was read.
		return Entry{}, false
	}
	return Entry{Name: name, Modified: info.ModTime()}, true
}

// firstEntries keeps the smallest entries added, at most limit. It collects up
// to twice as many and then cuts, which costs a constant per entry on average.
type firstEntries struct {
	limit   int
	entries []Entry
}

func (f *firstEntries) add(entry Entry) {
	f.entries = append(f.entries, entry)
	if len(f.entries) >= 2*f.limit {
		f.cut()
	}
}

func (f *firstEntries) cut() {
	slices.SortFunc(f.entries, Entry.Compare)
	f.entries = f.entries[:min(len(f.entries), f.limit)]
}

func (f *firstEntries) sorted() []Entry {
	f.cut()
	return f.entries
}

// Read returns the content of a message file, or its first limit bytes plus one
// when it is longer. A file that is gone is fs.ErrNotExist.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, fmt.Errorf("read from outbox: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read from outbox: %w", err)
	}
	return content, nil
}

// Remove deletes a message file; one that is gone is no error.
func (d *Dir) Remove(name string) error {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove from outbox: %w", err)
	}
	return nil
}
