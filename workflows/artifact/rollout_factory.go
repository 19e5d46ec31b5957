package artifact

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// job is a job that a device is doing.
type job struct {
	factoryID string
	result    *JobResult
	// stored tells that an answer counts only as the store has it; hinted, that one
	// is said to be there.
	stored, hinted bool
}

// listenJobs takes the answers of devices. Only the first to a job under way
// counts.
func (l *lifecycle) listenJobs(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, JobResultSignal)
	workflow.Go(ctx, func(ctx workflow.Context) {
		waiting, stop := workflow.NewDisconnectedContext(ctx)
		defer stop()
		for workflow.Await(waiting, func() bool { return channel.Len() > 0 }) == nil {
			var raw converter.RawValue
			channel.Receive(waiting, &raw)
			l.jobEnded(ctx, raw)
		}
	})
}

func (l *lifecycle) jobEnded(ctx workflow.Context, raw converter.RawValue) {
	var result JobResult
	if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &result); err != nil {
		l.refuseAnswer(ctx, JobResult{}, "can't be read: "+err.Error())
		return
	}
	j, known := l.jobs[result.RunID]
	switch {
	case !known || j.result != nil:
	case j.factoryID != result.FactoryID:
		l.refuseAnswer(ctx, result, "run "+result.RunID+" is of factory "+j.factoryID)
	case j.stored:
		j.hinted = true
	default:
		j.result = &result
	}
}

func (l *lifecycle) refuseAnswer(ctx workflow.Context, r JobResult, why string) {
	c := Command{Command: artifact.Command{Verb: JobResultSignal, Actor: r.FactoryID}}
	l.refuse(ctx, c, temporal.NewNonRetryableApplicationError(why, ErrRefused, nil))
}

// answered tells whether a job's answer is there. A hint is believed when the
// store says the same; one that is false is kept as a refusal.
func (l *lifecycle) answered(safe workflow.Context, runID string, j *job) bool {
	if j.result != nil || !j.hinted {
		return j.result != nil
	}
	j.hinted = false
	var end RunEnd
	err := l.local(safe, "Read how the job ended", ReadRunActivity, RunRef{VersionRef: l.ref(), RunID: runID}, &end)
	switch r := end.Result; {
	case err != nil:
		l.refuseAnswer(safe, JobResult{FactoryID: j.factoryID}, "run "+runID+" can't be read: "+messageOf(err))
	case !end.Ended:
		l.refuseAnswer(safe, JobResult{FactoryID: j.factoryID}, "run "+runID+" has not ended: no answer of its device was recorded")
	default:
		j.result = &JobResult{RunID: runID, FactoryID: j.factoryID, Status: r.Status, ExitCode: r.ExitCode, Detail: r.Detail, FinishedAt: end.FinishedAt}
	}
	return j.result != nil
}

// heard tells whether there is an answer, or a hint of one.
func (j *job) heard() bool { return j.result != nil || j.hinted }

// change sends the primary file to a factory and judges how the factory is
// afterwards. Its change is registered before the job is sent, so that whatever
// happens then is undone.
func (l *lifecycle) change(ctx, safe workflow.Context, f *FactoryRun, gate artifact.Gate) {
	before, err := l.health(safe, "See how "+f.FactoryID+" is before its job", []string{f.FactoryID})
	switch {
	case err != nil:
		l.fail(f, FactoryFailed, "not changed, its state can't be read: "+messageOf(err))
		return
	case before[0].Score == nil:
		l.fail(f, FactoryFailed, "not changed, it has no risk score to compare with")
		return
	}
	f.Baseline = &before[0]
	f.RunID = l.jobRunID(safe, artifact.Primary, f.FactoryID, 1)
	l.Rollout.Changes++
	f.Change, l.Began = l.Rollout.Changes, true
	l.describe(safe)
	done := l.doJob(safe, f.FactoryID, artifact.Primary, f.RunID)
	if !done.began {
		f.Change = 0
		l.Began = slices.ContainsFunc(l.Rollout.Factories, func(f *FactoryRun) bool { return f.Change > 0 })
		l.fail(f, FactoryFailed, "not changed, "+done.Detail)
		return
	}
	switch f.EndedAt = done.endedAt; done.Status {
	case RunSucceeded:
		l.judge(ctx, safe, f, gate)
	case RunTimedOut, RunWorkerLost:
		l.fail(f, FactoryTimedOut, done.Detail)
	default:
		l.fail(f, FactoryFailed, fmt.Sprintf("the job failed with exit code %d: %s", done.ExitCode, done.Detail))
	}
}

// jobRunID is the run id of one attempt at one factory. Answers are found by it, so
// it must not hang on what is written in words, as the provenance chain does: a
// lifecycle that goes on after a deployment must know its devices' answers.
func (l *lifecycle) jobRunID(ctx workflow.Context, role artifact.Role, factoryID string, attempt int) string {
	seed := fmt.Sprintf("%s %s %s %s %d", l.owner(ctx), workflow.GetInfo(ctx).OriginalRunID, role, factoryID, attempt)
	return artifact.NewRunID(workflow.Now(ctx), seed)
}

// done is how a job ended. Where nobody knows, it began.
type done struct {
	RunResult
	began   bool
	endedAt time.Time
	// final tells that trying again makes no sense.
	final bool
}

// doJob sends a job and waits for the device's answer until its deadline. The
// answer may come before the sender's, and without it.
func (l *lifecycle) doJob(safe workflow.Context, factoryID string, role artifact.Role, runID string) done {
	j := &job{factoryID: factoryID, stored: workflow.GetVersion(safe, storedAnswers, workflow.DefaultVersion, today) >= today}
	l.jobs[runID] = j
	defer delete(l.jobs, runID)
	sending, enough := workflow.WithCancel(safe)
	defer enough()
	request := JobRequest{
		VersionRef: l.ref(), RunID: runID, Role: role, BundleHash: l.BundleHash, WorkflowID: l.owner(safe), FactoryID: factoryID,
	}
	options := sendOptions(fmt.Sprintf("Send the %s file to %s as %s", role, factoryID, runID))
	sent := workflow.ExecuteActivity(workflow.WithActivityOptions(sending, options), SendJobActivity, request)
	for !sent.IsReady() {
		if err := workflow.Await(safe, func() bool { return j.heard() || sent.IsReady() }); err != nil {
			return l.settleJob(safe, runID, RunWorkerLost, err)
		}
		if l.answered(safe, runID, j) {
			return j.done()
		}
	}
	out := JobSent{SentAt: workflow.Now(safe)}
	err := sent.Get(safe, &out)
	if typeOf(err) == ErrSentBefore { // nobody knows what it did
		return done{RunResult: RunResult{Status: RunWorkerLost, ExitCode: -1, Detail: short(messageOf(err))}, began: true, endedAt: workflow.Now(safe).UTC()}
	}
	if isFinal(err) {
		return l.settleJob(safe, runID, RunFailed, err)
	}
	// A sender that failed otherwise may have sent: the device has its time.
	deadline := out.SentAt.Add(l.request.Spec.Limits.Timeout.Of() + jobGrace)
	broken := l.awaitAnswer(safe, runID, j, max(time.Second, deadline.Sub(workflow.Now(safe))))
	if j.result != nil {
		return j.done()
	}
	if err == nil {
		err = broken
	}
	return l.settleJob(safe, runID, RunTimedOut, err)
}

// awaitAnswer waits for an answer that counts, for a time.
func (l *lifecycle) awaitAnswer(safe workflow.Context, runID string, j *job, patience time.Duration) error {
	until := workflow.Now(safe).Add(patience)
	for left := patience; left > 0; left = until.Sub(workflow.Now(safe)) {
		wait := workflow.AwaitOptions{Timeout: left, TimerOptions: workflow.TimerOptions{Summary: "Until the answer of " + j.factoryID + " is overdue"}}
		_, err := workflow.AwaitWithOptions(safe, wait, j.heard)
		if err != nil || l.answered(safe, runID, j) {
			return err
		}
	}
	return nil
}

// isFinal tells whether the sender refused the job, and would do so again.
func isFinal(err error) bool {
	switch typeOf(err) {
	case ErrInvalid, ErrForbidden, ErrIntegrity, ErrConflict, ErrNotConfigured:
		return true
	}
	return false
}

func (j *job) done() done {
	r := *j.result
	return done{RunResult: RunResult{Status: r.Status, ExitCode: r.ExitCode, Detail: short(r.Detail)}, began: true, endedAt: r.FinishedAt}
}

// settleJob finds out what became of a job without an answer: its result may have
// been recorded although nobody told of it.
func (l *lifecycle) settleJob(safe workflow.Context, runID, status string, cause error) done {
	request := SettleRequest{VersionRef: l.ref(), RunID: runID, Status: status, Detail: "the device gave no answer in time"}
	if cause != nil {
		request.Detail = short(messageOf(cause))
	}
	var settled SettleResult
	if err := l.local(safe, "Find out what became of the job", SettleRunActivity, request, &settled); err != nil {
		settled = SettleResult{Began: true, Result: RunResult{Status: status, ExitCode: -1, Detail: short(messageOf(err))}}
	}
	d := done{RunResult: settled.Result, began: settled.Began, endedAt: workflow.Now(safe).UTC(), final: isFinal(cause)}
	if !d.began {
		d.RunResult = RunResult{Status: RunFailed, ExitCode: -1, Detail: "the job was never sent: " + request.Detail}
	}
	return d
}

// judge waits for data of the factory that is newer than its job and has the gate
// judge it. A cancellation ends the wait.
func (l *lifecycle) judge(ctx, safe workflow.Context, f *FactoryRun, gate artifact.Gate) {
	f.State = FactoryJudging
	l.describe(safe)
	until := workflow.Now(safe).Add(gate.Within.Of())
	verdict, why, poll := artifact.Stale, "", firstGatePoll
	for ; verdict == artifact.Stale; poll = nextGatePoll(gate, poll) {
		left := until.Sub(workflow.Now(safe))
		if left <= 0 || ctx.Err() != nil {
			break
		}
		options := workflow.AwaitOptions{Timeout: min(poll, left), TimerOptions: workflow.TimerOptions{Summary: "Until " + f.FactoryID + " is looked at"}}
		if _, err := workflow.AwaitWithOptions(safe, options, func() bool { return ctx.Err() != nil }); err != nil {
			break
		}
		now, err := l.health(safe, "See how "+f.FactoryID+" is after its job", []string{f.FactoryID})
		if err != nil {
			why = "its state can't be read: " + messageOf(err)
			continue
		}
		verdict, why = gate.Judge(*f.Baseline, now[0], f.EndedAt)
		f.After = now[0].Score
	}
	switch f.Verdict = verdict; {
	case verdict == artifact.Passed:
		f.end(FactoryPassed, why)
	case verdict == artifact.Stale && ctx.Err() != nil:
		l.fail(f, FactoryFailed, "the workflow was cancelled before the factory was judged")
	case verdict == artifact.Stale:
		l.fail(f, FactoryFailed, fmt.Sprintf("after %s %s", gate.Within.Of(), why))
	default:
		l.fail(f, FactoryFailed, why)
	}
}

// nextGatePoll is the time until the look after the next: ever longer, so that
// news is seen soon and the history stays short, at most forty looks.
func nextGatePoll(gate artifact.Gate, poll time.Duration) time.Duration {
	return min(poll*3/2, max(slowGatePoll, gate.Within.Of()/20))
}

// sendOptions are for handing a job to the broker: tried for ten minutes, then
// the device may or may not have it.
func sendOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: 10 * time.Minute,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	}
}

const (
	// rolloutParallel bounds the factories of a wave that are changed together.
	rolloutParallel = 10
	// jobGrace is what a job may take beyond its own timeout: the way through
	// broker, rule and queue and back.
	jobGrace = 2 * time.Minute
	// healthPatience is how long a state that can't be read is asked for.
	healthPatience = 5 * time.Minute
	// firstGatePoll is the first wait for news of a factory. It grows by half up to
	// slowGatePoll, or a twentieth of the gate's time where that is more.
	firstGatePoll = 2 * time.Second
	slowGatePoll  = 15 * time.Second
)
