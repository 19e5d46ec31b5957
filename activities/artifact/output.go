package artifact

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// output takes what a run says, up to a limit, in a file. What is beyond the
// limit is read and dropped, so that the run is not held up by it.
type output struct {
	mu        sync.Mutex
	file      *os.File
	left      int64
	truncated bool
	// broken is the first error of the disk: from then on all is dropped.
	broken error
}

func newOutputs(limit int64) (stdout, stderr *output, err error) {
	if stdout, err = newOutput(limit); err != nil {
		return nil, nil, err
	}
	if stderr, err = newOutput(limit); err != nil {
		stdout.remove()
		return nil, nil, err
	}
	return stdout, stderr, nil
}

func newOutput(limit int64) (*output, error) {
	file, err := os.CreateTemp("", outputPrefix)
	if err != nil {
		return nil, fmt.Errorf("make an output file: %w", err)
	}
	return &output{file: file, left: limit}, nil
}

// Write keeps what fits, as long as there is room on the disk. It never fails: a
// script that nobody listens to any more would end by that.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fits := p[:min(int64(len(p)), o.left)]
	if len(fits) < len(p) {
		o.truncated = true
	}
	if len(fits) == 0 || o.broken != nil {
		return len(p), nil
	}
	n, err := o.file.Write(fits)
	o.left -= int64(n)
	if err != nil {
		o.truncated, o.broken, o.left = true, err, 0
	}
	return len(p), nil
}

func (o *output) rewind() (io.ReadSeeker, error) {
	_, err := o.file.Seek(0, io.SeekStart)
	return o.file, err
}

func (o *output) remove() {
	_ = o.file.Close() // what matters was stored
	_ = os.Remove(o.file.Name())
}
