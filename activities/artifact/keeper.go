//go:build unix

package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	workflows "millrace/workflows/artifact"
)

// A keeper is a process between the worker and a script: this program again
// under another name. It survives the worker for as long as it takes to kill the
// script and all that came of it, and it is the parent of whatever the script
// leaves behind, also of what left the script's process group.
const keeperName = "millrace-script-keeper"

// Files that the keeper has from the worker.
const (
	// lifelineFile ends when the worker does, or wants the script to be dead, and
	// falls silent when the worker is frozen.
	lifelineFile = 3
	// reportFile takes the script's wait status.
	reportFile = 4
)

func init() { // before main and flags: the name alone makes it a keeper
	if os.Args[0] == keeperName {
		keep(os.Args[1:])
		os.Exit(0)
	}
}

// kept is a script under its keeper.
type kept struct {
	cmd      *exec.Cmd
	lifeline *os.File
	report   *os.File
}

// startKept starts argv in a process group of its own, under these ids unless
// they are 0.
func startKept(cmd *exec.Cmd, user, group uint32, argv []string) (kept, error) {
	alive, lifeline, err := os.Pipe()
	if err != nil {
		return kept{}, fmt.Errorf("make a pipe: %w", err)
	}
	defer alive.Close() //nolint:errcheck // the keeper has its own
	report, told, err := os.Pipe()
	if err != nil {
		return kept{}, errors.Join(fmt.Errorf("make a pipe: %w", err), lifeline.Close())
	}
	defer told.Close() //nolint:errcheck // the keeper has its own
	cmd.Args = append([]string{keeperName, strconv.FormatUint(uint64(user), 10), strconv.FormatUint(uint64(group), 10)}, argv...)
	cmd.ExtraFiles = []*os.File{alive, told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what interrupts the worker is not for the script
	if err := cmd.Start(); err != nil {
		return kept{}, errors.Join(err, lifeline.Close(), report.Close())
	}
	return kept{cmd: cmd, lifeline: lifeline, report: report}, nil
}

// How a worker shows its keepers that it lives. What is silent for longer may have
// been given up by the server: nothing may run beside what follows then.
const (
	pulse    = 5 * time.Second
	patience = workflows.RunHeartbeat * 2 / 3
)

// beat shows that the worker lives.
func (k kept) beat() { _, _ = k.lifeline.Write([]byte{'.'}) } // no keeper, no need

// ask has the script asked to end.
func (k kept) ask() { _ = k.cmd.Process.Signal(syscall.SIGTERM) } // one that has ended is as wanted

// kill has the script and all its descendants killed.
func (k kept) kill() { _ = k.lifeline.Close() } // closed before is as wanted

// errKeeper tells that a script's keeper ended without a word.
var errKeeper = errors.New("the script's keeper was killed")

// wait waits until script, descendants and keeper are gone.
func (k kept) wait() (syscall.WaitStatus, error) {
	_ = k.cmd.Wait() // the keeper's own status says nothing
	k.kill()
	defer k.report.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(k.report)
	if err != nil {
		return 0, fmt.Errorf("read the script's status: %w", err)
	}
	status, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return 0, errKeeper
	}
	return syscall.WaitStatus(status), nil
}

// keep is what a keeper does: start, wait, kill what is left, report.
func keep(args []string) {
	syscall.CloseOnExec(lifelineFile)
	syscall.CloseOnExec(reportFile)
	report := os.NewFile(reportFile, "report")
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	adopt()
	script, err := launch(args)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // the run's own standard error
		_, _ = fmt.Fprint(report, 126<<8)   // as a shell says that it can't run something
		return
	}
	go func() {
		for range terms {
			_ = syscall.Kill(-script, syscall.SIGTERM)
		}
	}()
	go func() {
		listen(lifelineFile)
		_ = syscall.Kill(script, syscall.SIGKILL)
	}()
	status := await(script)
	bury(script)
	_, _ = fmt.Fprint(report, uint32(status))
}

// listen returns when the lifeline ends or has been silent for too long.
func listen(fd int) {
	_ = syscall.SetNonblock(fd, true) // else it has no deadlines, but still an end
	lifeline := os.NewFile(uintptr(fd), "lifeline")
	for beats := make([]byte, 64); ; {
		_ = lifeline.SetReadDeadline(time.Now().Add(patience))
		if _, err := lifeline.Read(beats); err != nil {
			return
		}
	}
}

// launch starts the script. It dies with the keeper: its parent is the keeper's
// first thread, which lives as long as the keeper does.
func launch(args []string) (int, error) {
	if len(args) < 3 {
		return 0, errors.New("a keeper needs user, group and a program")
	}
	user, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("user: %w", err)
	}
	group, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("group: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("open standard input: %w", err)
	}
	defer null.Close() //nolint:errcheck // the script has its own
	sys := newGroup()
	if user != 0 {
		sys.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(group)}
	}
	pid, err := syscall.ForkExec(args[2], args[2:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), os.Stdout.Fd(), os.Stderr.Fd()}, Sys: sys,
	})
	if err != nil {
		return 0, fmt.Errorf("start script: %w", err)
	}
	return pid, nil
}

// await waits for the script, and reaps what else ends meanwhile.
func await(script int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == script || err != nil && !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

// bury kills the script's group and all orphans until none is left. An orphan's
// children become orphans in turn.
func bury(script int) {
	for {
		_ = syscall.Kill(-script, syscall.SIGKILL) // no such group is what is wanted
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}
