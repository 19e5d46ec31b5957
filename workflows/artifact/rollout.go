package artifact

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/domain/exact"
)

// Rollout is how far the jobs of a version are: part of what continue-as-new
// hands on.
type Rollout struct {
	// Wave is the wave under way, from 1; Waves is how many there are.
	Wave  int `json:"wave"`
	Waves int `json:"waves"`
	// PauseUntil is when the pause before the next wave ends.
	PauseUntil time.Time `json:"pause_until,omitzero"`
	// LockBy is until when locks are waited for.
	LockBy time.Time `json:"lock_by,omitzero"`
	// Stopped tells why no more factories are changed.
	Stopped   string `json:"stopped,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"`
	// Changes counts the changes of factories that were begun.
	Changes int `json:"changes"`
	// Round counts the times that undoing was begun.
	Round     int           `json:"round,omitempty"`
	Factories []*FactoryRun `json:"factories"`
}

// FactoryState says how far a factory is.
type FactoryState string

// The states of factories. Waiting factories of a rollout that was stopped are
// never begun.
const (
	FactoryWaiting  FactoryState = "waiting"
	FactoryRunning  FactoryState = "running"
	FactoryJudging  FactoryState = "judging"
	FactoryPassed   FactoryState = "passed"
	FactoryFailed   FactoryState = "failed"
	FactoryTimedOut FactoryState = "timed_out"
)

// FactoryRun is one factory of a rollout.
type FactoryRun struct {
	FactoryID string       `json:"factory_id"`
	Wave      int          `json:"wave"`
	State     FactoryState `json:"state"`
	RunID     string       `json:"run_id,omitempty"`
	// Change is the factory's place in the order of changes, from 1; 0 means that
	// it surely was not changed. It is given before the job is sent.
	Change int `json:"change,omitempty"`
	// Baseline is how the factory was before its job, After the score afterwards.
	Baseline *artifact.Health `json:"baseline,omitempty"`
	After    *exact.Decimal   `json:"after,omitempty"`
	Verdict  artifact.Verdict `json:"verdict,omitempty"`
	Detail   string           `json:"detail,omitempty"`
	// EndedAt is when the job ended, by the factory's clock.
	EndedAt time.Time    `json:"ended_at,omitzero"`
	Undo    *FactoryUndo `json:"undo,omitempty"`
}

// FactoryUndo is the undo of one factory.
type FactoryUndo struct {
	// State is running, compensated or failed.
	State    string `json:"state"`
	RunID    string `json:"run_id,omitempty"`
	Attempts int    `json:"attempts"`
	Detail   string `json:"detail,omitempty"`
	// Round is the last round of undoing that came to this factory.
	Round int `json:"round"`
}

func newRollout(args artifact.JobArgs, lockBy time.Time) *Rollout {
	r := &Rollout{LockBy: lockBy}
	for i, wave := range args.Plan() {
		for _, id := range wave {
			r.Factories = append(r.Factories, &FactoryRun{FactoryID: id, Wave: i + 1, State: FactoryWaiting})
		}
		r.Waves = i + 1
	}
	return r
}

// where gives the factories for which a condition holds.
func (r *Rollout) where(is func(*FactoryRun) bool) []*FactoryRun {
	var some []*FactoryRun
	for _, f := range r.Factories {
		if is(f) {
			some = append(some, f)
		}
	}
	return some
}

func (f *FactoryRun) waiting() bool { return f.State == FactoryWaiting }

func (f *FactoryRun) broken() bool { return f.State == FactoryFailed || f.State == FactoryTimedOut }

// end is how the factory's part of the rollout ended.
func (f *FactoryRun) end(state FactoryState, detail string) {
	f.State, f.Detail = state, short(detail)
}

// stop has no more factories changed; the first reason counts.
func (r *Rollout) stop(reason string) {
	if r.Stopped == "" {
		r.Stopped = reason
	}
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func idsOf(factories []*FactoryRun) []string {
	ids := make([]string, len(factories))
	for i, f := range factories {
		ids[i] = f.FactoryID
	}
	return ids
}

const (
	// maxDetail bounds what is kept of one factory's detail, maxReason what is told
	// of all of them.
	maxDetail = 200
	maxReason = 4000
)

func short(text string) string { return cut(text, maxDetail) }

// cut is valid text of at most limit bytes, which ends with "..." where it was
// longer.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// rollOut does the next part of a rollout: at most one wave. Between two parts
// the whole state is in Carry, so that a long rollout can continue as new.
func (l *lifecycle) rollOut(ctx workflow.Context) error {
	l.flush(ctx)
	safe, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	args, err := l.request.Spec.JobArgs()
	if err != nil {
		return applicationError(err) // it was checked at the door
	}
	if l.Rollout == nil {
		if refused := l.verifyRollout(ctx); refused != nil {
			return l.failed(ctx, *refused)
		}
		l.Rollout = newRollout(args, workflow.Now(ctx).Add(lockWait))
	}
	l.lockTargets(ctx, safe)
	if next := l.nextWave(); next != 0 && !l.halted(ctx) {
		renewing := l.keepLocks(safe, l.Rollout.Factories, l.Rollout.stop)
		l.pause(ctx, safe)
		l.wave(ctx, safe, args, next)
		l.lastLook(ctx, safe, args.Gate)
		renewing.stop()
	}
	if l.nextWave() != 0 && l.mayGoOn(ctx) {
		return nil
	}
	return l.concludeRollout(ctx)
}

// mayGoOn tells whether more factories are to be changed, now or in the run that
// continues this one.
func (l *lifecycle) mayGoOn(ctx workflow.Context) bool {
	if ctx.Err() != nil {
		l.Rollout.Cancelled = true
		l.Rollout.stop("the workflow was cancelled")
	}
	return l.Rollout.Stopped == ""
}

// halted tells whether no more factories are to be begun in this run.
func (l *lifecycle) halted(ctx workflow.Context) bool {
	return !l.mayGoOn(ctx) || l.mayContinue(ctx)
}

// nextWave is the first wave with a factory that waits, 0 when there is none.
func (l *lifecycle) nextWave() int {
	if waiting := l.Rollout.where((*FactoryRun).waiting); len(waiting) > 0 {
		return waiting[0].Wave
	}
	return 0
}

func (l *lifecycle) verifyRollout(ctx workflow.Context) *RunResult {
	l.waiting = "content, policy and decisions to be read again"
	l.describe(ctx)
	verify := VerifyRequest{VersionRef: l.ref(), BundleHash: l.BundleHash, Decisions: true}
	options := contentOptions("Read content, policy and decisions again")
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), VerifyActivity, verify).Get(ctx, nil)
	if err == nil {
		return nil
	}
	return &RunResult{Status: RunFailed, ExitCode: -1, Detail: fmt.Sprintf("%s: %s", typeOf(err), messageOf(err))}
}

// pause waits before the next wave. A cancellation ends it.
func (l *lifecycle) pause(ctx, safe workflow.Context) {
	until := l.Rollout.PauseUntil
	wait := until.Sub(workflow.Now(ctx))
	if until.IsZero() || wait <= 0 {
		return
	}
	l.expect(ctx, fmt.Sprintf("the pause before wave %d of %d", l.nextWave(), l.Rollout.Waves), until)
	options := workflow.AwaitOptions{Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: l.waiting}}
	_, err := workflow.AwaitWithOptions(safe, options, func() bool { return ctx.Err() != nil || l.Rollout.Stopped != "" })
	if err != nil {
		l.Rollout.stop("the pause was broken off: " + err.Error())
	}
}

// expect says what is waited for, and until when.
func (l *lifecycle) expect(ctx workflow.Context, what string, until time.Time) {
	l.waiting, l.until = what, until
	l.describe(ctx)
}

// wave changes the factories of a wave that wait, a bounded number at a time, and
// waits for all that were begun. The first that fails stops the rollout.
func (l *lifecycle) wave(ctx, safe workflow.Context, args artifact.JobArgs, number int) {
	r := l.Rollout
	if l.halted(ctx) {
		return
	}
	r.Wave = number
	earlier := r.where(func(f *FactoryRun) bool { return f.State == FactoryPassed && f.Wave < number })
	l.lookAgain(ctx, safe, args.Gate, "before the next wave", earlier)
	slots, all := workflow.NewSemaphore(safe, rolloutParallel), workflow.NewWaitGroup(safe)
	for _, f := range r.where(func(f *FactoryRun) bool { return f.Wave == number && f.waiting() }) {
		if err := slots.Acquire(safe, 1); err != nil {
			r.stop(err.Error())
		}
		if l.halted(ctx) {
			slots.Release(1)
			break
		}
		l.expect(ctx, fmt.Sprintf("the factories of wave %d of %d", number, r.Waves), time.Time{})
		f.State = FactoryRunning
		all.Add(1)
		workflow.GoNamed(safe, "factory "+f.FactoryID, func(safe workflow.Context) {
			defer all.Done()
			defer slots.Release(1)
			l.change(ctx, safe, f, args.Gate)
			l.describe(safe)
		})
	}
	all.Wait(safe)
	if l.nextWave() > number {
		r.PauseUntil = workflow.Now(ctx).Add(args.Pause.Of())
	}
}

// fail ends a factory's part and stops the rollout.
func (l *lifecycle) fail(f *FactoryRun, state FactoryState, detail string) {
	f.end(state, detail)
	l.Rollout.stop(fmt.Sprintf("%s of wave %d: %s", f.FactoryID, f.Wave, f.Detail))
}

// concludeRollout ends the rollout with success or failure.
func (l *lifecycle) concludeRollout(ctx workflow.Context) error {
	r := l.Rollout
	if r.Stopped != "" {
		result := RunResult{Status: RunFailed, ExitCode: -1, Detail: r.failure()}
		if r.Cancelled {
			result.Status = RunCancelled
		}
		if err := l.failed(ctx, result); err != nil {
			return err
		}
		if l.State == artifact.Failed {
			l.unlock(ctx)
		}
		return nil
	}
	detail := fmt.Sprintf("%s in %s", count(len(r.Factories), "factory", "factories"), count(r.Waves, "wave", "waves"))
	err := l.move(ctx, artifact.Executed, artifact.System, detail, func(s *Step) { s.Head, s.Run = headRelease, l.Holder })
	if err != nil {
		return err
	}
	l.Holder = ""
	l.unlock(ctx)
	return l.publish(ctx)
}

// failure names the factories that failed with their reasons, and what stopped
// the rollout where that was something else.
func (r *Rollout) failure() string {
	var reasons []string
	for _, f := range r.where((*FactoryRun).broken) {
		reasons = append(reasons, fmt.Sprintf("%s (wave %d): %s", f.FactoryID, f.Wave, f.Detail))
	}
	if len(reasons) == 0 || r.Cancelled {
		reasons = slices.Insert(reasons, 0, r.Stopped)
	}
	untouched := len(r.where(func(f *FactoryRun) bool { return f.Change == 0 }))
	return cut(fmt.Sprintf("%s; not changed: %d of %d factories", strings.Join(reasons, "; "), untouched, len(r.Factories)), maxReason)
}

// health reads how factories are. It is given up after some minutes: a gate must
// not wait longer than it says.
func (l *lifecycle) health(safe workflow.Context, summary string, ids []string) ([]artifact.Health, error) {
	options := storeOptions(summary)
	options.ScheduleToCloseTimeout = healthPatience
	var result HealthResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(safe, options), HealthActivity, HealthRequest{FactoryIDs: ids}).Get(safe, &result)
	if err == nil && len(result.Factories) != len(ids) {
		err = temporal.NewNonRetryableApplicationError("the answer has not one state for each factory", ErrInvalid, nil)
	}
	return result.Factories, err
}
