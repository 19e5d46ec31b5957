//go:build unix && !linux

package artifact

import (
	"errors"
	"os"
	"syscall"
)

// self is this very program.
func self() (string, error) { return os.Executable() }

// newGroup starts a process group of its own.
func newGroup(*fence) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// fence is a cgroup, which only Linux has.
type fence struct{}

// errFence tells that a cgroup can't hold a script.
var errFence = errors.New("no cgroup for the script")

func newFence(string, int, int64, int64) (*fence, error) { return nil, errFence }

func (*fence) kill() {}

func (*fence) remove() error { return nil }

func razeFence(string, int) {}

// adopt does nothing: what leaves the script's process group goes to init.
func adopt() {}

// renounce does nothing: only Linux knows it.
func renounce() error { return nil }

// children are none that are known.
func children() []int { return nil }
