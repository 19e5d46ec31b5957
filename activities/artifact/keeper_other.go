//go:build unix && !linux

package artifact

import (
	"os"
	"syscall"
)

// self is this very program.
func self() (string, error) { return os.Executable() }

// newGroup starts a process group of its own.
func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: what leaves the script's process group goes to init.
func adopt() {}

// children are none that are known.
func children() []int { return nil }
