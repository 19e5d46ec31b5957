package report

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	workflows "millrace/workflows/report"
)

// Runs is the part of the Temporal client that waits for runs.
type Runs interface {
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
}

// Awaiter waits for reports that other runs make.
type Awaiter struct {
	Runs Runs
}

// errStopping has another worker go on waiting.
var errStopping = errors.New("the worker stops")

// AwaitTarget waits for the end of the newest run of a target's report and passes
// on how it ended. A run that ended from outside, without a result, is an error of
// type ErrorAwaitedEnded.
func (a Awaiter) AwaitTarget(ctx context.Context, req workflows.AwaitRequest) (workflows.TargetResult, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			stop(errStopping)
		case <-waiting.Done():
		}
	}()
	defer beating(ctx)()
	var result workflows.TargetResult
	err := a.Runs.GetWorkflow(waiting, req.WorkflowID, "").Get(waiting, &result)
	switch {
	case errors.Is(context.Cause(waiting), errStopping) && err != nil:
		return result, fmt.Errorf("wait for %s: %w", req.WorkflowID, errStopping)
	case ctx.Err() != nil:
		return result, ctx.Err()
	}
	return result, awaited(req, err)
}

// awaited tells how an awaited run ended.
func awaited(req workflows.AwaitRequest, err error) error {
	var ended *temporal.WorkflowExecutionError
	var gone *serviceerror.NotFound
	var failed *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.Type() == workflows.ErrorTargetFailed:
		return failed
	case errors.As(err, &ended), errors.As(err, &gone):
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("run %s ended without a result: %v", req.WorkflowID, err), workflows.ErrorAwaitedEnded, err)
	}
	return fmt.Errorf("wait for %s: %w", req.WorkflowID, err)
}
