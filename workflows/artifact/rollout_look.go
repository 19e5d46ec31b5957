package artifact

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// lastLook judges all factories once more before the rollout counts as executed.
func (l *lifecycle) lastLook(ctx, safe workflow.Context, gate artifact.Gate) {
	if l.nextWave() != 0 || !l.mayGoOn(ctx) || workflow.GetVersion(safe, freshLooks, workflow.DefaultVersion, today) < today {
		return
	}
	l.lookAgain(ctx, safe, gate, "before the end", l.Rollout.Factories)
}

// lookAgain judges factories that have passed once more: what a change does may
// show late. Each must be heard again after the look began, within the time that
// the gate gives: one that is silent now may be lost.
func (l *lifecycle) lookAgain(ctx, safe workflow.Context, gate artifact.Gate, when string, passed []*FactoryRun) {
	if len(passed) == 0 {
		return
	}
	first := l.looked(safe, passed)
	if first == nil {
		return
	}
	look := func(f *FactoryRun, now artifact.Health) bool {
		return l.judgeAgain(f, gate, when, first[f.FactoryID], now)
	}
	if workflow.GetVersion(safe, freshLooks, workflow.DefaultVersion, today) < today {
		look = func(f *FactoryRun, now artifact.Health) bool {
			return l.judgeAgain(f, gate, when, artifact.Health{}, now)
		}
	}
	left := unheard(passed, first, look)
	until, poll := workflow.Now(safe).Add(gate.Within.Of()), firstGatePoll
	for len(left) > 0 && l.mayGoOn(ctx) && l.rest(ctx, safe, until, poll, left) {
		now := l.looked(safe, left)
		if now == nil {
			return
		}
		left, poll = unheard(left, now, look), nextGatePoll(gate, poll)
	}
	if l.mayGoOn(ctx) {
		for _, f := range left {
			f.Verdict = artifact.Stale
			l.fail(f, FactoryFailed, fmt.Sprintf("%s, after %s it was not heard again", when, gate.Within.Of()))
		}
	}
}

// judgeAgain judges one factory, and tells whether it is to be looked at again.
func (l *lifecycle) judgeAgain(f *FactoryRun, gate artifact.Gate, when string, look, now artifact.Health) bool {
	verdict, why := gate.JudgeAgain(*f.Baseline, look, now, f.EndedAt)
	if verdict == artifact.Stale && !look.FactoryAt.IsZero() {
		return true
	}
	f.After, f.Verdict, f.Detail = now.Score, verdict, why
	if verdict != artifact.Passed {
		l.fail(f, FactoryFailed, when+", "+why)
	}
	return false
}

// unheard are the factories that are to be looked at again.
func unheard(factories []*FactoryRun, now map[string]artifact.Health, look func(*FactoryRun, artifact.Health) bool) []*FactoryRun {
	var left []*FactoryRun
	for _, f := range factories {
		if look(f, now[f.FactoryID]) {
			left = append(left, f)
		}
	}
	return left
}

// rest waits until the next look, and tells whether there is time for one. A
// cancellation ends it.
func (l *lifecycle) rest(ctx, safe workflow.Context, until time.Time, poll time.Duration, left []*FactoryRun) bool {
	patience := until.Sub(workflow.Now(safe))
	if patience <= 0 {
		return false
	}
	l.expect(ctx, count(len(left), "factory", "factories")+" to be heard again", until)
	options := workflow.AwaitOptions{Timeout: min(poll, patience), TimerOptions: workflow.TimerOptions{Summary: l.waiting}}
	_, err := workflow.AwaitWithOptions(safe, options, func() bool { return !l.mayGoOn(ctx) })
	return err == nil && l.mayGoOn(ctx)
}

// looked reads how factories are; what can't be read stops the rollout.
func (l *lifecycle) looked(safe workflow.Context, factories []*FactoryRun) map[string]artifact.Health {
	now, err := l.health(safe, "Look at the factories of earlier waves again", idsOf(factories))
	if err != nil {
		l.Rollout.stop("the factories of earlier waves can't be looked at: " + messageOf(err))
		return nil
	}
	byID := make(map[string]artifact.Health, len(now))
	for i, f := range factories {
		byID[f.FactoryID] = now[i]
	}
	return byID
}
