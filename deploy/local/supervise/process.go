package supervise

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// State is what a part is doing.
type State string

// States of a part.
const (
	Starting State = "starting"
	Up       State = "up"
	Dead     State = "dead"
	Stopped  State = "stopped"
	Failed   State = "failed"
)

// process keeps one part running. keep is its only goroutine that starts and reaps; the other
// methods say what is wanted and wait for the state to become so.
type process struct {
	part Part
	s    *Supervisor

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change of the fields below
	state   State
	wanted  bool
	closing bool
	runs    int // how often the process was started
	cmd     *exec.Cmd
	exited  chan struct{} // closed when cmd has ended and was reaped
}

func newProcess(s *Supervisor, part Part) *process {
	return &process{part: part, s: s, changed: make(chan struct{}), state: Stopped}
}

func (p *process) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *process) current() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// until waits until is, called with the lock held, is true.
func (p *process) until(ctx context.Context, is func() bool) error {
	for {
		p.mu.Lock()
		ok, changed := is(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *process) resume(ctx context.Context) error {
	var after int
	p.update(func() { p.wanted, after = true, p.runs })
	p.mu.Lock()
	if p.cmd != nil {
		after--
	}
	p.mu.Unlock()
	return p.awaitUp(ctx, after)
}

// awaitUp waits until a run later than the given one is up.
func (p *process) awaitUp(ctx context.Context, after int) error {
	err := p.until(ctx, func() bool {
		return p.state == Failed || p.closing || p.state == Up && p.runs > after
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", p.part.Name, err)
	}
	if state := p.current(); state != Up {
		return fmt.Errorf("%s is %s, see %s", p.part.Name, state, p.s.LogFile(p.part.Name))
	}
	return nil
}

func (p *process) crash(ctx context.Context) error {
	p.mu.Lock()
	cmd, runs := p.cmd, p.runs
	p.mu.Unlock()
	if cmd == nil {
		return fmt.Errorf("kill %s: not running", p.part.Name)
	}
	p.s.log.Info("killed on request", "part", p.part.Name)
	kill(cmd, syscall.SIGKILL)
	return p.awaitUp(ctx, runs)
}

func (p *process) halt(ctx context.Context) {
	var cmd *exec.Cmd
	var exited chan struct{}
	p.update(func() { p.wanted, cmd, exited = false, p.cmd, p.exited })
	if cmd != nil {
		terminate(ctx, cmd, p.part.grace(), exited)
	}
}

func (p *process) close(ctx context.Context) {
	p.update(func() { p.closing = true })
	p.halt(ctx)
}

// keep runs the process whenever it is wanted, until the part is closed or fails.
func (p *process) keep() {
	backoff, deaths := p.s.policy.Backoff, 0
	for {
		// The background context never ends, so neither does the wait before one is true.
		_ = p.until(context.Background(), func() bool { return p.wanted || p.closing })
		if p.isClosing() {
			p.update(func() { p.state = Stopped })
			return
		}
		began := time.Now()
		err := p.runOnce()
		if !p.isWanted() {
			p.update(func() { p.state = Stopped })
			continue
		}
		if time.Since(began) >= p.s.policy.Settled {
			backoff, deaths = p.s.policy.Backoff, 0
		}
		if deaths++; deaths >= p.s.policy.QuickDeaths {
			p.giveUp(err)
			return
		}
		p.s.log.Warn("died, starting it again", "part", p.part.Name, "reason", err, "pause", backoff)
		if p.pause(backoff); !p.isWanted() {
			p.update(func() { p.state = Stopped })
		}
		backoff = min(backoff*2, p.s.policy.MaxBackoff)
	}
}

func (p *process) giveUp(err error) {
	log := p.s.LogFile(p.part.Name)
	p.s.fail(fmt.Errorf("%s died %d times in a row (last: %w); the end of %s:\n%s",
		p.part.Name, p.s.policy.QuickDeaths, err, log, Tail(log)))
	p.update(func() { p.state = Failed })
}

// runOnce starts the process, watches it and returns when it has ended.
func (p *process) runOnce() error {
	cmd, closeLog, err := p.s.command(p.part)
	if err != nil {
		return err
	}
	defer closeLog()
	if err := Start(cmd, false); err != nil {
		return fmt.Errorf("start %s: %w", p.part.Name, err)
	}
	exited := make(chan struct{})
	p.update(func() { p.cmd, p.exited, p.state = cmd, exited, Starting; p.runs++ })
	if !p.isWanted() { // stopped between the check in keep and the start
		kill(cmd, syscall.SIGKILL)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx, cmd) })
	err = cmd.Wait()
	cancel()
	watching.Wait()
	// What the process started itself and left behind goes with it.
	kill(cmd, syscall.SIGKILL)
	p.update(func() { p.cmd, p.state = nil, Dead })
	close(exited)
	if err == nil {
		return fmt.Errorf("%s ended by itself", p.part.Name)
	}
	return err
}

func (p *process) pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	// Ends early when the part is stopped or closed; the timeout is the normal end.
	_ = p.until(ctx, func() bool { return !p.wanted || p.closing })
}

func (p *process) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

func (p *process) isClosing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}
