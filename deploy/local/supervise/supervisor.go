package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Policy is how dying parts are treated.
type Policy struct {
	// Backoff is the pause before the first restart; it doubles up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Settled is how long a part must have run for its death not to count as quick.
	Settled time.Duration
	// QuickDeaths is how many quick deaths in a row end the run.
	QuickDeaths int
	// ProbeEvery is how often a running part is asked, and Failures how many wrong answers in a
	// row have it killed.
	ProbeEvery time.Duration
	Failures   int
}

// DefaultPolicy restarts a part that died once almost at once, ends the run within about ten
// seconds when a part cannot live, and gives a hanging part a minute.
var DefaultPolicy = Policy{
	Backoff: 200 * time.Millisecond, MaxBackoff: 5 * time.Second,
	Settled: 10 * time.Second, QuickDeaths: 6,
	ProbeEvery: 10 * time.Second, Failures: 6,
}

// Supervisor runs parts.
type Supervisor struct {
	logs   string
	policy Policy
	log    *slog.Logger
	failed chan error

	mu    sync.Mutex
	parts []*process
	wg    sync.WaitGroup
}

// ErrUnknownPart is returned for the name of a part that was not started.
var ErrUnknownPart = errors.New("no such part")

// New returns a supervisor that keeps log files in the directory logs.
func New(logs string, policy Policy, log *slog.Logger) *Supervisor {
	return &Supervisor{logs: logs, policy: policy, log: log, failed: make(chan error, 1)}
}

// LogFile returns the path of a part's log.
func (s *Supervisor) LogFile(name string) string { return filepath.Join(s.logs, name+".log") }

// Failed delivers the reason when a part died too often; the caller then ends the run.
func (s *Supervisor) Failed() <-chan error { return s.failed }

// Start starts a part and waits until it is up. The part stays supervised even when ctx ends.
func (s *Supervisor) Start(ctx context.Context, part Part) error {
	s.mu.Lock()
	if s.find(part.Name) != nil {
		s.mu.Unlock()
		return fmt.Errorf("start %s: already started", part.Name)
	}
	p := newProcess(s, part)
	s.parts = append(s.parts, p)
	s.mu.Unlock()
	s.wg.Go(p.keep)
	return p.resume(ctx)
}

// Run runs a part to its end once, unsupervised, and returns an error with the tail of its log
// when it fails.
func (s *Supervisor) Run(ctx context.Context, part Part) error {
	cmd, closeLog, err := s.command(part)
	if err != nil {
		return err
	}
	defer closeLog()
	if err := Start(cmd, false); err != nil {
		return fmt.Errorf("start %s: %w", part.Name, err)
	}
	exited := make(chan struct{})
	context.AfterFunc(ctx, func() { terminate(context.WithoutCancel(ctx), cmd, part.grace(), exited) })
	err = cmd.Wait()
	close(exited)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; the end of %s:\n%s", part.Name, err, s.LogFile(part.Name), Tail(s.LogFile(part.Name)))
	}
	return nil
}

// Kill kills a part without warning, as a crash would, and waits until it is up again.
func (s *Supervisor) Kill(ctx context.Context, name string) error {
	return s.with(name, func(p *process) error { return p.crash(ctx) })
}

// Stop stops a part and leaves it stopped.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	return s.with(name, func(p *process) error {
		p.halt(ctx)
		return nil
	})
}

// Resume starts a stopped part again and waits until it is up.
func (s *Supervisor) Resume(ctx context.Context, name string) error {
	return s.with(name, func(p *process) error { return p.resume(ctx) })
}

// Status returns the state of each part by name.
func (s *Supervisor) Status() map[string]State {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := make(map[string]State, len(s.parts))
	for _, p := range s.parts {
		status[p.part.Name] = p.current()
	}
	return status
}

// Close stops all parts, those of the highest stage first and those of one stage together. When
// ctx ends what still runs is killed.
func (s *Supervisor) Close(ctx context.Context) {
	s.mu.Lock()
	parts := slices.Clone(s.parts)
	s.mu.Unlock()
	slices.SortStableFunc(parts, func(a, b *process) int { return b.part.Stage - a.part.Stage })
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].part.Stage == parts[0].part.Stage {
			n++
		}
		var wg sync.WaitGroup
		for _, p := range parts[:n] {
			wg.Go(func() { p.close(ctx) })
		}
		wg.Wait()
		parts = parts[n:]
	}
	s.wg.Wait()
}

func (s *Supervisor) with(name string, do func(*process) error) error {
	s.mu.Lock()
	p := s.find(name)
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("part %q: %w", name, ErrUnknownPart)
	}
	return do(p)
}

func (s *Supervisor) find(name string) *process {
	for _, p := range s.parts {
		if p.part.Name == name {
			return p
		}
	}
	return nil
}

func (s *Supervisor) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// command prepares a part's process with its output appended to its log.
func (s *Supervisor) command(part Part) (*exec.Cmd, func(), error) {
	name := s.LogFile(part.Name)
	if err := trimLog(name); err != nil {
		return nil, nil, err
	}
	log, err := openLog(name)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(log, "--- %s started at %s\n", part.Name, time.Now().UTC().Format(time.RFC3339)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write log: %w", err), log.Close())
	}
	cmd := exec.Command(part.Command[0], part.Command[1:]...)
	cmd.Env, cmd.Dir = part.Env, part.Dir
	cmd.Stdout, cmd.Stderr = log, log
	closeLog := func() {
		if err := log.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			s.log.Warn("close log", "part", part.Name, "error", err)
		}
	}
	return cmd, closeLog, nil
}
