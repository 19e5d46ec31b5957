package observability

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/exact"
	"millrace/domain/observability"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

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

// TestFreshHistoriesReplay runs every workflow on a real server and replays what
// it did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	recorder := historytest.New(t, registered, answers())
	due := time.Now().UTC().Truncate(time.Minute)
	for name, c := range map[string]struct {
		run   func(historytest.Recorder) client.WorkflowRun
		fails bool
	}{
		"signal_rollup": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Scheduled(names.SignalRollup, due, RollupInput{})
		}, false},
		"signal_rollup_late": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Scheduled(names.SignalRollup, due.Add(-time.Hour), RollupInput{})
		}, false},
		"signal_rollup_by_hand": {func(r historytest.Recorder) client.WorkflowRun {
			from := noon.Add(-time.Hour)
			return r.Start(names.SignalRollup, RollupInput{From: &from, To: &noon})
		}, false},
		"signal_rollup_refused": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Start(names.SignalRollup, RollupInput{From: &noon, To: &noon})
		}, true},
		"signal_reconcile": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Scheduled(names.SignalReconcile, due, ReconcileInput{})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder.In(t)
			run := c.run(r)
			err := run.Get(t.Context(), nil)
			if c.fails {
				var refused *temporal.ApplicationError
				require.ErrorAs(t, err, &refused)
			} else {
				require.NoError(t, err)
			}
			r.Keep(name, run)
		})
	}
}
