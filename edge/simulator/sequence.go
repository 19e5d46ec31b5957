package simulator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SequenceFile keeps the publish sequence number of a simulated factory over
// restarts, so that it never goes back.
type SequenceFile struct {
	path string
}

// NewSequenceFile is the file at path; it need not exist.
func NewSequenceFile(path string) SequenceFile { return SequenceFile{path: path} }

// Load returns the last number stored, 0 when there is none.
func (f SequenceFile) Load() (int64, error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("load publish sequence: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("load publish sequence: %s: must hold a whole number", f.path)
	}
	return n, nil
}

// Store replaces the number. A crash leaves the old or the new one.
func (f SequenceFile) Store(n int64) error {
	temp, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+"-*")
	if err != nil {
		return fmt.Errorf("store publish sequence: %w", err)
	}
	_, err = fmt.Fprintln(temp, n)
	if err := errors.Join(err, temp.Close()); err != nil {
		return errors.Join(fmt.Errorf("store publish sequence: %w", err), os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), f.path); err != nil {
		return errors.Join(fmt.Errorf("store publish sequence: %w", err), os.Remove(temp.Name()))
	}
	return nil
}
