package artifact

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// rollBack sends the rollback file to the factories that were changed and not
// undone yet, the last changed first. It goes on although the workflow is
// cancelled. Between two factories it may continue as new.
func (l *lifecycle) rollBack(ctx workflow.Context) error {
	l.flush(ctx)
	safe, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if why := l.mayRollBack(safe); why != "" {
		return l.concludeRollBack(safe, why)
	}
	lost := ""
	renewing := l.keepLocks(safe, l.Rollout.left(), func(why string) { lost = why })
	defer renewing.stop()
	for f := l.Rollout.nextUndo(); f != nil && lost == ""; f = l.Rollout.nextUndo() {
		if l.mayContinue(ctx) {
			return nil
		}
		l.undoFactory(safe, f)
	}
	return l.concludeRollBack(safe, lost)
}

// mayRollBack verifies the rollback file and has the factories locked, and tells
// what stands in the way.
func (l *lifecycle) mayRollBack(safe workflow.Context) string {
	left := l.Rollout.left()
	if l.Rollout.LockBy.IsZero() {
		l.Rollout.LockBy = workflow.Now(safe).Add(lockWait)
	}
	l.expect(safe, count(len(left), "factory", "factories")+" to be undone", time.Time{})
	verify := VerifyRequest{VersionRef: l.ref(), BundleHash: l.BundleHash}
	options := contentOptions("Read the rollback again")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(safe, options), VerifyActivity, verify).Get(safe, nil); err != nil {
		return fmt.Sprintf("%s: %s", typeOf(err), messageOf(err))
	}
	return l.lock(safe, idsOf(left), func() bool { return false })
}

// left are the factories that were changed and not undone, the last changed
// first.
func (r *Rollout) left() []*FactoryRun {
	left := r.where(func(f *FactoryRun) bool { return f.Change > 0 && (f.Undo == nil || f.Undo.State != undoDone) })
	slices.SortFunc(left, func(a, b *FactoryRun) int { return b.Change - a.Change })
	return left
}

// nextUndo is the factory whose turn it is in this round, nil at its end.
func (r *Rollout) nextUndo() *FactoryRun {
	for _, f := range r.left() {
		if f.Undo == nil || f.Undo.Round < r.Round {
			return f
		}
	}
	return nil
}

// undoFactory sends the rollback file until a job with it succeeds, up to five
// times, each a run of its own.
func (l *lifecycle) undoFactory(safe workflow.Context, f *FactoryRun) {
	if f.Undo == nil {
		f.Undo = &FactoryUndo{}
	}
	f.Undo.Round = l.Rollout.Round
	for attempt := range undoAttempts {
		if attempt > 0 {
			if err := workflow.NewTimerWithOptions(safe, undoWait<<(attempt-1), workflow.TimerOptions{Summary: "Until " + f.FactoryID + " is tried again"}).Get(safe, nil); err != nil {
				break
			}
		}
		d := l.undoFactoryOnce(safe, f)
		if f.Undo.State == undoDone || d.final {
			return
		}
	}
}

func (l *lifecycle) undoFactoryOnce(safe workflow.Context, f *FactoryRun) done {
	f.Undo.Attempts++
	l.Undo.Attempts++
	f.Undo.State, f.Undo.RunID = undoRunning, l.jobRunID(safe, artifact.Rollback, f.FactoryID, f.Undo.Attempts)
	l.Undo.RunID = f.Undo.RunID
	l.expect(safe, fmt.Sprintf("the rollback of factory %s, attempt %d", f.FactoryID, f.Undo.Attempts), time.Time{})
	d := l.doJob(safe, f.FactoryID, artifact.Rollback, f.Undo.RunID)
	f.Undo.State, f.Undo.Detail = undoFailed, d.Detail
	if d.Status == RunSucceeded {
		f.Undo.State, f.Undo.Detail = undoDone, ""
	}
	l.describe(safe)
	return d
}

// concludeRollBack ends compensating: well when nothing is left, else naming the
// factories that are.
func (l *lifecycle) concludeRollBack(safe workflow.Context, why string) error {
	left := l.Rollout.left()
	undo := *l.Undo
	undo.State, undo.Detail = undoDone, ""
	to := artifact.Compensated
	if len(left) > 0 {
		to, undo.State, undo.Detail = artifact.CompensationFailed, undoFailed, notUndone(left, why)
	}
	l.Undo = &undo
	if err := l.undone(safe, to, undo.Detail); err != nil {
		return err
	}
	l.unlock(safe)
	if len(left) > 0 {
		l.notify(safe, "compensation_failed", fmt.Sprintf("%s v%d could not be undone: %s", l.request.ArtifactID, l.request.Version, undo.Detail), true)
	}
	return nil
}

// notUndone names the factories that are left, each with its reason.
func notUndone(left []*FactoryRun, why string) string {
	reasons := make([]string, len(left))
	for i, f := range left {
		reasons[i] = f.FactoryID
		if f.Undo != nil && f.Undo.Detail != "" {
			reasons[i] += " (" + f.Undo.Detail + ")"
		}
	}
	if why != "" {
		why += "; "
	}
	return cut(why+"left to undo: "+strings.Join(reasons, ", "), maxReason)
}
