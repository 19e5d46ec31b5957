//go:build unix

package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
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
	cgroup   string
}

// bounds are what a keeper holds its script to.
type bounds struct {
	// User and Group are the ids of the script; 0 keeps the keeper's.
	User, Group uint32
	// Cgroup is where the script's own cgroup is made; empty is below the keeper's,
	// if that may be, and noCgroup nowhere.
	Cgroup string
	// Processes and Memory are what that cgroup may hold.
	Processes, Memory int64
}

// noCgroup stands for no cgroup at all.
const noCgroup = "none"

// args are the bounds as a keeper gets them.
func (b bounds) args() []string {
	return []string{
		strconv.FormatUint(uint64(b.User), 10), strconv.FormatUint(uint64(b.Group), 10),
		b.Cgroup, strconv.FormatInt(b.Processes, 10), strconv.FormatInt(b.Memory, 10),
	}
}

// parseBounds reads a keeper's arguments; what follows is the script.
func parseBounds(args []string) (bounds, []string, error) {
	if len(args) < 6 {
		return bounds{}, nil, errors.New("a keeper needs user, group, cgroup, processes, memory and a program")
	}
	user, userErr := strconv.ParseUint(args[0], 10, 32)
	group, groupErr := strconv.ParseUint(args[1], 10, 32)
	processes, processesErr := strconv.ParseInt(args[3], 10, 64)
	memory, memoryErr := strconv.ParseInt(args[4], 10, 64)
	if err := errors.Join(userErr, groupErr, processesErr, memoryErr); err != nil {
		return bounds{}, nil, fmt.Errorf("a keeper's bounds: %w", err)
	}
	return bounds{User: uint32(user), Group: uint32(group), Cgroup: args[2], Processes: processes, Memory: memory}, args[5:], nil
}

// startKept starts argv in a process group of its own, within its bounds.
func startKept(cmd *exec.Cmd, b bounds, argv []string) (kept, error) {
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
	cmd.Args = append(append([]string{keeperName}, b.args()...), argv...)
	cmd.ExtraFiles = []*os.File{alive, told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what interrupts the worker is not for the script
	if err := cmd.Start(); err != nil {
		return kept{}, errors.Join(err, lifeline.Close(), report.Close())
	}
	return kept{cmd: cmd, lifeline: lifeline, report: report, cgroup: b.Cgroup}, nil
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
		razeFence(k.cgroup, k.cmd.Process.Pid)
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
	script, inside, err := launch(args)
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
	bury(script, inside)
	_ = inside.remove() // an empty cgroup harms nobody
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
func launch(args []string) (int, *fence, error) {
	b, argv, err := parseBounds(args)
	if err != nil {
		return 0, nil, err
	}
	inside, err := newFence(b.Cgroup, os.Getpid(), b.Processes, b.Memory)
	if err != nil && b.Cgroup != "" {
		return 0, nil, err
	}
	pid, err := start(b, argv, inside)
	if err != nil && b.Cgroup == "" && inside != nil { // it may be made and yet not be entered
		_ = inside.remove()
		inside = nil
		pid, err = start(b, argv, nil)
	}
	if err != nil {
		return 0, nil, errors.Join(err, inside.remove())
	}
	return pid, inside, nil
}

func start(b bounds, argv []string, inside *fence) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("open standard input: %w", err)
	}
	defer null.Close() //nolint:errcheck // the script has its own
	sys := newGroup(inside)
	if b.User != 0 {
		sys.Credential = &syscall.Credential{Uid: b.User, Gid: b.Group}
		if err := renounce(); err != nil {
			return 0, err
		}
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
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

// bury kills all that the script left until nothing is: its cgroup as a whole, its
// group, and all orphans, whose children become orphans in turn. What forks as
// fast as it dies is outrun: all the dead are reaped before the living are
// listed, so that lists are short, and the youngest are killed first.
func bury(script int, inside *fence) {
	for reap() {
		inside.kill()
		_ = syscall.Kill(-script, syscall.SIGKILL) // no such group is what is wanted
		own := children()
		for _, pid := range slices.Backward(own) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(own) == 0 {
			time.Sleep(time.Millisecond) // it is about to be reaped, or was born meanwhile
		}
	}
}

// reap reaps all children that are dead, and tells whether others are left.
func reap() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || err == nil && pid > 0:
		case err != nil:
			return false
		default:
			return true
		}
	}
}
