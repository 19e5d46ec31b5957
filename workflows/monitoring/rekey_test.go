package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

func environment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(func(context.Context, RekeyBatch) (RekeyBatchResult, error) {
		return RekeyBatchResult{}, errors.New("not scripted")
	}, activity.RegisterOptions{Name: RekeyBatchActivity})
	return env
}

func rekeyed(t *testing.T, env *testsuite.TestWorkflowEnvironment) RekeyReport {
	t.Helper()
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	var report RekeyReport
	require.NoError(t, env.GetWorkflowResult(&report))
	return report
}

func TestRekeyPassesUntilAPassFindsNothing(t *testing.T) {
	env := environment(t)
	started := env.Now()
	env.OnActivity(RekeyBatchActivity, mock.Anything, RekeyBatch{KeyID: "k1", Pages: 10}).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 1000, Sealed: 999, Overtaken: 1}, Cursor: "c", CurrentKeyID: "k2"}, nil).Once()
	env.OnActivity(RekeyBatchActivity, mock.Anything, RekeyBatch{KeyID: "k1", Cursor: "c", Pages: 10}).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 5, Sealed: 5}, CurrentKeyID: "k2"}, nil).Once()
	env.OnActivity(RekeyBatchActivity, mock.Anything, RekeyBatch{KeyID: "k1", Pages: 10}).
		Return(RekeyBatchResult{CurrentKeyID: "k2"}, nil).Once()
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	require.Equal(t, RekeyReport{
		KeyID: "k1", CurrentKeyID: "k2", Passes: 2, Counts: RekeyCounts{Seen: 1005, Sealed: 1004, Overtaken: 1}, Done: true, Clean: true,
	}, rekeyed(t, env))
	require.Equal(t, passPause, env.Now().Sub(started).Truncate(time.Second), "one pause between the passes")
	env.AssertExpectations(t)
}

func TestRekeyEndsWhenOnlyBrokenCopiesAreLeft(t *testing.T) {
	env := environment(t)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 3, Sealed: 2, Broken: 1}, Broken: []string{"tok_x"}, CurrentKeyID: "k2"}, nil).Once()
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 1, Broken: 1}, Broken: []string{"tok_x"}, CurrentKeyID: "k2"}, nil).Once()
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	report := rekeyed(t, env)
	require.Equal(t, RekeyCounts{Seen: 3, Sealed: 2, Broken: 1}, report.Counts, "a broken copy counts once")
	require.Equal(t, []string{"tok_x"}, report.Broken)
	require.True(t, report.Clean)
}

func TestRekeyGivesUpAfterFivePassesAndSaysSo(t *testing.T) {
	env := environment(t)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 1, Sealed: 1}, CurrentKeyID: "k2"}, nil).Times(maxPasses)
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	report := rekeyed(t, env)
	require.Equal(t, maxPasses, report.Passes)
	require.True(t, report.Done)
	require.False(t, report.Clean, "another process still seals under the old key")
	env.AssertExpectations(t)
}

func TestRekeyAnswersHowFarItIs(t *testing.T) {
	env := environment(t)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 2, Sealed: 2}, CurrentKeyID: "k2"}, nil).Once()
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).Return(RekeyBatchResult{CurrentKeyID: "k2"}, nil).Once()
	var during RekeyReport
	env.RegisterDelayedCallback(func() {
		value, err := env.QueryWorkflow(RekeyStatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&during))
	}, passPause/2)
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	require.Equal(t, RekeyReport{KeyID: "k1", CurrentKeyID: "k2", Passes: 2, Counts: RekeyCounts{Seen: 2, Sealed: 2}}, during)
	require.True(t, rekeyed(t, env).Done)
}

func TestRekeyWaitsOutAnOutage(t *testing.T) {
	env := environment(t)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).Return(RekeyBatchResult{}, errors.New("throttled")).Times(8)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).Return(RekeyBatchResult{CurrentKeyID: "k2"}, nil).Once()
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	require.True(t, rekeyed(t, env).Clean)
}

func TestRekeyFailsWhereTryingAgainIsNoUse(t *testing.T) {
	env := environment(t)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{}, temporal.NewNonRetryableApplicationError("key k1 is the current key", "InvalidInput", nil)).Once()
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	require.ErrorContains(t, env.GetWorkflowError(), "current key")
	env.AssertExpectations(t)
}

func TestRekeyRefusesBadInput(t *testing.T) {
	for name, in := range map[string]RekeyInput{
		"no key":               {},
		"key that escapes":     {KeyID: "a#b"},
		"carry on a first run": {KeyID: "k1", Carry: &RekeyCarry{}},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(t)
			env.ExecuteWorkflow(RekeyTokens, in)
			var application *temporal.ApplicationError
			require.ErrorAs(t, env.GetWorkflowError(), &application)
			require.Equal(t, "InvalidInput", application.Type())
		})
	}
}

func TestRekeyContinuesAsNewWithItsProgress(t *testing.T) {
	env := environment(t)
	env.SetContinueAsNewSuggested(true)
	env.OnActivity(RekeyBatchActivity, mock.Anything, mock.Anything).
		Return(RekeyBatchResult{Counts: RekeyCounts{Seen: 7, Sealed: 7}, Cursor: "c", CurrentKeyID: "k2"}, nil).Once()
	env.ExecuteWorkflow(RekeyTokens, RekeyInput{KeyID: "k1"})
	var continued *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &continued)
	var next RekeyInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(continued.Input, &next))
	require.Equal(t, RekeyInput{KeyID: "k1", Carry: &RekeyCarry{
		Report: RekeyReport{KeyID: "k1", CurrentKeyID: "k2", Passes: 1, Counts: RekeyCounts{Seen: 7, Sealed: 7}},
		Cursor: "c", Pass: RekeyCounts{Seen: 7, Sealed: 7},
	}}, next)

	second := environment(t)
	second.SetContinuedExecutionRunID("first")
	second.OnActivity(RekeyBatchActivity, mock.Anything, RekeyBatch{KeyID: "k1", Cursor: "c", Pages: 10}).
		Return(RekeyBatchResult{CurrentKeyID: "k2"}, nil).Once()
	second.OnActivity(RekeyBatchActivity, mock.Anything, RekeyBatch{KeyID: "k1", Pages: 10}).
		Return(RekeyBatchResult{CurrentKeyID: "k2"}, nil).Once()
	second.ExecuteWorkflow(RekeyTokens, next)
	report := rekeyed(t, second)
	require.Equal(t, int64(7), report.Counts.Sealed)
	require.Equal(t, 2, report.Passes)
	second.AssertExpectations(t)
}

func TestRekeyInputRoundTrips(t *testing.T) {
	in := RekeyInput{KeyID: "k1", Carry: &RekeyCarry{
		Report: RekeyReport{KeyID: "k1", CurrentKeyID: "k2", Passes: 3, Counts: RekeyCounts{Seen: 4, Sealed: 1, Overtaken: 2, Broken: 1}, Broken: []string{"tok"}, Done: true, Clean: true},
		Cursor: "c", Pass: RekeyCounts{Seen: 1},
	}}
	body, err := json.Marshal(in)
	require.NoError(t, err)
	var out RekeyInput
	require.NoError(t, json.Unmarshal(body, &out))
	require.Equal(t, in, out)
}
