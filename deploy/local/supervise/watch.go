package supervise

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

const (
	// firstProbe and maxProbe are the pauses between the questions to a starting part.
	firstProbe = 10 * time.Millisecond
	maxProbe   = 250 * time.Millisecond
	// probeTimeout bounds one question.
	probeTimeout = 5 * time.Second
)

// watch reports the process up once its probe answers, and kills it when it is not up in time or
// later stops answering.
func (p *process) watch(ctx context.Context, cmd *exec.Cmd) {
	if !p.awaitReady(ctx) {
		if ctx.Err() == nil {
			p.s.log.Warn("not up in time, killed", "part", p.part.Name, "within", p.part.readyWithin())
			kill(cmd, syscall.SIGKILL)
		}
		return
	}
	p.update(func() { p.state = Up })
	failures := 0
	for ctx.Err() == nil {
		sleep(ctx, p.s.policy.ProbeEvery)
		if err := trimLog(p.s.LogFile(p.part.Name)); err != nil {
			p.s.log.Warn("trim log", "part", p.part.Name, "error", err)
		}
		if err := p.ask(ctx); err == nil {
			failures = 0
			continue
		}
		if failures++; failures >= p.s.policy.Failures && ctx.Err() == nil {
			p.s.log.Warn("does not answer, killed", "part", p.part.Name)
			kill(cmd, syscall.SIGKILL)
			return
		}
	}
}

func (p *process) awaitReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, p.part.readyWithin())
	defer cancel()
	for pause := firstProbe; ctx.Err() == nil; pause = min(pause*2, maxProbe) {
		if p.ask(ctx) == nil {
			return ctx.Err() == nil
		}
		sleep(ctx, pause)
	}
	return false
}

func (p *process) ask(ctx context.Context) error {
	if p.part.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.part.Ready(ctx)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// terminate asks a process group to end, kills it when exited is not closed within grace or when
// ctx ends, and returns when exited is closed.
func terminate(ctx context.Context, cmd *exec.Cmd, grace time.Duration, exited <-chan struct{}) {
	kill(cmd, syscall.SIGTERM)
	select {
	case <-exited:
		return
	case <-ctx.Done():
	case <-time.After(grace):
	}
	kill(cmd, syscall.SIGKILL)
	<-exited
}

// kill signals the whole process group. A group that is gone already is what was wanted.
func kill(cmd *exec.Cmd, signal syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, signal)
}
