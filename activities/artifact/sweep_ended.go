package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"

	"millrace/domain/alert"
	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// closedRest is how long a workflow has been closed before its version is settled
// in its place: by then what it ran is dead, for nobody answers its heartbeats.
const closedRest = 2 * time.Minute

// unsettled are the states in which a version waits for its lifecycle, with what
// it comes to without one. Nobody decided about what was not begun: it expires. A
// failed version that still holds HEAD was about to be undone, which is then what
// failed.
var unsettled = []struct{ from, to artifact.State }{
	{artifact.Draft, artifact.Expired},
	{artifact.InReview, artifact.Expired},
	{artifact.Approved, artifact.Expired},
	{artifact.Executing, artifact.Failed},
	{artifact.Compensating, artifact.CompensationFailed},
	{artifact.Failed, artifact.Compensating},
}

// ended settles the versions whose lifecycles were closed before they had settled
// them, and gives HEAD free, so that other versions may run.
func (s Sweeper) ended(ctx context.Context, report *workflows.SweepReport) error {
	for _, state := range unsettled {
		err := s.each(ctx, state.from, func(v storage.Artifact) error {
			err := s.repair(ctx, v, state.to, report)
			if err == nil || ctx.Err() != nil || typeOf(err) == "" { // an outage ends the sweep, which is done again
				return err
			}
			id := names.ArtifactLifecycleID(v.ArtifactID, v.Version)
			s.Logger.WarnContext(ctx, "version of a lifecycle that has ended was not settled", "workflow", id, "error", err)
			if len(report.Failed) < reported {
				report.Failed = append(report.Failed, fmt.Sprintf("%s: %v", id, err))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// repair settles one version. The alert comes first: it may come twice, and must
// come once.
func (s Sweeper) repair(ctx context.Context, v storage.Artifact, to artifact.State, report *workflows.SweepReport) error {
	if v.Compensates != "" {
		return nil // its original's lifecycle has it
	}
	head, err := s.Store.Head(ctx, v.ArtifactID)
	if err != nil || v.State == artifact.Failed && head.ExecutingRun == "" {
		return err
	}
	id := names.ArtifactLifecycleID(v.ArtifactID, v.Version)
	how, err := s.closed(ctx, id)
	if err != nil || how == "" {
		return err
	}
	// What was listed may have gone on before its workflow was closed.
	from := v.State
	if v, err = s.Store.Version(ctx, v.ArtifactID, v.Version); err != nil || v.State != from {
		return err
	}
	e := ending{Sweeper: s, v: v, to: to, how: how}
	if e.records, err = s.Store.Provenance(ctx, v.ArtifactID, v.Version); err != nil {
		return err
	}
	if e.holder, err = e.held(ctx, head); err != nil || v.State == artifact.Failed && e.holder == "" {
		return err
	}
	if report.Settled++; len(report.Settlements) < reported {
		report.Settlements = append(report.Settlements, fmt.Sprintf("%s: %s to %s, %s", id, v.State, to, how))
	}
	if report.DryRun {
		return nil
	}
	if err := e.settle(ctx); err != nil || to != artifact.Compensating {
		return err
	}
	v.State = to
	return s.repair(ctx, v, artifact.CompensationFailed, report)
}

// lifecycleEnded begins the reasons of versions that were settled in place of their
// lifecycles.
const lifecycleEnded = "the lifecycle "

// closed tells how a workflow was closed; "" of one that runs, or did just now.
func (s Sweeper) closed(ctx context.Context, id string) (string, error) {
	description, err := s.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if isNotFound(err) {
		return lifecycleEnded + "is gone", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", id, err)
	}
	info := description.GetWorkflowExecutionInfo()
	closing := info.GetCloseTime()
	if closing != nil && s.Now().Before(closing.AsTime().Add(closedRest)) {
		return "", nil
	}
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_PAUSED, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "", nil
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return lifecycleEnded + "was terminated", nil
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return lifecycleEnded + "was cancelled", nil
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return lifecycleEnded + "failed", nil
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return lifecycleEnded + "ended early", nil
	}
	return "", fmt.Errorf("workflow %s is in an unknown state, %s", id, info.GetStatus())
}

// ending is how one version is settled without its lifecycle.
type ending struct {
	Sweeper
	v       storage.Artifact
	to      artifact.State
	how     string
	records []artifact.Record
	// holder is the run for which the version holds HEAD.
	holder string
}

// held is the run for which this very version holds HEAD.
func (e ending) held(ctx context.Context, head storage.Head) (string, error) {
	if head.ExecutingRun == "" || e.running() {
		return head.ExecutingRun, nil // HEAD lets one version at a time run
	}
	if e.v.State != artifact.Failed {
		return "", nil
	}
	for _, r := range e.records {
		if r.Event != nil && r.Event.Run == head.ExecutingRun {
			return head.ExecutingRun, nil
		}
	}
	run, err := e.Store.Run(ctx, e.v.ArtifactID, head.ExecutingRun)
	if errors.Is(err, storage.ErrNotFound) || err == nil && run.Version != e.v.Version {
		return "", nil
	}
	return head.ExecutingRun, err
}

func (e ending) running() bool {
	return e.v.State == artifact.Executing || e.v.State == artifact.Compensating
}

func (e ending) settle(ctx context.Context) error {
	now := e.Now()
	if !now.After(e.v.UpdatedAt) {
		now = e.v.UpdatedAt.Add(time.Nanosecond)
	}
	step := storage.Step{ArtifactID: e.v.ArtifactID, Version: e.v.Version, From: e.v.State, To: e.to, Reason: e.how, Run: e.holder}
	switch {
	case e.to == artifact.Compensating:
		step.Head = storage.HeadUndo
	case e.holder != "":
		step.Head = storage.HeadRelease
	}
	if e.v.State == artifact.Executing {
		step.Reason = workflows.RunWorkerLost + ": " + e.how
	}
	event := artifact.Event{From: step.From, To: step.To, Reason: step.Reason, Run: step.Run, BundleHash: e.v.BundleHash}
	if err := e.settleRuns(ctx, now, &event); err != nil {
		return err
	}
	if err := e.settleUndo(ctx, now, &step, &event); err != nil {
		return err
	}
	return e.commit(ctx, now, step, event)
}

// commit alerts, writes the step and then the snapshots.
func (e ending) commit(ctx context.Context, now time.Time, step storage.Step, event artifact.Event) error {
	if !e.whole() {
		event.Undo, event.Runs = nil, nil
	}
	chain := artifact.Chain{Length: e.v.ChainLength, Last: e.v.ChainLast}
	var err error
	if step.Record, _, err = chain.Extend(e.v.Version, string(step.To), artifact.System, now, e.v.BundleHash, event); err != nil {
		return err
	}
	if step.To == artifact.Compensating {
		return e.Store.Commit(ctx, step) // it goes on at once
	}
	if err := e.alert(ctx, now); err != nil {
		return err
	}
	if err := e.Store.Commit(ctx, step); err != nil {
		return err
	}
	return e.snapshots(ctx, e.v.ArtifactID, e.v.Version)
}

// whole tells whether the chain tells all that its steps changed.
func (e ending) whole() bool {
	return len(e.records) > 0 && e.records[0].Event != nil && e.records[0].Event.Origin != nil
}

// settleRuns declares lost what no lifecycle waits for any more, and keeps the run
// that HEAD is held for from ever beginning.
func (e ending) settleRuns(ctx context.Context, now time.Time, event *artifact.Event) error {
	if !e.running() {
		return nil
	}
	if e.holder != "" && e.v.Kind != artifact.IoTJob && e.v.State == artifact.Executing {
		if _, err := e.Store.Forbid(ctx, e.v.ArtifactID, e.v.Version, e.holder, e.how, now); err != nil {
			return err
		}
	}
	runs, err := e.Store.Runs(ctx, e.v.ArtifactID, e.v.Version)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.Status == storage.NeverBegan {
			continue
		}
		if _, _, err := e.Store.Lose(ctx, e.v.ArtifactID, run.RunID, storage.WorkerLost, e.how, now); err != nil {
			return err
		}
	}
	if runs, err = e.Store.Runs(ctx, e.v.ArtifactID, e.v.Version); err != nil {
		return err
	}
	mark, err := storage.SumRuns(runs)
	event.Runs = &mark
	return err
}

// settleUndo has the compensation that was under way, or due, fail with its version.
func (e ending) settleUndo(ctx context.Context, now time.Time, step *storage.Step, event *artifact.Event) error {
	undo := storage.Undo{State: storage.CompensationFailed, Detail: e.how, StartedAt: now}
	switch {
	case e.to == artifact.Compensating:
		undo.State = storage.CompensationRunning
	case e.v.State != artifact.Compensating:
		return nil
	}
	all, err := e.Store.Compensations(ctx, e.v.ArtifactID)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Version == e.v.Version {
			undo.RunID, undo.Attempts, undo.StartedAt = c.RunID, c.Attempts, c.CreatedAt
		}
	}
	step.Undo = &undo
	event.Undo = &artifact.UndoMark{State: string(undo.State), RunID: undo.RunID, Attempts: undo.Attempts, Detail: undo.Detail, StartedAt: undo.StartedAt}
	return nil
}

func (e ending) alert(ctx context.Context, now time.Time) error {
	r := workflows.AlertRequest{
		VersionRef: workflows.VersionRef{ArtifactID: e.v.ArtifactID, Version: e.v.Version}, Reason: "lifecycle_lost", Danger: e.holder != "", State: e.to,
		Summary: fmt.Sprintf("%s v%d was %s when %s", e.v.ArtifactID, e.v.Version, strings.ReplaceAll(string(e.v.State), "_", " "), e.how), At: now,
	}
	e.Logger.WarnContext(ctx, "artifact needs attention", "artifact", r.ArtifactID, "version", r.Version, "reason", r.Reason, "state", r.State)
	if e.Alerts == nil {
		return nil
	}
	return e.Alerts.Signal(ctx, alert.ScopeArtifacts, decisionOf(r))
}

// snapshots writes metadata.json and the provenance document.
func (s Sweeper) snapshots(ctx context.Context, id string, version int) error {
	if err := s.Store.WriteMetadata(ctx, id, version); err != nil {
		return err
	}
	return s.Store.WriteProvenance(ctx, id)
}
