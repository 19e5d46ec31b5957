package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/factory"
)

func repairEnvironment(t *testing.T, now time.Time) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(now)
	errNotMocked := errors.New("not mocked")
	register := func(name string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
	register(PlanReconcileActivity, func(context.Context, ReconcileRequest) (ReconcilePlan, error) { return ReconcilePlan{}, errNotMocked })
	register(ReconcileFactoryActivity, func(context.Context, ReconcileFactoryRequest) (ReconcileCounts, error) {
		return ReconcileCounts{}, errNotMocked
	})
	register(ReplayRawActivity, func(context.Context, ReplayChunk) (ReplayChunkResult, error) {
		return ReplayChunkResult{}, errNotMocked
	})
	register(RestoreLatestStateActivity, func(context.Context, RestoreRequest) (RestoreResult, error) { return RestoreResult{}, errNotMocked })
	return env
}

// requireRefused asserts that a workflow ended at once, naming what was wrong.
func requireRefused(t *testing.T, env *testsuite.TestWorkflowEnvironment, message string) {
	t.Helper()
	var refused *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &refused)
	require.Equal(t, "InvalidInput", refused.Type())
	require.True(t, refused.NonRetryable())
	require.Contains(t, refused.Message(), message)
}

func TestAReconciliationGoesThroughThePlansFactories(t *testing.T) {
	env := repairEnvironment(t, noon)
	plan := ReconcilePlan{FactoryIDs: []string{"factory-a", "factory-b"}, From: noon.Add(-3 * time.Hour), Before: noon.Add(-15 * time.Minute)}
	env.OnActivity(PlanReconcileActivity, mock.Anything, ReconcileRequest{WindowHours: 3}).Return(plan, nil).Once()
	for i, id := range plan.FactoryIDs {
		request := ReconcileFactoryRequest{FactoryID: id, From: plan.From, Before: plan.Before}
		counts := ReconcileCounts{Looked: 10, Processed: 8, Enqueued: int64(i + 1), Lists: 9}
		env.OnActivity(ReconcileFactoryActivity, mock.Anything, request).Return(counts, nil).Once()
	}
	env.ExecuteWorkflow(RawReconcile, ReconcileRequest{})
	require.NoError(t, env.GetWorkflowError())
	var result ReconcileResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, ReconcileResult{Plan: plan, Counts: ReconcileCounts{Looked: 20, Processed: 16, Enqueued: 3, Lists: 18}}, result)
	env.AssertExpectations(t)
}

func TestTheWindowOfAReconciliation(t *testing.T) {
	for name, c := range map[string]struct {
		at          time.Time
		asked, want ReconcileRequest
	}{
		"hourly":                          {noon, ReconcileRequest{}, ReconcileRequest{WindowHours: 3}},
		"the first hour of a day":         {noon.Add(-12 * time.Hour), ReconcileRequest{}, ReconcileRequest{WindowHours: 26, Complete: true}},
		"the last minute of that hour":    {noon.Add(-11*time.Hour - time.Minute), ReconcileRequest{}, ReconcileRequest{WindowHours: 26, Complete: true}},
		"complete by hand":                {noon, ReconcileRequest{Complete: true}, ReconcileRequest{WindowHours: 26, Complete: true}},
		"a window by hand":                {noon, ReconcileRequest{WindowHours: 5}, ReconcileRequest{WindowHours: 5}},
		"a window by hand after midnight": {noon.Add(-12 * time.Hour), ReconcileRequest{WindowHours: 5}, ReconcileRequest{WindowHours: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			env := repairEnvironment(t, c.at)
			env.OnActivity(PlanReconcileActivity, mock.Anything, c.want).Return(ReconcilePlan{}, nil).Once()
			env.ExecuteWorkflow(RawReconcile, c.asked)
			require.NoError(t, env.GetWorkflowError())
			env.AssertExpectations(t)
		})
	}
	for _, hours := range []int{-1, 14*24 + 1} {
		env := repairEnvironment(t, noon)
		env.ExecuteWorkflow(RawReconcile, ReconcileRequest{WindowHours: hours})
		requireRefused(t, env, "window_hours")
	}
	for _, seconds := range []int{-1, 24*60*60 + 1} {
		env := repairEnvironment(t, noon)
		env.ExecuteWorkflow(RawReconcile, ReconcileRequest{SettleSeconds: seconds})
		requireRefused(t, env, "settle_seconds")
	}
}

func TestASkippedReconciliationSaysWhy(t *testing.T) {
	env := repairEnvironment(t, noon)
	plan := ReconcilePlan{FactoryIDs: []string{"factory-a"}, Skipped: "the queue holds 7 messages of unknown age"}
	env.OnActivity(PlanReconcileActivity, mock.Anything, mock.Anything).Return(plan, nil).Times(planAttempts)
	env.ExecuteWorkflow(RawReconcile, ReconcileRequest{})
	require.NoError(t, env.GetWorkflowError())
	var result ReconcileResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, plan.Skipped, result.Plan.Skipped)
	require.Contains(t, result.details(), plan.Skipped)
	env.AssertExpectations(t)
	env.AssertNotCalled(t, ReconcileFactoryActivity, mock.Anything, mock.Anything)
}

func TestABusyQueueIsLookedAtAgain(t *testing.T) {
	env := repairEnvironment(t, noon)
	busy := ReconcilePlan{Skipped: "the queue holds 7 messages of unknown age"}
	env.OnActivity(PlanReconcileActivity, mock.Anything, mock.Anything).Return(busy, nil).Once()
	env.OnActivity(PlanReconcileActivity, mock.Anything, mock.Anything).Return(ReconcilePlan{FactoryIDs: []string{"factory-a"}}, nil).Once()
	env.OnActivity(ReconcileFactoryActivity, mock.Anything, mock.Anything).Return(ReconcileCounts{Enqueued: 3}, nil).Once()
	env.ExecuteWorkflow(RawReconcile, ReconcileRequest{})
	require.NoError(t, env.GetWorkflowError())
	var result ReconcileResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.EqualValues(t, 3, result.Counts.Enqueued)
	require.Equal(t, noon.Add(planPause), env.Now().UTC().Truncate(time.Second))
}

func TestAReconciliationRetriesOutages(t *testing.T) {
	env := repairEnvironment(t, noon)
	plan := ReconcilePlan{FactoryIDs: []string{"factory-a"}}
	env.OnActivity(PlanReconcileActivity, mock.Anything, mock.Anything).Return(ReconcilePlan{}, errors.New("out")).Times(3)
	env.OnActivity(PlanReconcileActivity, mock.Anything, mock.Anything).Return(plan, nil).Once()
	env.OnActivity(ReconcileFactoryActivity, mock.Anything, mock.Anything).Return(ReconcileCounts{}, errors.New("out")).Times(5)
	env.OnActivity(ReconcileFactoryActivity, mock.Anything, mock.Anything).Return(ReconcileCounts{Enqueued: 1}, nil).Once()
	env.ExecuteWorkflow(RawReconcile, ReconcileRequest{})
	require.NoError(t, env.GetWorkflowError())
	env.AssertExpectations(t)
}

func dayRequest() ReplayRequest {
	return ReplayRequest{FactoryID: "factory-a", From: noon.Add(-2 * time.Hour), To: noon.Add(-time.Hour)}
}

func TestAReplayGoesThroughTheDaysOfReceiptInChunks(t *testing.T) {
	env := repairEnvironment(t, noon)
	state := factory.Latest{FactoryID: "factory-a", MessageID: "m"}
	after := ReplayPosition{ReceivedAt: noon.Add(-90 * time.Minute), Key: "k"}
	settled := dayRequest()
	settled.LateDays = 7
	today := noon.Truncate(24 * time.Hour)
	var chunks []ReplayChunk
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, chunk ReplayChunk) (ReplayChunkResult, error) {
		chunks = append(chunks, chunk)
		result := ReplayChunkResult{Counts: ReplayCounts{Messages: 5, Processed: 2}, State: &state, After: after, DayDone: len(chunks) != 2}
		return result, nil
	}).Times(3)
	env.OnActivity(RestoreLatestStateActivity, mock.Anything, RestoreRequest{State: state}).Return(RestoreResult{Restored: true}, nil).Once()
	env.ExecuteWorkflow(RawReplay, ReplayInput{Request: dayRequest()})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []ReplayChunk{
		{Request: settled, StartedAt: noon, Day: today.AddDate(0, 0, -1), Limit: replayChunk},
		{Request: settled, StartedAt: noon, Day: today, State: &state, Limit: replayChunk},
		{Request: settled, StartedAt: noon, Day: today, After: after, State: &state, Limit: replayChunk},
	}, chunks, "the future has nothing to replay")
	var status ReplayStatus
	require.NoError(t, env.GetWorkflowResult(&status))
	require.Equal(t, ReplayCounts{Messages: 15, Processed: 6, Latest: 1}, status.Counts)
	require.True(t, status.Done)
	env.AssertExpectations(t)
}

func TestAReplayLooksForMessagesThatCameDaysLate(t *testing.T) {
	env := repairEnvironment(t, noon.AddDate(0, 0, 30))
	request := dayRequest()
	request.LateDays, request.DryRun = 2, true
	var days []string
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, chunk ReplayChunk) (ReplayChunkResult, error) {
		require.True(t, chunk.Request.DryRun)
		days = append(days, chunk.Day.Format(time.DateOnly))
		return ReplayChunkResult{DayDone: true}, nil
	})
	env.ExecuteWorkflow(RawReplay, ReplayInput{Request: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"2026-05-19", "2026-05-20", "2026-05-21", "2026-05-22"}, days)
	env.AssertNotCalled(t, RestoreLatestStateActivity, mock.Anything, mock.Anything)
}

func TestAReplaysProgressIsAnswered(t *testing.T) {
	env := repairEnvironment(t, noon)
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, chunk ReplayChunk) (ReplayChunkResult, error) {
		return ReplayChunkResult{Counts: ReplayCounts{Messages: 5}, DayDone: true}, nil
	}).After(10 * time.Second)
	env.RegisterDelayedCallback(func() {
		value, err := env.QueryWorkflow(StatusQuery)
		require.NoError(t, err)
		var status ReplayStatus
		require.NoError(t, value.Get(&status))
		require.Equal(t, int64(5), status.Counts.Messages)
		require.Equal(t, noon.Truncate(24*time.Hour), status.Day)
		require.Equal(t, noon.Truncate(24*time.Hour), status.LastDay)
		require.False(t, status.Done)
	}, 15*time.Second)
	env.ExecuteWorkflow(RawReplay, ReplayInput{Request: dayRequest()})
	require.NoError(t, env.GetWorkflowError())
}

func TestALongReplayContinuesAsNewWhereItIs(t *testing.T) {
	env := repairEnvironment(t, noon)
	state := factory.Latest{FactoryID: "factory-a"}
	after := ReplayPosition{ReceivedAt: noon.Add(-26 * time.Hour), Key: "k"}
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(ReplayChunkResult{Counts: ReplayCounts{Messages: 5}, State: &state, After: after}, nil).Once()
	env.SetContinueAsNewSuggested(true)
	env.ExecuteWorkflow(RawReplay, ReplayInput{Request: dayRequest()})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var input ReplayInput
	require.NoError(t, json.Unmarshal(next.Input.GetPayloads()[0].GetData(), &input))
	want := dayRequest()
	want.LateDays = 7
	require.Equal(t, ReplayInput{Request: want, Carry: &ReplayCarry{
		StartedAt: noon, Day: noon.Truncate(24*time.Hour).AddDate(0, 0, -1), After: after, State: &state, Counts: ReplayCounts{Messages: 5},
	}}, input)

	env = repairEnvironment(t, noon.Add(time.Hour))
	env.SetContinuedExecutionRunID("earlier")
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, chunk ReplayChunk) (ReplayChunkResult, error) {
		require.Equal(t, noon, chunk.StartedAt, "what counts as received stays the same")
		return ReplayChunkResult{State: &state, DayDone: true}, nil
	}).Times(2)
	env.OnActivity(RestoreLatestStateActivity, mock.Anything, mock.Anything).Return(RestoreResult{}, nil).Once()
	env.ExecuteWorkflow(RawReplay, input)
	require.NoError(t, env.GetWorkflowError())
	var status ReplayStatus
	require.NoError(t, env.GetWorkflowResult(&status))
	require.Equal(t, int64(5), status.Counts.Messages)
	env.AssertExpectations(t)
}

func TestReplaysThatCantBeAreRefused(t *testing.T) {
	for message, change := range map[string]func(*ReplayInput){
		"factory_id":         func(in *ReplayInput) { in.Request.FactoryID = "../x" },
		"is a reserved name": func(in *ReplayInput) { in.Request.FactoryID = "cloud-infra" },
		"from, to":           func(in *ReplayInput) { in.Request.From = time.Time{} },
		"to: must be after":  func(in *ReplayInput) { in.Request.To = in.Request.From },
		"366 days":           func(in *ReplayInput) { in.Request.From = noon.AddDate(-2, 0, 0) },
		"late_days":          func(in *ReplayInput) { in.Request.LateDays = 61 },
		"late_days: must":    func(in *ReplayInput) { in.Request.LateDays = -1 },
		"carry":              func(in *ReplayInput) { in.Carry = &ReplayCarry{Day: noon} },
	} {
		t.Run(message, func(t *testing.T) {
			env := repairEnvironment(t, noon)
			in := ReplayInput{Request: dayRequest()}
			change(&in)
			env.ExecuteWorkflow(RawReplay, in)
			requireRefused(t, env, message)
		})
	}
}

func TestAReplayEndsWhenItIsCancelled(t *testing.T) {
	env := repairEnvironment(t, noon)
	env.OnActivity(ReplayRawActivity, mock.Anything, mock.Anything).Return(ReplayChunkResult{}, nil).After(time.Minute)
	env.RegisterDelayedCallback(env.CancelWorkflow, 90*time.Second)
	env.ExecuteWorkflow(RawReplay, ReplayInput{Request: dayRequest()})
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
}

func TestTheCarryOfAReplayKeepsEverything(t *testing.T) {
	state := factory.Latest{FactoryID: "factory-a", Rev: 7, MessageID: "m", UpdatedAt: factory.MillisOf(noon)}
	carry := ReplayCarry{
		StartedAt: noon, Day: noon, After: ReplayPosition{ReceivedAt: noon, SourceAt: noon, Key: "k"}, State: &state, Counts: ReplayCounts{Messages: 1, Late: 2},
	}
	body, err := json.Marshal(carry)
	require.NoError(t, err)
	var read ReplayCarry
	require.NoError(t, json.Unmarshal(body, &read))
	require.Equal(t, carry, read)
}

func TestCountsAddUpFieldByField(t *testing.T) {
	for _, c := range []struct{ one, both any }{
		{&ReconcileCounts{}, &ReconcileCounts{}}, {&ReplayCounts{}, &ReplayCounts{}},
	} {
		fields := map[string]int64{}
		body, err := json.Marshal(c.one)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &fields))
		n, want := int64(0), map[string]int64{}
		for name := range fields {
			n++
			fields[name], want[name] = n, 2*n
		}
		body, err = json.Marshal(fields)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, c.one))
		switch sum := c.both.(type) {
		case *ReconcileCounts:
			sum.Add(*c.one.(*ReconcileCounts))
			sum.Add(*c.one.(*ReconcileCounts))
		case *ReplayCounts:
			sum.Add(*c.one.(*ReplayCounts))
			sum.Add(*c.one.(*ReplayCounts))
		}
		body, err = json.Marshal(c.both)
		require.NoError(t, err)
		got := map[string]int64{}
		require.NoError(t, json.Unmarshal(body, &got))
		require.Equal(t, want, got, fmt.Sprintf("%T", c.one))
	}
}
