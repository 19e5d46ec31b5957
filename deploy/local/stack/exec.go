package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/term"

	"millrace/deploy/local/supervise"
	"millrace/deploy/local/toolchain"
)

// ExecOptions describe a stack around one command.
type ExecOptions struct {
	// Command is what runs on the stack.
	Command []string
	// BinDir is where the tools are.
	BinDir string
	// Durable keeps tables, queues and workflows in files, for tests that kill parts.
	Durable bool
	// Keep leaves the stack's directory, with its logs, behind.
	Keep bool
	// Say shows progress; it must not write to standard output, which is the command's.
	Say func(format string, args ...any)
}

// Exec starts the stand-ins on free ports in a temporary directory, runs the command with the
// stack's variables and stops everything. It returns the command's exit code.
func Exec(ctx context.Context, o ExecOptions) (code int, err error) {
	s, err := newExecStack(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.discard(o.Keep)) }()
	if err := s.open(); err != nil {
		return 0, err
	}
	defer func() { s.close(context.WithoutCancel(ctx)) }()
	// From here on an interrupt is the command's to handle; when it ends the stack does.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts, err := s.standIns()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.startAll(ctx, parts); err != nil {
		return 0, err
	}
	control, err := s.serveControl(ctx)
	if err != nil {
		return 0, err
	}
	defer control()
	s.Say("local stack up after %s, logs in %s", time.Since(began).Round(10*time.Millisecond), s.path("logs"))
	return s.command(ctx, o.Command)
}

func newExecStack(o ExecOptions) (*Stack, error) {
	tools, err := toolchain.Find(o.BinDir)
	if err != nil {
		return nil, err
	}
	self, err := Self()
	if err != nil {
		return nil, err
	}
	s := &Stack{Self: self, Tools: tools, Durable: o.Durable, Headless: true, KeepRoutes: true, Say: o.Say}
	if err := s.Ports.Resolve(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "millrace-local-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary directory: %w", err)
	}
	if s.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("resolve the temporary directory: %w", err)
	}
	return s, nil
}

func (s *Stack) discard(keep bool) error {
	if keep {
		s.Say("kept %s", s.Dir)
		return nil
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("remove the temporary directory: %w", err)
	}
	return nil
}

// command runs the command in the foreground until it ends. A stand-in that cannot live, or an
// interrupt, ends it. On a terminal it stays in our process group, which gets Ctrl-C as a whole;
// elsewhere it leads its own, so that what it started ends with it.
func (s *Stack) command(ctx context.Context, command []string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = s.environ()
	shared := term.IsTerminal(int(os.Stdin.Fd()))
	if err := supervise.Start(cmd, shared); err != nil {
		return 0, fmt.Errorf("start %s: %w", command[0], err)
	}
	target := cmd.Process.Pid
	if !shared {
		target = -target
	}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = cmd.Wait()
	}()
	select {
	case <-done:
		return exitCode(cmd, err)
	case failure := <-s.supervisor.Failed():
		end(target, done)
		return 1, failure
	case <-ctx.Done():
		end(target, done)
		return 128 + int(syscall.SIGTERM), nil
	}
}

// commandGrace is how long an interrupted command may take to end.
const commandGrace = 10 * time.Second

// end asks a process, or with a negative id its group, to end and kills what is left.
func end(target int, done <-chan struct{}) {
	// It has ended already when this fails.
	_ = syscall.Kill(target, syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(commandGrace):
		_ = syscall.Kill(target, syscall.SIGKILL)
		<-done
	}
	_ = syscall.Kill(target, syscall.SIGKILL)
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
