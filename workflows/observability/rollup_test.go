package observability

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/observability"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
	"millrace/workflows/schedule"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// stage runs a workflow with activities that a test gives.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	lock      sync.Mutex
	drained   map[int][]DrainRequest
	evaluated []EvaluateRequest
	checked   []DayRequest
	found     []FindRequest
	pending   []int
	drain     func(req DrainRequest, nth int) (DrainResult, error)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(historytest.Silent)
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), drained: map[int][]DrainRequest{}}
	s.SetStartTime(noon)
	s.RegisterWorkflowWithOptions(SignalRollup, workflow.RegisterOptions{Name: names.SignalRollup})
	s.RegisterWorkflowWithOptions(SignalReconcile, workflow.RegisterOptions{Name: names.SignalReconcile})
	for shard := range observability.Shards {
		s.pending = append(s.pending, shard)
	}
	s.RegisterActivityWithOptions(func(_ context.Context, req FindRequest) (FindResult, error) {
		s.found = append(s.found, req)
		return FindResult{Shards: s.pending}, nil
	}, activity.RegisterOptions{Name: FindPendingActivity})
	s.RegisterActivityWithOptions(func(_ context.Context, req DrainRequest) (DrainResult, error) {
		s.lock.Lock()
		s.drained[req.Shard] = append(s.drained[req.Shard], req)
		nth := len(s.drained[req.Shard])
		s.lock.Unlock()
		if s.drain != nil {
			return s.drain(req, nth)
		}
		return DrainResult{Counts: Counts{Signals: 10, Transactions: 1, TraceRows: 9}, Done: true}, nil
	}, activity.RegisterOptions{Name: DrainSignalsActivity})
	s.RegisterActivityWithOptions(func(_ context.Context, req EvaluateRequest) (EvaluateResult, error) {
		s.evaluated = append(s.evaluated, req)
		return EvaluateResult{Rules: 3, Firing: 1, New: 1, Raised: 1}, nil
	}, activity.RegisterOptions{Name: EvaluateRulesActivity})
	s.RegisterActivityWithOptions(func(_ context.Context, req DayRequest) (DayResult, error) {
		s.checked = append(s.checked, req)
		return DayResult{Day: req.Day, Apps: 2, Signals: 5}, nil
	}, activity.RegisterOptions{Name: ReconcileDayActivity})
	return s
}

func (s *stage) scheduledAt(t *testing.T, at time.Time) {
	t.Helper()
	require.NoError(t, s.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(schedule.Start.ValueSet(at))))
}

func (s *stage) result(t *testing.T) Carry {
	t.Helper()
	require.NoError(t, s.GetWorkflowError())
	var done Carry
	require.NoError(t, s.GetWorkflowResult(&done))
	return done
}

func TestEveryShardIsDrainedUpToTheNominalTimeThenRulesAreJudged(t *testing.T) {
	s := newStage(t)
	at := noon.Add(-time.Minute)
	s.scheduledAt(t, at)
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	done := s.result(t)
	require.EqualValues(t, 160, done.Counts.Signals)
	require.EqualValues(t, 144, done.Counts.TraceRows)
	require.Len(t, s.drained, observability.Shards)
	for shard, requests := range s.drained {
		require.Len(t, requests, 1)
		require.Equal(t, DrainRequest{Shard: shard, To: at}, requests[0])
	}
	require.Equal(t, []EvaluateRequest{{At: at}}, s.evaluated)
	require.EqualValues(t, 1, done.Rules.New)
}

func TestShardsWithoutPendingSignalsAreLeftAlone(t *testing.T) {
	s := newStage(t)
	s.pending = []int{7}
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.EqualValues(t, 10, s.result(t).Counts.Signals)
	require.Len(t, s.drained, 1)
	require.Len(t, s.drained[7], 1)
	require.Equal(t, []FindRequest{{To: noon}}, s.found)
	s = newStage(t)
	s.pending = nil
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.Zero(t, s.result(t).Counts)
	require.Empty(t, s.drained)
	require.Len(t, s.evaluated, 1, "rules are judged all the same")
}

func TestAShardGoesOnWhereItsLastStretchEnded(t *testing.T) {
	s := newStage(t)
	s.drain = func(req DrainRequest, nth int) (DrainResult, error) {
		done := req.Shard != 3 || nth == 4
		return DrainResult{Counts: Counts{Signals: 1}, Done: done, Next: noon.Add(time.Duration(nth) * time.Second)}, nil
	}
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.EqualValues(t, 19, s.result(t).Counts.Signals)
	require.Len(t, s.drained[3], 4)
	require.True(t, s.drained[3][3].From.Equal(noon.Add(3*time.Second)))
}

func TestALongRollupContinuesAsNewWithWhatIsLeft(t *testing.T) {
	s := newStage(t)
	s.drain = func(req DrainRequest, nth int) (DrainResult, error) {
		if nth == 2 {
			s.SetContinueAsNewSuggested(true)
		}
		return DrainResult{Counts: Counts{Signals: 1}, Done: req.Shard%2 == 0, Next: noon}, nil
	}
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{To: new(noon)})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &again)
	var next RollupInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.NotEmpty(t, next.Carry.Shards)
	require.Contains(t, next.Carry.Shards, 15)
	require.Positive(t, next.Carry.Counts.Signals)
	require.True(t, next.Carry.To.Equal(noon))
	require.Empty(t, s.evaluated)

	resumed := newStage(t)
	resumed.SetContinuedExecutionRunID("before")
	resumed.ExecuteWorkflow(names.SignalRollup, next)
	done := resumed.result(t)
	require.Empty(t, done.Shards)
	require.Empty(t, resumed.found)
	require.Len(t, resumed.drained, len(next.Carry.Shards))
	require.EqualValues(t, next.Carry.Counts.Signals+int64(10*len(next.Carry.Shards)), done.Counts.Signals)
}

func TestAnOutageOfAShardKeepsNoOtherFromBeingCounted(t *testing.T) {
	s := newStage(t)
	s.drain = func(req DrainRequest, _ int) (DrainResult, error) {
		if req.Shard == 5 {
			return DrainResult{}, temporal.NewNonRetryableApplicationError("no", "InvalidInput", nil)
		}
		return DrainResult{Done: true}, nil
	}
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.ErrorContains(t, s.GetWorkflowError(), "count shard 5")
	require.Len(t, s.drained, observability.Shards)
}

func TestAFailingStretchIsTriedAgain(t *testing.T) {
	s := newStage(t)
	s.drain = func(req DrainRequest, nth int) (DrainResult, error) {
		if req.Shard == 5 && nth < 4 {
			return DrainResult{}, errors.New("no answer")
		}
		return DrainResult{Counts: Counts{Signals: 1}, Done: true}, nil
	}
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.EqualValues(t, 16, s.result(t).Counts.Signals)
	require.True(t, s.Now().Equal(noon.Add(7*time.Second)), "after 1, 2 and 4 seconds")
}

func TestARunThatMakesUpForAnOutageJudgesNoRules(t *testing.T) {
	s := newStage(t)
	s.scheduledAt(t, noon.Add(-16*time.Minute))
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.EqualValues(t, 160, s.result(t).Counts.Signals)
	require.Empty(t, s.evaluated)
}

func TestARangeAskedForIsKeptTo(t *testing.T) {
	s := newStage(t)
	from, to := noon.Add(-2*time.Hour), noon.Add(-time.Hour)
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{From: &from, To: &to})
	s.result(t)
	require.Equal(t, []DrainRequest{{Shard: 0, From: from, To: to}}, s.drained[0])
	require.Equal(t, []EvaluateRequest{{At: noon}}, s.evaluated, "rules speak of now")
}

func TestBadInputOfARollupIsRefused(t *testing.T) {
	for _, in := range []RollupInput{{From: new(noon), To: new(noon)}, {Carry: &Carry{}}} {
		s := newStage(t)
		s.ExecuteWorkflow(names.SignalRollup, in)
		var refused *temporal.ApplicationError
		require.ErrorAs(t, s.GetWorkflowError(), &refused)
		require.True(t, refused.NonRetryable())
		require.Empty(t, s.drained)
	}
}

func TestACancelledRollupEnds(t *testing.T) {
	s := newStage(t)
	s.drain = func(DrainRequest, int) (DrainResult, error) { return DrainResult{}, errors.New("no answer") }
	s.RegisterDelayedCallback(s.CancelWorkflow, 10*time.Second)
	s.ExecuteWorkflow(names.SignalRollup, RollupInput{})
	require.Error(t, s.GetWorkflowError())
	require.Empty(t, s.evaluated)
}

func TestTheDayThreeDaysAgoIsCheckedAndTheOneBeforeIt(t *testing.T) {
	s := newStage(t)
	s.scheduledAt(t, time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC))
	s.ExecuteWorkflow(names.SignalReconcile, ReconcileInput{})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, []DayRequest{{"2026-02-27"}, {"2026-02-26"}}, s.checked)
	s = newStage(t)
	s.ExecuteWorkflow(names.SignalReconcile, ReconcileInput{Day: "2026-05-01"})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, []DayRequest{{"2026-05-01"}}, s.checked)
	s = newStage(t)
	s.ExecuteWorkflow(names.SignalReconcile, ReconcileInput{Day: "today"})
	require.ErrorContains(t, s.GetWorkflowError(), "day: must be a day")
}
