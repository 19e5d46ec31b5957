package factory

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/workflows/names"
)

var record = flag.Bool("record", false, "write the histories to testdata/replay_*.json")

// recorder runs workflows on the local server with activities that only answer.
type recorder struct {
	t         *testing.T
	c         client.Client
	taskQueue string
}

func newRecorder(t *testing.T) recorder {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Identity, options.Logger = "recorder", silent
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	r := recorder{t: t, c: c, taskQueue: fmt.Sprintf("record-%d", time.Now().UnixNano())}
	w := worker.New(c, r.taskQueue, worker.Options{Identity: "recorder"})
	register(w)
	for name, answer := range answers() {
		w.RegisterActivityWithOptions(answer, activity.RegisterOptions{Name: name})
	}
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return r
}

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

func (r recorder) start(workflow string, input ...any) client.WorkflowRun {
	r.t.Helper()
	run, err := r.c.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{
		ID: fmt.Sprintf("record-%s-%d", workflow, time.Now().UnixNano()), TaskQueue: r.taskQueue,
	}, workflow, input...)
	require.NoError(r.t, err)
	return run
}

// scheduled is the run of a schedule that stands for the given time.
func (r recorder) scheduled(workflow string, at time.Time, input ...any) client.WorkflowRun {
	r.t.Helper()
	id := fmt.Sprintf("record-%s-%d", workflow, time.Now().UnixNano())
	handle, err := r.c.ScheduleClient().Create(r.t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}}, Paused: true,
		Action:           &client.ScheduleWorkflowAction{ID: id, Workflow: workflow, Args: input, TaskQueue: r.taskQueue},
		ScheduleBackfill: []client.ScheduleBackfill{{Start: at.Add(-time.Second), End: at, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL}},
	})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, handle.Delete(context.Background())) })
	var started *client.ScheduleWorkflowExecution
	require.Eventually(r.t, func() bool {
		description, err := handle.Describe(r.t.Context())
		require.NoError(r.t, err)
		if actions := description.Info.RecentActions; len(actions) > 0 {
			started = actions[0].StartWorkflowResult
		}
		return started != nil
	}, 20*time.Second, 50*time.Millisecond)
	return r.c.GetWorkflow(r.t.Context(), started.WorkflowID, started.FirstExecutionRunID)
}

// keep replays the history of one run and, when asked to, writes it down.
func (r recorder) keep(name, id, runID string) {
	r.t.Helper()
	events := r.c.GetWorkflowHistory(r.t.Context(), id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var recorded history.History
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(r.t, err)
		recorded.Events = append(recorded.Events, event)
	}
	require.NotEmpty(r.t, recorded.Events)
	require.NoError(r.t, newReplayer().ReplayWorkflowHistory(silent, &recorded))
	if *record {
		body, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&recorded)
		require.NoError(r.t, err)
		require.NoError(r.t, os.MkdirAll("testdata", 0o755))
		require.NoError(r.t, os.WriteFile(filepath.Join("testdata", "replay_"+name+".json"), append(body, '\n'), 0o644))
	}
}

func (r recorder) finish(run client.WorkflowRun) client.WorkflowRun {
	r.t.Helper()
	require.NoError(r.t, run.Get(r.t.Context(), nil))
	return run
}

// TestFreshHistoriesReplay runs every workflow on a real server and replays what
// it did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	r := newRecorder(t)
	for name, workflow := range map[string]string{"telemetry_ingest": names.TelemetryIngest, "rule_error_drain": names.RuleErrorDrain} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			first := r.start(workflow, IngestInput{Request: DrainRequest{Consumer: 0}})
			second := r.successor(first)
			r.keep(name, first.GetID(), first.GetRunID())
			r.successor(r.c.GetWorkflow(t.Context(), first.GetID(), second))
			r.keep(name+"_continued", first.GetID(), second)
			require.NoError(t, r.c.TerminateWorkflow(t.Context(), first.GetID(), "", "recorded"))
		})
	}
	due := time.Now().UTC().Truncate(time.Minute)
	for name, run := range map[string]func() client.WorkflowRun{
		"factory_refresh":      func() client.WorkflowRun { return r.finish(r.scheduled(names.FactoryRefresh, due)) },
		"factory_refresh_late": func() client.WorkflowRun { return r.finish(r.scheduled(names.FactoryRefresh, due.Add(-time.Hour))) },
		"graph_aggregate":      func() client.WorkflowRun { return r.finish(r.scheduled(names.GraphAggregate, due, AggregateInput{})) },
		"graph_aggregate_by_hand": func() client.WorkflowRun {
			start := due.Add(-time.Hour).Truncate(factory.BucketLength)
			return r.finish(r.start(names.GraphAggregate, AggregateInput{BucketStart: &start, Factories: []string{"factory-a"}}))
		},
		"graph_aggregate_refused": func() client.WorkflowRun {
			run := r.start(names.GraphAggregate, AggregateInput{LookbackBuckets: -1})
			var refused *temporal.ApplicationError
			require.ErrorAs(t, run.Get(t.Context(), nil), &refused)
			return run
		},
		"raw_reconcile": func() client.WorkflowRun { return r.finish(r.scheduled(names.RawReconcile, due, ReconcileRequest{})) },
		"raw_replay": func() client.WorkflowRun {
			return r.finish(r.start(names.RawReplay, ReplayInput{Request: ReplayRequest{
				FactoryID: "factory-a", From: noon, To: noon.Add(time.Hour), LateDays: 1,
			}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			done := run()
			r.keep(name, done.GetID(), done.GetRunID())
		})
	}
}

// successor waits until a run has continued as new and returns the next run.
func (r recorder) successor(run client.WorkflowRun) string {
	r.t.Helper()
	var next string
	require.Eventually(r.t, func() bool {
		closing := r.c.GetWorkflowHistory(r.t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		for closing.HasNext() {
			event, err := closing.Next()
			require.NoError(r.t, err)
			next = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		return next != ""
	}, 20*time.Second, 20*time.Millisecond)
	return next
}
