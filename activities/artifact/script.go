package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// Scripts runs scripts as child processes: each in an empty directory of its
// own, with an empty environment, in a process group that is killed as a whole.
type Scripts struct {
	// User and Group are the ids that scripts run under; 0 keeps the worker's own,
	// for development. Changing them takes privileges.
	User, Group uint32
	// Grace is how long a script has after SIGTERM; 0 stands for 5 s.
	Grace time.Duration
}

const defaultGrace = 5 * time.Second

// launcher bounds the address space of the script, in KiB, and becomes it.
const launcher = `ulimit -v "$1" || exit 126; ulimit -c 0; shift; exec "$@"`

// Run runs a script and waits for its whole process group to be gone.
func (s Scripts) Run(ctx context.Context, job Job) (Outcome, error) {
	args, err := job.Spec.ScriptArgs()
	if err != nil {
		return Outcome{}, err
	}
	if err := s.own(job); err != nil {
		return Outcome{}, err
	}
	limit := strconv.FormatInt(job.Spec.Limits.MemoryBytes/1024, 10)
	argv := append([]string{"-c", launcher, "sh", limit, job.File}, args.Args...)
	cmd := exec.Command("/bin/sh", argv...) //nolint:gosec,noctx // running approved scripts is the purpose; the group is ended below
	cmd.Dir, cmd.Stdout, cmd.Stderr = job.Dir, job.Stdout, job.Stderr
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + job.Dir, "LANG=C.UTF-8"}
	cmd.SysProcAttr = newGroup()
	if s.User != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: s.User, Gid: s.Group}
	}
	cmd.WaitDelay = time.Second // children that keep the pipes open don't hold up the end
	if err := cmd.Start(); err != nil {
		return Outcome{}, fmt.Errorf("start script: %w", err)
	}
	err = s.wait(ctx, cmd)
	return ended(job.Spec, err), nil
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

// wait waits for the script. When ctx ends it is asked to end, then killed; its
// children are killed in any case.
func (s Scripts) wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = s.end(cmd, done)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // no such group is what is wanted
	return err
}

func (s Scripts) end(cmd *exec.Cmd, done <-chan error) error {
	grace := s.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return <-done
}

func ended(spec artifact.Spec, err error) Outcome {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return Outcome{Status: storage.Succeeded}
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: err.Error()}
	}
	detail := exit.Error()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGSEGV {
		detail += fmt.Sprintf(" (memory is limited to %d bytes)", spec.Limits.MemoryBytes)
	}
	return Outcome{Status: storage.RunFailed, ExitCode: exit.ExitCode(), Detail: detail}
}
