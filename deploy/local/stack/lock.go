package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lock makes sure that one supervisor uses a directory. The lock ends with the process, however
// that ends.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(f) // only for the message
		err = fmt.Errorf("another local stack (process %s) uses this directory: stop it or choose another with --dir: %w",
			strings.TrimSpace(string(holder)), err)
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock: %w", err), f.Close())
	}
	if _, err := fmt.Fprintf(f, "%d\n", os.Getpid()); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
