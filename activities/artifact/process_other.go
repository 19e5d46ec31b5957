//go:build unix && !linux

package artifact

import "syscall"

// newGroup starts a process group of its own.
func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
