package factory

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

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// answers are activities that do nothing but say what real ones might.
func answers() map[string]any {
	drain := func(_ context.Context, req DrainRequest) (DrainResult, error) {
		return DrainResult{Received: 250, Deleted: 250, Outcomes: map[string]int64{"applied": 247, "duplicate": 1, "late": 1, "quarantined": 1}}, nil
	}
	score := exact.MustParse("91.66")
	return map[string]any{
		DrainTelemetryActivity:  drain,
		DrainRuleErrorsActivity: drain,
		RefreshFactoriesActivity: func(ctx context.Context, _ RefreshRequest) (RefreshResult, error) {
			if activity.GetInfo(ctx).Attempt == 1 {
				return RefreshResult{}, errors.New("no answer")
			}
			return RefreshResult{Status: StatusOK, Refreshed: []RefreshedFactory{
				{FactoryID: "factory-a", PipelineStatus: factory.Normal, RiskScore: &score}, {FactoryID: "factory-b", Status: StatusMissing},
			}}, nil
		},
		AggregateGraphsActivity: func(_ context.Context, req AggregateRequest) (AggregateResult, error) {
			return AggregateResult{Status: StatusOK, BucketMinutes: 5, Processed: []ProcessedBucket{{
				FactoryID: "factory-a", BucketStart: req.Buckets[0], SourceCount: 115, Source: FromHistory, Reason: ReasonScheduled,
			}}}, nil
		},
		PlanReconcileActivity: func(_ context.Context, req ReconcileRequest) (ReconcilePlan, error) {
			return ReconcilePlan{FactoryIDs: []string{"factory-a", "factory-b"}, From: noon.Add(-time.Hour), Before: noon, Complete: req.Complete}, nil
		},
		ReconcileFactoryActivity: func(context.Context, ReconcileFactoryRequest) (ReconcileCounts, error) {
			return ReconcileCounts{Looked: 1380, Processed: 1379, Enqueued: 1, Lists: 4}, nil
		},
		ReplayRawActivity: func(_ context.Context, chunk ReplayChunk) (ReplayChunkResult, error) {
			return ReplayChunkResult{Counts: ReplayCounts{Messages: 10, Processed: 10}, After: chunk.After, DayDone: true}, nil
		},
		RestoreLatestStateActivity: func(context.Context, RestoreRequest) (RestoreResult, error) {
			return RestoreResult{}, nil
		},
	}
}

func finish(t *testing.T, run client.WorkflowRun) client.WorkflowRun {
	t.Helper()
	require.NoError(t, run.Get(t.Context(), nil))
	return run
}

// TestFreshHistoriesReplay runs every workflow on a real server and replays what
// it did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	recorder := historytest.New(t, registered, answers())
	for name, workflow := range map[string]string{"telemetry_ingest": names.TelemetryIngest, "rule_error_drain": names.RuleErrorDrain} {
		t.Run(name, func(t *testing.T) {
			r := recorder.In(t)
			first := r.Start(workflow, IngestInput{Request: DrainRequest{Consumer: 0}})
			second := successor(t, r.Client, first)
			r.Keep(name, first)
			successor(t, r.Client, second)
			r.Keep(name+"_continued", second)
			require.NoError(t, r.Client.TerminateWorkflow(t.Context(), first.GetID(), "", "recorded"))
		})
	}
	due := time.Now().UTC().Truncate(time.Minute)
	for name, run := range map[string]func(*testing.T, historytest.Recorder) client.WorkflowRun{
		"factory_refresh": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			return finish(t, r.Scheduled(names.FactoryRefresh, due))
		},
		"factory_refresh_late": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			return finish(t, r.Scheduled(names.FactoryRefresh, due.Add(-time.Hour)))
		},
		"graph_aggregate": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			return finish(t, r.Scheduled(names.GraphAggregate, due, AggregateInput{}))
		},
		"graph_aggregate_by_hand": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			start := due.Add(-time.Hour).Truncate(factory.BucketLength)
			return finish(t, r.Start(names.GraphAggregate, AggregateInput{BucketStart: &start, Factories: []string{"factory-a"}}))
		},
		"graph_aggregate_refused": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			run := r.Start(names.GraphAggregate, AggregateInput{LookbackBuckets: -1})
			var refused *temporal.ApplicationError
			require.ErrorAs(t, run.Get(t.Context(), nil), &refused)
			return run
		},
		"raw_reconcile": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			return finish(t, r.Scheduled(names.RawReconcile, due, ReconcileRequest{}))
		},
		"raw_replay": func(t *testing.T, r historytest.Recorder) client.WorkflowRun {
			return finish(t, r.Start(names.RawReplay, ReplayInput{Request: ReplayRequest{
				FactoryID: "factory-a", From: noon, To: noon.Add(time.Hour), LateDays: 1,
			}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder.In(t)
			r.Keep(name, run(t, r))
		})
	}
}

// successor waits until a run has continued as new and gives the next run.
func successor(t *testing.T, c client.Client, run client.WorkflowRun) client.WorkflowRun {
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
