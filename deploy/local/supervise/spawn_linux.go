package supervise

import (
	"os/exec"
	"syscall"
)

func isolate(cmd *exec.Cmd, sharesTerminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !sharesTerminal, Pdeathsig: syscall.SIGKILL}
}
