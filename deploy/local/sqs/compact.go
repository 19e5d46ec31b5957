package sqs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// compactNow rewrites the journal with what is in flight.
func (j *journal) compactNow() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.compact()
}

// compact writes the live entries to a new file and puts that in the journal's place. The next time
// is when the journal has doubled, so that a long list in flight isn't copied at every write.
func (j *journal) compact() error {
	next, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("compact journal of messages in flight: %w", err)
	}
	places, size, err := j.copyTo(next)
	if err == nil {
		err = os.Rename(next.Name(), j.path)
	}
	if err != nil {
		return fmt.Errorf("compact journal of messages in flight: %w", errors.Join(err, next.Close()))
	}
	old := j.file
	j.file, j.size, j.limit = next, size, max(compactFrom, 2*size)
	for id, p := range places {
		j.entries[id].at, j.entries[id].size = p.at, p.size
	}
	_ = old.Close() // it is replaced
	return nil
}

type place struct{ at, size int64 }

// copyTo writes each live entry as one line and returns where the lines are, and how long all are.
func (j *journal) copyTo(next io.Writer) (map[string]place, int64, error) {
	places := make(map[string]place, len(j.entries))
	buffer := bufio.NewWriterSize(next, 1<<16)
	counter := &counting{to: buffer}
	encoder := newEncoder(counter)
	for _, id := range j.sorted("") {
		l, err := j.read(id, j.entries[id])
		if err != nil {
			return nil, 0, err
		}
		begin := counter.written
		if err := encoder.Encode(l); err != nil {
			return nil, 0, fmt.Errorf("encode message in flight: %w", err)
		}
		places[id] = place{begin, counter.written - begin}
	}
	return places, counter.written, buffer.Flush()
}

type counting struct {
	to      io.Writer
	written int64
}

// Write passes p on.
func (c *counting) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.written += int64(n)
	return n, err
}
