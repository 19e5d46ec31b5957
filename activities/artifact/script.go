package artifact

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// Scripts runs scripts as child processes: each in an empty directory of its
// own, with an empty environment, under a keeper that kills it with all its
// descendants, also when the worker itself is killed.
type Scripts struct {
	// User and Group are the ids that scripts run under; 0 keeps the worker's own,
	// for development. Changing them takes privileges.
	User, Group uint32
	// Processes is how many the script's user, or its cgroup, may have; 0 stands for
	// 1024.
	Processes int
	// Cgroup is a cgroup (v2) in which the worker may make one for each script, with
	// the controllers pids and memory; empty tries for less below the worker's own,
	// and "none" makes none.
	Cgroup string
	// Grace is how long a script has after SIGTERM; 0 stands for 5 s.
	Grace time.Duration
}

const (
	defaultGrace     = 5 * time.Second
	defaultProcesses = 1024
	// maxFile bounds each file that a script writes.
	maxFile = 1 << 30
)

// launcher bounds the address space of the script's processes in KiB, their files in
// blocks of 512 bytes and, unless it is 0, the processes of their user (-u or -p, as
// shells differ), and becomes the script: not as urgent as keeper and worker.
const launcher = `ulimit -v "$1" && ulimit -f "$2" || exit 126
if [ "$3" -gt 0 ]; then ulimit -u "$3" 2>/dev/null || ulimit -p "$3" || exit 126; fi
ulimit -c 0; shift 3; exec nice -n 5 "$@"`

// bounds are what holds a script of these limits.
func (s Scripts) bounds(limits artifact.Limits) bounds {
	processes := s.Processes
	if processes == 0 {
		processes = defaultProcesses
	}
	return bounds{User: s.User, Group: s.Group, Cgroup: s.Cgroup, Processes: int64(processes), Memory: limits.MemoryBytes}
}

// command is the script under its limits.
func (b bounds) command(job Job, args []string) []string {
	processes := int64(0) // its user is the worker's, who may have many
	if b.User != 0 {
		processes = b.Processes
	}
	limits := []string{strconv.FormatInt(b.Memory/1024, 10), strconv.Itoa(maxFile / 512), strconv.FormatInt(processes, 10)}
	return slices.Concat([]string{"/bin/sh", "-c", launcher, "sh"}, limits, []string{job.File}, args)
}

// Run runs a script and waits for all its processes to be gone.
func (s Scripts) Run(ctx context.Context, job Job) (Outcome, error) {
	args, err := job.Spec.ScriptArgs()
	if err != nil {
		return Outcome{}, err
	}
	if err := s.own(job); err != nil {
		return Outcome{}, err
	}
	program, err := self()
	if err != nil {
		return Outcome{}, fmt.Errorf("find this program: %w", err)
	}
	within := s.bounds(job.Spec.Limits)
	cmd := exec.Command(program) //nolint:gosec,noctx // running approved scripts is the purpose; they are ended below
	cmd.Dir, cmd.Stdout, cmd.Stderr = job.Dir, job.Stdout, job.Stderr
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + job.Dir, "LANG=C.UTF-8"}
	cmd.WaitDelay = time.Second // whoever keeps the pipes open doesn't hold up the end
	script, err := startKept(cmd, within, within.command(job, args.Args))
	if err != nil {
		return Outcome{}, fmt.Errorf("start script: %w", err)
	}
	status, err := s.wait(ctx, script)
	return ended(job.Spec, status, err), nil
}

// own gives the directory and the file to the user that the script runs under.
func (s Scripts) own(job Job) error {
	if s.User == 0 {
		return nil
	}
	for _, path := range []string{job.Dir, job.File} {
		if err := os.Chown(path, int(s.User), int(s.Group)); err != nil {
			return fmt.Errorf("give %s to the script's user: %w", path, err)
		}
	}
	return nil
}

// wait waits for the script. When ctx ends it is asked to end, then killed.
func (s Scripts) wait(ctx context.Context, script kept) (syscall.WaitStatus, error) {
	over := make(chan struct{})
	defer close(over)
	go s.watch(ctx, script, over)
	return script.wait()
}

// watch shows the keeper that the worker lives until the script is over or ctx
// ends, and ends the script then.
func (s Scripts) watch(ctx context.Context, script kept, over <-chan struct{}) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for done := ctx.Done(); ; {
		select {
		case <-over:
			return
		case <-tick.C:
			script.beat()
		case <-done:
			script.ask()
			done = nil
			defer time.AfterFunc(s.grace(), script.kill).Stop()
		}
	}
}

func (s Scripts) grace() time.Duration {
	if s.Grace == 0 {
		return defaultGrace
	}
	return s.Grace
}

func ended(spec artifact.Spec, status syscall.WaitStatus, err error) Outcome {
	switch {
	case err != nil:
		return Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: err.Error()}
	case status.Signaled() && status.Signal() == syscall.SIGSEGV:
		return Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: fmt.Sprintf("signal: %s (memory is limited to %d bytes)", status.Signal(), spec.Limits.MemoryBytes)}
	case status.Signaled():
		return Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: "signal: " + status.Signal().String()}
	case status.ExitStatus() != 0:
		return Outcome{Status: storage.RunFailed, ExitCode: status.ExitStatus(), Detail: fmt.Sprintf("exit status %d", status.ExitStatus())}
	}
	return Outcome{Status: storage.Succeeded}
}
