package observability

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
	"millrace/domain/observability"
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
	return map[string]any{
		FindPendingActivity: func(context.Context, FindRequest) (FindResult, error) {
			return FindResult{Shards: []int{0, 2, 5, 9, 11, 15}}, nil
		},
		DrainSignalsActivity: func(ctx context.Context, req DrainRequest) (DrainResult, error) {
			if req.Shard == 2 && activity.GetInfo(ctx).Attempt == 1 {
				return DrainResult{}, errors.New("no answer")
			}
			done := req.Shard != 5 || !req.From.IsZero()
			return DrainResult{Counts: Counts{Signals: 97, Transactions: 1, TraceRows: 90}, Done: done, Next: noon}, nil
		},
		EvaluateRulesActivity: func(context.Context, EvaluateRequest) (EvaluateResult, error) {
			return EvaluateResult{Rules: 4, Firing: 1, New: 1, Raised: 1}, nil
		},
		ReconcileDayActivity: func(_ context.Context, req DayRequest) (DayResult, error) {
			return DayResult{Day: req.Day, Apps: 3, Signals: 1000, Drifted: 1, Drifts: []AppDrift{{
				AppID: "app-x", Comparison: RawAgainstDay, Drift: observability.Drift{Counter: "signal_count", Want: exact.FromInt(1), Have: exact.FromInt(2)},
			}}}, nil
		},
	}
}

func (r recorder) start(workflow string, input any) client.WorkflowRun {
	r.t.Helper()
	id := fmt.Sprintf("record-%s-%d", workflow, time.Now().UnixNano())
	run, err := r.c.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: r.taskQueue}, workflow, input)
	require.NoError(r.t, err)
	return run
}

// scheduled is the run of a schedule that stands for the given time.
func (r recorder) scheduled(workflow string, at time.Time, input any) client.WorkflowRun {
	r.t.Helper()
	id := fmt.Sprintf("record-%s-%d", workflow, time.Now().UnixNano())
	handle, err := r.c.ScheduleClient().Create(r.t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}}, Paused: true,
		Action:           &client.ScheduleWorkflowAction{ID: id, Workflow: workflow, Args: []any{input}, TaskQueue: r.taskQueue},
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
func (r recorder) keep(name string, run client.WorkflowRun) {
	r.t.Helper()
	events := r.c.GetWorkflowHistory(r.t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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

// TestFreshHistoriesReplay runs every workflow on a real server and replays what
// it did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	r := newRecorder(t)
	due := time.Now().UTC().Truncate(time.Minute)
	for name, c := range map[string]struct {
		run   func() client.WorkflowRun
		fails bool
	}{
		"signal_rollup":      {func() client.WorkflowRun { return r.scheduled(names.SignalRollup, due, RollupInput{}) }, false},
		"signal_rollup_late": {func() client.WorkflowRun { return r.scheduled(names.SignalRollup, due.Add(-time.Hour), RollupInput{}) }, false},
		"signal_rollup_by_hand": {func() client.WorkflowRun {
			from := noon.Add(-time.Hour)
			return r.start(names.SignalRollup, RollupInput{From: &from, To: &noon})
		}, false},
		"signal_rollup_refused": {func() client.WorkflowRun { return r.start(names.SignalRollup, RollupInput{From: &noon, To: &noon}) }, true},
		"signal_reconcile":      {func() client.WorkflowRun { return r.scheduled(names.SignalReconcile, due, ReconcileInput{}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			run := c.run()
			err := run.Get(t.Context(), nil)
			if c.fails {
				var refused *temporal.ApplicationError
				require.ErrorAs(t, err, &refused)
			} else {
				require.NoError(t, err)
			}
			r.keep(name, run)
		})
	}
}
