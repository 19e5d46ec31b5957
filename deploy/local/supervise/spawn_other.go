//go:build !linux

package supervise

import (
	"os/exec"
	"syscall"
)

// isolate cannot tie the child's life to ours here: after a kill -9 of the supervisor the
// children are left, and the next start names the ports that they hold.
func isolate(cmd *exec.Cmd, sharesTerminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !sharesTerminal}
}
