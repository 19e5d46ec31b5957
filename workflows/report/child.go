package report

import (
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

// maxTries bounds how often a target is started anew because the run that was
// awaited ended without a result.
const maxTries = 3

// makeReport runs a target's report as a child. Where another run makes it
// already, that one is awaited: a report has one writer. The outcome is always a
// result, and never an error unless the caller itself was cancelled.
func makeReport(ctx workflow.Context, in TargetInput) (TargetResult, error) {
	var result TargetResult
	var err error
	for range maxTries {
		result, err = startChild(ctx, in)
		if _, running := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); !running {
			break
		}
		result, err = awaitOther(ctx, in)
		if ended, ok := errors.AsType[*temporal.ApplicationError](err); !ok || ended.Type() != ErrorAwaitedEnded {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return TargetResult{}, ctx.Err()
	case err != nil:
		return failureOf(in, err), nil
	}
	return result, nil
}

// startChild starts a report and waits for its end. Who cancels the parent
// cancels its children, and one that is terminated asks them to end too: they
// leave nothing half written, and nobody would read what they go on paying for.
func startChild(ctx workflow.Context, in TargetInput) (TargetResult, error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:               names.TargetReportID(in.Date, in.Target),
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:        enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:      true,
		WorkflowExecutionTimeout: targetTimeout,
		StaticSummary:            "Report on " + in.Target + " on " + in.Date,
	})
	var result TargetResult
	err := workflow.ExecuteChildWorkflow(ctx, names.TargetReport, in).Get(ctx, &result)
	return result, err
}

func awaitOther(ctx workflow.Context, in TargetInput) (TargetResult, error) {
	options := awaitOptions
	options.Summary = "wait for " + in.Target
	var result TargetResult
	request := AwaitRequest{Target: in.Target, Date: in.Date, WorkflowID: names.TargetReportID(in.Date, in.Target)}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), AwaitTargetActivity, request).Get(ctx, &result)
	result.Awaited = true
	return result, err
}
