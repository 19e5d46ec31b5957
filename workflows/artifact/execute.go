package artifact

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/workflows/names"
)

// execute verifies what was approved and runs it.
func (l *lifecycle) execute(ctx workflow.Context) error {
	l.flush(ctx)
	l.waiting = "the run to end"
	l.describe(ctx)
	verify := VerifyRequest{VersionRef: l.ref(), BundleHash: l.BundleHash, Decisions: true}
	options := contentOptions("Read content, policy and decisions again")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), VerifyActivity, verify).Get(ctx, nil); err != nil {
		result := RunResult{Status: RunFailed, ExitCode: -1, Detail: fmt.Sprintf("%s: %s", typeOf(err), messageOf(err))}
		l.ended(l.Holder, result)
		return l.failed(ctx, result)
	}
	result, began := l.runFile(ctx, artifact.Primary, l.Holder)
	l.Began = l.Began || began
	if result.Status != RunSucceeded {
		return l.failed(ctx, result)
	}
	err := l.move(ctx, artifact.Executed, artifact.System, result.Detail, func(s *Step) { s.Head, s.Run = headRelease, l.Holder })
	if err != nil {
		return err
	}
	l.Holder = ""
	return l.publish(ctx)
}

// runFile runs a file and tells how that ended and whether it began at all.
func (l *lifecycle) runFile(ctx workflow.Context, role artifact.Role, runID string) (RunResult, bool) {
	request := RunRequest{VersionRef: l.ref(), RunID: runID, Role: role, BundleHash: l.BundleHash, WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID}
	activity, taskQueue := ScriptActivity, names.QueueScripts
	if l.request.Spec.Kind == artifact.HTTP {
		activity, taskQueue = HTTPActivity, names.QueueArtifacts
	}
	var result RunResult
	options := runOptions(taskQueue, l.request.Spec.Limits, fmt.Sprintf("Run the %s file as %s", role, runID))
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, request).Get(ctx, &result)
	began := true
	if err != nil {
		result, began = l.settleRun(ctx, runID, err)
	}
	l.ended(runID, result)
	return result, began
}

// ended has the status show how a run ended.
func (l *lifecycle) ended(runID string, result RunResult) {
	for i := range l.Runs {
		if l.Runs[i].RunID == runID {
			l.Runs[i].Status, l.Runs[i].Detail = result.Status, result.Detail
		}
	}
}

// settleRun finds out what became of a run whose activity gave no answer. After
// a lost worker its script may live on for a while: nothing may run beside it.
func (l *lifecycle) settleRun(ctx workflow.Context, runID string, cause error) (RunResult, bool) {
	request := SettleRequest{VersionRef: l.ref(), RunID: runID, Status: RunFailed, Detail: messageOf(cause)}
	switch {
	case isTimeout(cause):
		request.Status, request.Detail = RunWorkerLost, "the worker gave no more sign of life: "+cause.Error()
	case temporal.IsCanceledError(cause):
		request.Status, request.Detail = RunCancelled, "the workflow was cancelled"
	}
	var settled SettleResult
	if err := l.local(ctx, "Find out what became of the run", SettleRunActivity, request, &settled); err != nil {
		settled = SettleResult{Began: true, Result: RunResult{Status: RunWorkerLost, ExitCode: -1, Detail: messageOf(err)}}
	}
	if !settled.Began {
		return RunResult{Status: RunFailed, ExitCode: -1, Detail: "the run never began: " + messageOf(cause)}, false
	}
	if settled.Result.Status == RunWorkerLost {
		l.SafeAt = workflow.Now(ctx).Add(lostGrace)
	}
	return settled.Result, true
}

// failed records a failed run, and begins the undo where the policy asks for it
// and there is something to undo. HEAD is held until then.
func (l *lifecycle) failed(ctx workflow.Context, result RunResult) error {
	undo := l.Began && l.request.Spec.Policy.OnFailure == artifact.Compensate && artifact.Rollbackable(l.request.Files)
	reason := result.Status
	if result.Detail != "" {
		reason += ": " + result.Detail
	}
	err := l.move(ctx, artifact.Failed, artifact.System, reason, func(s *Step) {
		if !undo {
			s.Head, s.Run = headRelease, l.Holder
		}
	})
	if err != nil {
		return err
	}
	if !undo {
		l.Holder = ""
	}
	l.notify(ctx, "execution_failed", fmt.Sprintf("%s v%d failed: %s", l.request.ArtifactID, l.request.Version, reason), true)
	if err := l.publish(ctx); err != nil {
		return err
	}
	if undo {
		return l.startUndo(ctx, artifact.System, "the run failed")
	}
	return nil
}
