package artifact

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Names of what a run has in the directory of temporary files.
const (
	runPrefix    = "millrace-run-"
	outputPrefix = "millrace-output-"
	// staleAge is longer than any run takes.
	staleAge = 26 * time.Hour
)

// SweepTemporary deletes what runs of workers that were killed have left.
func SweepTemporary(now time.Time) error {
	var problems []error
	for _, prefix := range []string{runPrefix, outputPrefix} {
		paths, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
		problems = append(problems, err)
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err != nil || now.Sub(info.ModTime()) < staleAge {
				continue // gone, or in use
			}
			if err := os.RemoveAll(path); err != nil {
				problems = append(problems, fmt.Errorf("delete what a run left: %w", err))
			}
		}
	}
	return errors.Join(problems...)
}
