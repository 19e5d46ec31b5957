package artifact

import (
	"cmp"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/workflows/names"
)

// ArtifactLifecycle is the life of one version of an artifact, from submission
// until it is archived. It alone writes the version's state.
func ArtifactLifecycle(ctx workflow.Context, in Input) error {
	l, err := newLifecycle(ctx, in)
	if err != nil {
		return err
	}
	if err := l.register(ctx); err != nil {
		return err
	}
	return l.run(ctx)
}

// lifecycle is a running ArtifactLifecycle.
type lifecycle struct {
	request artifact.Request
	Carry
	// inbox has the commands that wait for their turn: they are taken one by one.
	inbox []*pending
	// waiting and until are what the version waits for, in words and time.
	waiting string
	until   time.Time
	// jobs are those that devices are doing, by run id.
	jobs map[string]*job
}

func newLifecycle(ctx workflow.Context, in Input) (*lifecycle, error) {
	l := &lifecycle{request: in.Request, jobs: map[string]*job{}}
	info := workflow.GetInfo(ctx)
	if in.Carry != nil {
		if info.ContinuedExecutionRunID == "" {
			return nil, temporal.NewNonRetryableApplicationError("carry is for the continuation of a lifecycle only", ErrForbidden, nil)
		}
		l.Carry = *in.Carry
		return l, nil
	}
	request, err := in.Request.Check()
	if err != nil {
		return nil, applicationError(err)
	}
	if err := cmp.Or(in.unknown, request.CheckWords()); err != nil && workflow.GetVersion(ctx, strictInput, workflow.DefaultVersion, today) >= today {
		return nil, applicationError(err)
	}
	l.request = request
	if want := names.ArtifactLifecycleID(request.ArtifactID, request.Version); info.WorkflowExecution.ID != want {
		return nil, temporal.NewNonRetryableApplicationError("the workflow id of this version is "+want, ErrInvalid, nil)
	}
	return l, nil
}

func (l *lifecycle) run(ctx workflow.Context) error {
	if l.State == artifact.None {
		if err := l.create(ctx); err != nil {
			return err
		}
	}
	l.describe(ctx)
	for l.State != artifact.Archived {
		if l.mayContinue(ctx) {
			return l.continueAsNew(ctx)
		}
		err := l.live(ctx)
		if temporal.IsCanceledError(err) && l.leftToUndo(ctx) {
			ctx, _ = workflow.NewDisconnectedContext(ctx) // nothing can cancel it once more
			continue
		}
		if temporal.IsCanceledError(err) {
			return l.cancelled(ctx, err)
		}
		if err != nil {
			return err
		}
	}
	return l.finish(ctx)
}

// live does what the state asks for next, or waits for it.
func (l *lifecycle) live(ctx workflow.Context) error {
	switch l.State {
	case artifact.Draft:
		return l.draft(ctx)
	case artifact.InReview:
		return l.review(ctx)
	case artifact.Approved:
		return l.approved(ctx)
	case artifact.Executing:
		if l.inWaves() {
			return l.rollOut(ctx)
		}
		return l.execute(ctx)
	case artifact.Compensating:
		if l.inWaves() {
			return l.rollBack(ctx)
		}
		return l.compensate(ctx)
	}
	return l.settled(ctx)
}

// create checks the request, stores its content and writes the version.
func (l *lifecycle) create(ctx workflow.Context) error {
	var p Prepared
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, contentOptions("Check the request and store its content")), PrepareActivity, l.request).Get(ctx, &p)
	if err != nil {
		return err
	}
	l.request.Spec, l.request.Files = p.Spec, p.Files
	l.BundleHash, l.Settings = p.BundleHash, p.Settings
	state := artifact.InReview
	if l.request.Draft {
		state = artifact.Draft
	}
	at := l.stamp(ctx)
	event := artifact.Event{To: state, Reason: l.request.Reason, BundleHash: l.BundleHash}
	if l.Settings.Provenance >= WholeProvenance {
		r := l.request
		event.Files = r.Files
		event.Origin = &artifact.Origin{
			ArtifactID: r.ArtifactID, Author: r.Author, Kind: r.Spec.Kind, Submission: p.Assurance, Claim: r.Claim, Creator: workflow.GetInfo(ctx).FirstRunID,
		}
	}
	record, chain, err := l.Chain.Extend(l.request.Version, "submitted", l.request.Author, at, l.BundleHash, event)
	if err != nil {
		return err
	}
	create := CreateRequest{
		Request: l.request, BundleHash: l.BundleHash, State: state, Record: record, Assurance: p.Assurance, Creator: workflow.GetInfo(ctx).FirstRunID,
	}
	var written Written
	if err := l.local(ctx, "Write the version", CreateActivity, create, &written); err != nil {
		return err
	}
	l.adopt(Step{Record: record}, written, chain)
	l.enter(state, l.LastAt)
	return l.publish(ctx)
}

// enter is the state's change in memory, after it was written.
func (l *lifecycle) enter(state artifact.State, at time.Time) {
	l.State, l.Since = state, at
	switch state {
	case artifact.InReview:
		l.ReviewSince, l.RemindedAt = at, at
	case artifact.Approved:
		l.ApprovedAt = at
	}
}

// stamp is the time of the next step: now, but after the last one, since keys
// must differ.
func (l *lifecycle) stamp(ctx workflow.Context) time.Time {
	now := workflow.Now(ctx).UTC()
	if !now.After(l.LastAt) {
		now = l.LastAt.Add(time.Nanosecond)
	}
	return now
}

// local runs a local activity that must not be cut short by a cancellation.
func (l *lifecycle) local(ctx workflow.Context, summary, name string, request, result any) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions(summary)), name, request).Get(ctx, result)
}

// leftToUndo tells whether a cancelled lifecycle must stay open: an undo that
// failed is to be tried again, which nobody else could do.
func (l *lifecycle) leftToUndo(ctx workflow.Context) bool {
	return l.State == artifact.CompensationFailed && workflow.GetVersion(ctx, openUndos, workflow.DefaultVersion, today) >= today
}

// cancelled ends a lifecycle whose workflow was cancelled: what was not decided
// is withdrawn, and what is settled stays for the archive job.
func (l *lifecycle) cancelled(ctx workflow.Context, cause error) error {
	switch l.State {
	case artifact.Draft, artifact.InReview, artifact.Approved:
		if err := l.move(ctx, artifact.Withdrawn, artifact.System, "the workflow was cancelled", nil); err != nil {
			return errors.Join(cause, err)
		}
	}
	if err := l.finish(ctx); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// finish answers everybody who still waits.
func (l *lifecycle) finish(ctx workflow.Context) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		l.drain(ctx)
		l.flush(ctx)
		if workflow.AllHandlersFinished(ctx) {
			return nil
		}
		if err := workflow.Await(ctx, func() bool { return len(l.inbox) > 0 || workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
	}
}

// mayContinue tells whether the history is long and nothing is under way. A
// cancelled lifecycle is brought to its end in this run: the next one would not
// know.
func (l *lifecycle) mayContinue(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && l.atRest() && ctx.Err() == nil
}

// atRest tells whether all that is under way is in Carry. That of a rollout is,
// between two of its parts.
func (l *lifecycle) atRest() bool {
	running := l.State == artifact.Executing || l.State == artifact.Compensating
	return !running || l.Rollout != nil
}

// inWaves tells whether the version runs on the devices of factories.
func (l *lifecycle) inWaves() bool { return l.request.Spec.Kind == artifact.IoTJob }

// continueAsNew takes every command that has arrived and goes on in a new run.
func (l *lifecycle) continueAsNew(ctx workflow.Context) error {
	for {
		l.drain(ctx)
		if len(l.inbox) > 0 {
			l.serve(ctx)
			continue
		}
		if workflow.AllHandlersFinished(ctx) {
			break
		}
		if err := workflow.Await(ctx, func() bool { return len(l.inbox) > 0 || workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
	}
	if !l.atRest() {
		return l.run(ctx) // a command began a run: it comes first
	}
	carry := l.Carry
	return workflow.NewContinueAsNewError(ctx, ArtifactLifecycle, Input{Request: l.request, Carry: &carry})
}
