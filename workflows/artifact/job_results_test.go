package artifact

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

func drainEnvironment(drain func(context.Context, JobResultRequest) (JobResultCounts, error)) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(historytest.Silent)
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(drain, activity.RegisterOptions{Name: DrainJobResultsActivity})
	return env
}

func TestTheDrainGoesOnAsNewWithItsTotals(t *testing.T) {
	env := drainEnvironment(func(context.Context, JobResultRequest) (JobResultCounts, error) {
		return JobResultCounts{Received: 3, Deleted: 3, Outcomes: map[string]int64{"finished": 2, "quarantined": 1}}, nil
	})
	env.SetContinuedExecutionRunID("before")
	env.ExecuteWorkflow(JobResultDrain, JobResultInput{Carry: &JobResultCarry{Runs: 1, Received: 1, Deleted: 1, Outcomes: map[string]int64{"finished": 1}}})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	value, err := env.QueryWorkflow(StatusQuery)
	require.NoError(t, err)
	var status JobResultStatus
	require.NoError(t, value.Get(&status))
	require.Equal(t, JobResultCarry{Runs: 2, Received: 4, Deleted: 4, Outcomes: map[string]int64{"finished": 3, "quarantined": 1}}, status.Totals)
}

func TestTheDrainIsTriedUntilItCanWork(t *testing.T) {
	attempts := 0
	env := drainEnvironment(func(context.Context, JobResultRequest) (JobResultCounts, error) {
		if attempts++; attempts < 8 {
			return JobResultCounts{}, errors.New("no queue")
		}
		return JobResultCounts{}, nil
	})
	env.ExecuteWorkflow(JobResultDrain, JobResultInput{})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	require.Equal(t, 8, attempts)
}

func TestACarryFromOutsideIsRefused(t *testing.T) {
	env := drainEnvironment(nil)
	env.ExecuteWorkflow(JobResultDrain, JobResultInput{Carry: &JobResultCarry{Runs: 7}})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &refused)
	require.Equal(t, ErrInvalid, refused.Type())
}

func TestTheDrainEndsWhenItIsCancelled(t *testing.T) {
	env := drainEnvironment(func(ctx context.Context, _ JobResultRequest) (JobResultCounts, error) {
		return JobResultCounts{Received: 1}, nil
	})
	env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	env.ExecuteWorkflow(JobResultDrain, JobResultInput{})
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
}

// TestTheDrainReplays runs two drains, one after the other, on a real server. With
// -record their histories are kept for TestRecordedHistoriesReplay.
func TestTheDrainReplays(t *testing.T) {
	r := historytest.New(t, registered, map[string]any{
		DrainJobResultsActivity: func(context.Context, JobResultRequest) (JobResultCounts, error) {
			return JobResultCounts{Received: 2, Deleted: 2, Outcomes: map[string]int64{"finished": 1, "duplicate": 1}}, nil
		},
	})
	first := r.Start(names.JobResultDrain, JobResultInput{})
	second := continued(t, r.Client, first)
	r.Keep("job_result_drain", first)
	continued(t, r.Client, second)
	r.Keep("job_result_drain_continued", second)
	require.NoError(t, r.Client.TerminateWorkflow(t.Context(), first.GetID(), "", "recorded"))
}

// continued waits until a run has continued as new and gives the next run.
func continued(t *testing.T, c client.Client, run client.WorkflowRun) client.WorkflowRun {
	t.Helper()
	var next string
	require.Eventually(t, func() bool {
		closing := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		for closing.HasNext() {
			event, err := closing.Next()
			require.NoError(t, err)
			next = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		return next != ""
	}, 20*time.Second, 20*time.Millisecond)
	return c.GetWorkflow(t.Context(), run.GetID(), next)
}
