package artifact

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// move writes a change of state and makes it.
func (l *lifecycle) move(ctx workflow.Context, to artifact.State, actor, reason string, change func(*Step)) error {
	if err := artifact.Transit(l.State, to); err != nil {
		return applicationError(err)
	}
	return l.commit(ctx, string(to), to, actor, reason, change)
}

// commit writes a step in one transaction and then makes it in memory.
func (l *lifecycle) commit(ctx workflow.Context, name string, to artifact.State, actor, reason string, change func(*Step)) error {
	step := Step{ArtifactID: l.request.ArtifactID, Version: l.request.Version, From: l.State, To: to, Reason: reason}
	at := l.stamp(ctx)
	if change != nil {
		change(&step)
	}
	if step.Decision != nil {
		step.Decision.RecordedAt = at
	}
	bundle := l.BundleHash
	if step.BundleHash != "" {
		bundle = step.BundleHash
	}
	event := artifact.Event{From: step.From, To: to, Reason: reason, Run: step.Run, BundleHash: bundle, Decision: step.Decision}
	if err := l.tellAll(ctx, step, &event); err != nil {
		return err
	}
	record, chain, err := l.Chain.Extend(l.request.Version, name, actor, at, bundle, event)
	if err != nil {
		return err
	}
	step.Record = record
	var written Written
	if err := l.local(ctx, fmt.Sprintf("Write %s by %s", name, actor), CommitActivity, step, &written); err != nil {
		return err
	}
	l.adopt(step, written, chain)
	if step.BundleHash != "" {
		l.request.Files, l.BundleHash = step.Files, step.BundleHash
	}
	if step.Spec != nil {
		l.request.Spec = *step.Spec
	}
	if to != l.State {
		l.Reason = cut(reason, maxReason)
		l.enter(to, l.LastAt)
	}
	l.describe(ctx)
	return nil
}

// tellAll has an event tell all that its step changes: whatever is not in the
// chain could be changed behind it.
func (l *lifecycle) tellAll(ctx workflow.Context, step Step, event *artifact.Event) error {
	if l.Settings.Provenance < WholeProvenance {
		return nil
	}
	event.Files, event.ArchivePrefix = step.Files, step.ArchivePrefix
	if u := step.Undo; u != nil {
		event.Undo = &artifact.UndoMark{State: u.State, RunID: u.RunID, Attempts: u.Attempts, Detail: u.Detail, StartedAt: u.StartedAt}
	}
	if step.From == step.To || step.From != artifact.Executing && step.From != artifact.Compensating {
		return nil
	}
	event.Runs = &artifact.RunsMark{}
	return l.local(ctx, "Sum up what became of the runs", SumRunsActivity, l.ref(), event.Runs)
}

// adopt goes on from a step as it was written.
func (l *lifecycle) adopt(step Step, written Written, chain artifact.Chain) {
	if written.Record.Hash == "" { // histories from before the answer had it
		written = Written{Record: step.Record, Run: step.Run}
	}
	l.Chain, l.LastAt = artifact.Chain{Length: chain.Length, Last: written.Record.Hash}, written.Record.At
	if step.Decision != nil {
		step.Decision.RecordedAt = written.Record.At
	}
	if step.Head == headRun || step.Head == headUndo {
		l.Holder = written.Run
	}
}

// publish writes metadata.json, and the provenance document once the outcome is
// known.
func (l *lifecycle) publish(ctx workflow.Context) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	request := PublishRequest{VersionRef: l.ref(), Provenance: l.State.Settled()}
	options := contentOptions("Write the snapshots of metadata and provenance")
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), PublishActivity, request).Get(ctx, nil)
}

// notify raises an alert and waits for nobody to see it. A failure is logged
// only: alerts must not stop a lifecycle.
func (l *lifecycle) notify(ctx workflow.Context, reason, summary string, danger bool) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	request := AlertRequest{VersionRef: l.ref(), Reason: reason, Danger: danger, State: l.State, Summary: summary, At: workflow.Now(ctx)}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(disconnected, noticeOptions("Alert: "+reason)), AlertActivity, request).Get(disconnected, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("alert was not raised", "reason", reason, "error", err)
	}
}

func (l *lifecycle) ref() VersionRef {
	return VersionRef{ArtifactID: l.request.ArtifactID, Version: l.request.Version}
}

// typeOf is the type of an activity's error, "" for what has none.
func typeOf(err error) string {
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return e.Type()
	}
	return ""
}

// messageOf is an activity's error without the wrapping of the SDK.
func messageOf(err error) string {
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return e.Message()
	}
	return err.Error()
}

// applicationError gives a rule's error its type for callers.
func applicationError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*artifact.InvalidError](err); ok {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrInvalid, nil)
	}
	if _, ok := errors.AsType[*artifact.RefusedError](err); ok {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrRefused, nil)
	}
	if _, ok := errors.AsType[*artifact.TransitionError](err); ok {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrConflict, nil)
	}
	return err
}
