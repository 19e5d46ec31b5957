package factory

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/workflows/schedule"
)

var noon = time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)

// scheduledEnvironment runs a workflow at now, as the run of a schedule that
// stands for the given time.
func scheduledEnvironment(t *testing.T, scheduled, now time.Time) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(now)
	if !scheduled.IsZero() {
		require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(schedule.Start.ValueSet(scheduled))))
	}
	env.RegisterActivityWithOptions(func(context.Context, RefreshRequest) (RefreshResult, error) {
		return RefreshResult{}, errors.New("not mocked")
	}, activity.RegisterOptions{Name: RefreshFactoriesActivity})
	env.RegisterActivityWithOptions(func(context.Context, AggregateRequest) (AggregateResult, error) {
		return AggregateResult{}, errors.New("not mocked")
	}, activity.RegisterOptions{Name: AggregateGraphsActivity})
	return env
}

func TestARefreshJudgesThePresent(t *testing.T) {
	for name, late := range map[string]time.Duration{"on time": 0, "two minutes late": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			began := noon.Add(late)
			env := scheduledEnvironment(t, noon, began)
			score := exact.MustParse("91.66")
			refreshed := []RefreshedFactory{{FactoryID: "factory-a", PipelineStatus: factory.Normal, RiskScore: &score}, {FactoryID: "factory-b", Status: StatusMissing}}
			env.OnActivity(RefreshFactoriesActivity, mock.Anything, RefreshRequest{AsOf: began}).Return(RefreshResult{Status: StatusOK, Refreshed: refreshed}, nil).Once()
			env.ExecuteWorkflow(FactoryRefresh)
			require.NoError(t, env.GetWorkflowError())
			var result RefreshResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Equal(t, StatusOK, result.Status)
			require.Equal(t, noon, result.ScheduledAt)
			require.Equal(t, refreshed, result.Refreshed)
			env.AssertExpectations(t)
		})
	}
}

func TestALateRefreshDoesNothingButSaySo(t *testing.T) {
	for name, late := range map[string]time.Duration{"just too late": 2*time.Minute + time.Second, "a backfill": 10 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			env := scheduledEnvironment(t, noon, noon.Add(late))
			env.OnActivity(RefreshFactoriesActivity, mock.Anything, mock.Anything).Return(RefreshResult{}, errors.New("must not be called")).Maybe()
			env.ExecuteWorkflow(FactoryRefresh)
			require.NoError(t, env.GetWorkflowError())
			var result RefreshResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Equal(t, RefreshResult{Status: StatusLate, ScheduledAt: noon, LateSeconds: int64(late / time.Second), Refreshed: []RefreshedFactory{}}, result)
			env.AssertNotCalled(t, RefreshFactoriesActivity, mock.Anything, mock.Anything)
		})
	}
}

func TestARefreshByHandIsNeverLate(t *testing.T) {
	env := scheduledEnvironment(t, time.Time{}, noon)
	env.OnActivity(RefreshFactoriesActivity, mock.Anything, RefreshRequest{AsOf: noon}).Return(RefreshResult{Status: StatusOK}, nil).Once()
	env.ExecuteWorkflow(FactoryRefresh)
	require.NoError(t, env.GetWorkflowError())
	env.AssertExpectations(t)
}

func TestARefreshRetriesWithinItsOwnMinute(t *testing.T) {
	env := scheduledEnvironment(t, noon, noon)
	env.OnActivity(RefreshFactoriesActivity, mock.Anything, mock.Anything).Return(RefreshResult{}, errors.New("no answer")).Times(3)
	env.OnActivity(RefreshFactoriesActivity, mock.Anything, RefreshRequest{AsOf: noon}).Return(RefreshResult{Status: StatusOK}, nil).Once()
	env.ExecuteWorkflow(FactoryRefresh)
	require.NoError(t, env.GetWorkflowError())
	require.Less(t, env.Now().Sub(noon), time.Minute)

	env = scheduledEnvironment(t, noon, noon)
	env.OnActivity(RefreshFactoriesActivity, mock.Anything, mock.Anything).Return(RefreshResult{}, errors.New("no answer"))
	env.ExecuteWorkflow(FactoryRefresh)
	require.Error(t, env.GetWorkflowError(), "an outage is seen")
	require.LessOrEqual(t, env.Now().Sub(noon), time.Minute)
}

func TestBothCanBeCancelled(t *testing.T) {
	for name, run := range map[string]func(env *testsuite.TestWorkflowEnvironment){
		"refresh":   func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(FactoryRefresh) },
		"aggregate": func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(GraphAggregate, AggregateInput{}) },
	} {
		t.Run(name, func(t *testing.T) {
			env := scheduledEnvironment(t, noon, noon)
			env.OnActivity(RefreshFactoriesActivity, mock.Anything, mock.Anything).Return(RefreshResult{}, errors.New("no answer")).Maybe()
			env.OnActivity(AggregateGraphsActivity, mock.Anything, mock.Anything).Return(AggregateResult{}, errors.New("no answer")).Maybe()
			env.RegisterDelayedCallback(env.CancelWorkflow, 5*time.Second)
			run(env)
			require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
			require.Less(t, env.Now().Sub(noon), time.Minute)
		})
	}
}

func TestTheWindowFollowsFromTheNominalTime(t *testing.T) {
	cases := []struct {
		name, scheduled string
		late            time.Duration
		buckets         []string
		from            string
	}{
		{"on time", "2026-05-20T12:02:00Z", 0, []string{"11:50", "11:55"}, "2026-05-20T11:00:00Z"},
		{"ten hours later", "2026-05-20T12:02:00Z", 10 * time.Hour, []string{"11:50", "11:55"}, "2026-05-20T11:00:00Z"},
		{"midnight", "2026-05-20T00:02:00Z", time.Second, []string{"23:50", "23:55"}, "2026-05-19T23:00:00Z"},
		{"over midnight at month end", "2026-06-01T00:07:00Z", 0, []string{"23:55", "00:00"}, "2026-05-31T23:05:00Z"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			scheduled, err := time.Parse(time.RFC3339, c.scheduled)
			require.NoError(t, err)
			env := scheduledEnvironment(t, scheduled, scheduled.Add(c.late))
			var got AggregateRequest
			env.OnActivity(AggregateGraphsActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, req AggregateRequest) (AggregateResult, error) {
				got = req
				return AggregateResult{Status: StatusOK, BucketMinutes: 5, Processed: []ProcessedBucket{{FactoryID: "factory-a"}}}, nil
			}).Once()
			env.ExecuteWorkflow(GraphAggregate, AggregateInput{})
			require.NoError(t, env.GetWorkflowError())
			var result AggregateResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Len(t, result.Processed, 1)
			starts := make([]string, len(got.Buckets))
			for i, start := range got.Buckets {
				starts[i] = start.Format("15:04")
			}
			require.Equal(t, c.buckets, starts)
			require.Equal(t, c.from, got.Unfinished.From.Format(time.RFC3339))
			require.Equal(t, got.Buckets[1], got.Unfinished.To)
		})
	}
}

func TestAnAggregationByHandTakesItsInput(t *testing.T) {
	start := noon.Add(-10 * time.Minute)
	cases := []struct {
		name  string
		in    AggregateInput
		check func(*testing.T, AggregateRequest)
	}{
		{"one bucket", AggregateInput{BucketStart: &start, Factories: []string{"factory-a"}}, func(t *testing.T, req AggregateRequest) {
			require.Equal(t, AggregateRequest{Factories: []string{"factory-a"}, Buckets: []time.Time{start}}, req)
		}},
		{"more look-back", AggregateInput{LookbackBuckets: 288}, func(t *testing.T, req AggregateRequest) {
			require.Len(t, req.Buckets, 288)
			require.Equal(t, noon.Add(-24*time.Hour), req.Buckets[0])
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := scheduledEnvironment(t, time.Time{}, noon)
			env.OnActivity(AggregateGraphsActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, req AggregateRequest) (AggregateResult, error) {
				c.check(t, req)
				return AggregateResult{}, nil
			}).Once()
			env.ExecuteWorkflow(GraphAggregate, c.in)
			require.NoError(t, env.GetWorkflowError())
			env.AssertExpectations(t)
		})
	}
}

func TestWrongInputIsRefusedByField(t *testing.T) {
	odd, future := noon.Add(-time.Minute), noon
	for field, in := range map[string]AggregateInput{
		"bucket_start: must be a multiple": {BucketStart: &odd},
		"bucket_start: must be the start":  {BucketStart: &future},
		"factories: ":                      {Factories: []string{"factory-a", "../b"}},
		"lookback_buckets: must be 1":      {LookbackBuckets: 289},
		"lookback_buckets: must":           {LookbackBuckets: -1},
	} {
		t.Run(field, func(t *testing.T) {
			env := scheduledEnvironment(t, time.Time{}, noon)
			env.ExecuteWorkflow(GraphAggregate, in)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, env.GetWorkflowError(), &refused)
			require.Equal(t, "InvalidInput", refused.Type())
			require.True(t, refused.NonRetryable())
			require.Contains(t, refused.Message(), field)
		})
	}
}

func TestAnAggregationWaitsForAnOutageToEnd(t *testing.T) {
	env := scheduledEnvironment(t, noon, noon)
	attempts := 0
	env.OnActivity(AggregateGraphsActivity, mock.Anything, mock.Anything).Return(func(context.Context, AggregateRequest) (AggregateResult, error) {
		if attempts++; env.Now().Sub(noon) < 4*time.Minute {
			return AggregateResult{}, errors.New("no answer")
		}
		return AggregateResult{Status: StatusOK}, nil
	})
	env.ExecuteWorkflow(GraphAggregate, AggregateInput{})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 10, attempts, "the test environment tries no more often")
}

func TestDamagedDataEndTheRunAtOnce(t *testing.T) {
	env := scheduledEnvironment(t, noon, noon)
	env.OnActivity(AggregateGraphsActivity, mock.Anything, mock.Anything).
		Return(AggregateResult{}, temporal.NewNonRetryableApplicationError("1 failed", "ContentIntegrity", nil)).Once()
	env.ExecuteWorkflow(GraphAggregate, AggregateInput{})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &failure)
	require.Equal(t, "ContentIntegrity", failure.Type())
	env.AssertExpectations(t)
}
