package artifact

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// startUndo is the move to compensating. It claims HEAD, so that no other
// version runs meanwhile.
func (l *lifecycle) startUndo(ctx workflow.Context, actor, reason string) error {
	holder := l.Holder
	if holder == "" {
		holder = artifact.NewRunID(workflow.Now(ctx), l.Chain.Last)
	}
	undo := &Undo{State: undoRunning, StartedAt: l.stamp(ctx)}
	if l.Undo != nil {
		undo.StartedAt, undo.Attempts = l.Undo.StartedAt, l.Undo.Attempts
	}
	err := l.move(ctx, artifact.Compensating, actor, reason, func(s *Step) { s.Head, s.Run, s.Undo = headUndo, holder, undo })
	if err != nil {
		return err
	}
	if undo.Attempts == 0 {
		undo.StartedAt = l.LastAt
	}
	l.Undo = undo
	if l.Rollout != nil {
		l.Rollout.Round++
		l.Rollout.LockBy = time.Time{}
	}
	return nil
}

// compensate runs the rollback file until it succeeds, up to five times, each a
// run of its own. It goes on although the workflow is cancelled.
func (l *lifecycle) compensate(ctx workflow.Context) error {
	l.flush(ctx)
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	l.waiting = "the rollback to end"
	l.describe(ctx)
	if wait := l.SafeAt.Sub(workflow.Now(ctx)); wait > 0 {
		if err := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "Until a lost script is surely dead"}).Get(ctx, nil); err != nil {
			return err
		}
	}
	for attempt := range undoAttempts {
		if attempt > 0 {
			if err := workflow.Sleep(ctx, undoWait<<(attempt-1)); err != nil {
				return err
			}
		}
		result, final := l.undoOnce(ctx)
		l.Undo = &Undo{State: undoFailed, RunID: l.Undo.RunID, Attempts: l.Undo.Attempts, StartedAt: l.Undo.StartedAt, Detail: result.Detail}
		if result.Status == RunSucceeded {
			l.Undo.State = undoDone
			return l.undone(ctx, artifact.Compensated, "")
		}
		if final {
			break
		}
	}
	if err := l.undone(ctx, artifact.CompensationFailed, l.Undo.Detail); err != nil {
		return err
	}
	l.notify(ctx, "compensation_failed", fmt.Sprintf("%s v%d could not be undone: %s", l.request.ArtifactID, l.request.Version, l.Undo.Detail), true)
	return nil
}

// undoOnce verifies and runs the rollback file, and tells whether trying again
// makes no sense.
func (l *lifecycle) undoOnce(ctx workflow.Context) (RunResult, bool) {
	verify := VerifyRequest{VersionRef: l.ref(), BundleHash: l.BundleHash}
	options := contentOptions("Read the rollback again")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), VerifyActivity, verify).Get(ctx, nil); err != nil {
		return RunResult{Status: RunFailed, ExitCode: -1, Detail: fmt.Sprintf("%s: %s", typeOf(err), messageOf(err))}, true
	}
	run := artifact.NewRunID(workflow.Now(ctx), fmt.Sprintf("%s undo %d", l.Chain.Last, l.Undo.Attempts))
	l.Undo = &Undo{State: undoRunning, RunID: run, Attempts: l.Undo.Attempts + 1, StartedAt: l.Undo.StartedAt}
	l.Runs = remember(l.Runs, RunInfo{RunID: run, Role: artifact.Rollback, Status: "running", At: workflow.Now(ctx)}, maxRuns)
	l.describe(ctx)
	result, _ := l.runFile(ctx, artifact.Rollback, run)
	return result, false
}

// undone ends compensating and gives HEAD free.
func (l *lifecycle) undone(ctx workflow.Context, to artifact.State, reason string) error {
	undo := *l.Undo
	err := l.move(ctx, to, artifact.System, reason, func(s *Step) { s.Head, s.Run, s.Undo = headRelease, l.Holder, &undo })
	if err != nil {
		return err
	}
	l.Holder = ""
	return l.publish(ctx)
}
