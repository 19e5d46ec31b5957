package outbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockName starts with a dot, so that no scan takes it for a message.
const lockName = ".publisher.lock"

const lockMode = 0o660

// ErrLocked means that another publisher works on the outbox.
var ErrLocked = errors.New("another publisher works on this outbox")

// Lock makes the caller the only publisher of the outbox until it calls the
// returned function or ends, however it ends. Two would publish every message
// twice.
func (d *Dir) Lock() (unlock func(), err error) {
	file, err := os.OpenFile(d.path(lockName), os.O_CREATE|os.O_RDWR, lockMode)
	if err != nil {
		return nil, fmt.Errorf("lock outbox: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock outbox %s: %w", d.root, err), file.Close())
	}
	// Closing the file releases the lock; nothing is left to do about an error.
	return func() { _ = file.Close() }, nil
}
