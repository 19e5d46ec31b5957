package artifact

import "syscall"

// newGroup starts a process group of its own that dies with the worker.
func newGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
