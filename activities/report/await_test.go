package report

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	workflows "millrace/workflows/report"
)

type runs struct {
	run   *mocks.WorkflowRun
	asked []string
}

func (r *runs) GetWorkflow(_ context.Context, id, runID string) client.WorkflowRun {
	r.asked = append(r.asked, id+runID)
	return r.run
}

var wanted = workflows.AwaitRequest{Target: "factory-a", Date: newYear, WorkflowID: "target-report/2026-01-01/factory-a"}

func TestAnAwaitedRunsResultIsPassedOn(t *testing.T) {
	other := &mocks.WorkflowRun{}
	other.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(1).(*workflows.TargetResult) = workflows.TargetResult{Target: "factory-a", Status: workflows.TargetSuccess}
	}).Return(nil)
	r := &runs{run: other}
	result, err := run(t, Awaiter{Runs: r}.AwaitTarget, wanted)
	require.NoError(t, err)
	require.Equal(t, workflows.TargetSuccess, result.Status)
	require.Equal(t, []string{wanted.WorkflowID}, r.asked, "the newest run, whichever it is")
}

func TestHowAnAwaitedRunFailedIsPassedOn(t *testing.T) {
	for _, c := range []struct {
		err   error
		kind  string
		final bool
	}{
		{temporal.NewApplicationErrorWithOptions("publish: no", workflows.ErrorTargetFailed, temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{workflows.TargetResult{Status: workflows.TargetFailed, Stage: "publish"}},
		}), workflows.ErrorTargetFailed, true},
		{&temporal.WorkflowExecutionError{}, workflows.ErrorAwaitedEnded, true},
		{serviceerror.NewNotFound("gone"), workflows.ErrorAwaitedEnded, true},
		{errors.New("no connection"), "", false},
	} {
		other := &mocks.WorkflowRun{}
		other.On("Get", mock.Anything, mock.Anything).Return(c.err)
		_, err := run(t, Awaiter{Runs: &runs{run: other}}.AwaitTarget, wanted)
		failed, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok)
		require.Equal(t, c.final, failed.NonRetryable(), "%v", c.err)
		if c.final {
			require.Equal(t, c.kind, failed.Type())
		}
		if c.kind == workflows.ErrorTargetFailed {
			var result workflows.TargetResult
			require.NoError(t, failed.Details(&result))
			require.Equal(t, "publish", result.Stage)
		}
	}
}

func TestAWorkerThatStopsHandsTheWaitingOn(t *testing.T) {
	other := &mocks.WorkflowRun{}
	other.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		<-args.Get(0).(context.Context).Done()
	}).Return(context.Canceled)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	stopping := make(chan struct{})
	close(stopping)
	env.SetWorkerStopChannel(stopping)
	await := Awaiter{Runs: &runs{run: other}}.AwaitTarget
	env.RegisterActivity(await)
	_, err := env.ExecuteActivity(await, wanted)
	require.ErrorContains(t, err, "the worker stops")
	require.False(t, temporal.IsCanceledError(err), "another worker takes it up")
}
