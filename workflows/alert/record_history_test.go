package alert

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/workflows/names"
)

var record = flag.Bool("record", false, "write the histories to testdata/replay_*.json")

// answers are activities that only answer; a reason says how.
type answers struct {
	mu    sync.Mutex
	sends map[string]int
}

func (a *answers) attempt(reason string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sends[reason]++
	return a.sends[reason]
}

func (a *answers) register(w worker.Worker) {
	for name, f := range map[string]any{
		ConfirmAlertActivity: func(_ context.Context, req ConfirmRequest) (Verdict, error) {
			return Verdict{Go: a.attempt("confirm") > 1, Why: alert.WhyAwaitingConfirmation}, nil
		},
		ReserveAlertActivity: func(_ context.Context, req ReserveRequest) (ReserveResult, error) {
			return ReserveResult{Verdict: Verdict{Go: req.Alert.Reason != "cooling", Why: alert.WhyCooldown}}, nil
		},
		SendAlertActivity: func(_ context.Context, req SendRequest) (SendResult, error) {
			attempt := a.attempt(req.Alert.Reason)
			switch {
			case req.Alert.Reason == "rejected":
				return SendResult{}, temporal.NewNonRetryableApplicationError("slack rejected", ErrRejected, nil)
			case req.Alert.Reason == "ambiguous" && attempt == 1:
				return SendResult{}, ambiguous()
			case req.Alert.Reason == "retried" && attempt == 1:
				return SendResult{}, unavailable()
			}
			return SendResult{Incident: Incident{"C", "1"}}, nil
		},
		SettleAlertActivity: func(_ context.Context, req SettleRequest) (SettleResult, error) {
			return SettleResult{Watch: req.Alert.Reason == "watched"}, nil
		},
		LogAlertsActivity: func(context.Context, LogRequest) error { return nil },
		CheckOpenAlertsActivity: func(_ context.Context, req CheckRequest) (CheckResult, error) {
			return CheckResult{Readable: true}, nil
		},
		SendRecoveryActivity: func(context.Context, RecoveryRequest) error { return nil },
	} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

func dial(t *testing.T) client.Client {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Identity, options.Logger = "recorder", silent
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestFreshHistoriesReplay runs entities on a real server and replays what they
// did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	c := dial(t)
	taskQueue := fmt.Sprintf("record-%d", time.Now().UnixNano())
	w := worker.New(c, taskQueue, worker.Options{Identity: "recorder"})
	w.RegisterWorkflowWithOptions(RiskAlert, workflow.RegisterOptions{Name: names.RiskAlert})
	(&answers{sends: map[string]int{}}).register(w)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	t.Run("factory", func(t *testing.T) {
		watched := danger("watched")
		watched.SourceUpdatedAt = factory.MillisOf(time.Now())
		run := start(t, c, taskQueue, "factory-a", Raise{
			Alerts:     []alert.Alert{watched, danger("cooling"), danger("rejected"), danger("ambiguous"), danger("retried")},
			Suppressed: []alert.Suppression{{Alert: danger("covered"), Why: "gate_covers:x"}},
		})
		require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{danger("retried"), blip()}}))
		require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, "not a raise"))
		update, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: run.GetID(), UpdateName: RaiseUpdate, Args: []any{Raise{Alerts: []alert.Alert{danger("updated")}}}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		require.NoError(t, err)
		var accepted Accepted
		require.NoError(t, update.Get(t.Context(), &accepted))
		require.Equal(t, Accepted{Started: 1}, accepted)
		// 6 sent, failed or ambiguous; 3 held back, one of them perhaps only
		// repeated; 2 refused.
		settled := await(t, c, run, func(s Status) bool {
			return s.Totals["sent"] == 3 && s.Totals["failed"] == 1 && s.Totals["ambiguous"] == 1 && len(s.Refused) == 2
		})
		require.Len(t, settled.Open, 1)
		if *record {
			await(t, c, run, func(s Status) bool { return s.Totals["recovered"] == 1 })
		}
		finish(t, c, run)
		keep(t, c, "factory", run)
	})
	t.Run("cloud", func(t *testing.T) {
		run := start(t, c, taskQueue, alert.ScopeCloud, Raise{Alerts: []alert.Alert{blip()}})
		await(t, c, run, func(s Status) bool { return s.Totals["suppressed"] == 1 })
		require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{blip()}}))
		await(t, c, run, func(s Status) bool { return s.Totals["sent"] == 1 })
		finish(t, c, run)
		keep(t, c, "cloud", run)
	})
}

func start(t *testing.T, c client.Client, taskQueue, scope string, raise Raise) client.WorkflowRun {
	t.Helper()
	id := fmt.Sprintf("record-%s-%d", scope, time.Now().UnixNano())
	run, err := c.SignalWithStartWorkflow(t.Context(), id, RaiseSignal, raise, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue},
		names.RiskAlert, Input{Request: Request{Scope: scope}})
	require.NoError(t, err)
	return run
}

func await(t *testing.T, c client.Client, run client.WorkflowRun, done func(Status) bool) Status {
	t.Helper()
	var status Status
	require.Eventually(t, func() bool {
		// A query may time out while the entity is busy: it is asked again.
		value, err := c.QueryWorkflow(t.Context(), run.GetID(), "", StatusQuery)
		return err == nil && value.Get(&status) == nil && done(status)
	}, 3*time.Minute, 100*time.Millisecond)
	return status
}

// finish cancels an entity and waits until it has ended.
func finish(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), ""))
	require.Error(t, run.Get(t.Context(), nil))
}

// keep replays the history of a run and, when asked to, writes it down.
func keep(t *testing.T, c client.Client, name string, run client.WorkflowRun) {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var recorded history.History
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		recorded.Events = append(recorded.Events, event)
	}
	require.NotEmpty(t, recorded.Events)
	require.NoError(t, newReplayer().ReplayWorkflowHistory(silent, &recorded))
	if *record && name != "" {
		body, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&recorded)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join("testdata", "replay_"+name+".json"), append(body, '\n'), 0o600))
	}
}

// TestNoSignalIsLostWhenContinuingAsNewOnTheServer floods an entity until the
// server suggests a new run, and counts.
func TestNoSignalIsLostWhenContinuingAsNewOnTheServer(t *testing.T) {
	const flood = 900
	c := dial(t)
	taskQueue := fmt.Sprintf("flood-%d", time.Now().UnixNano())
	for range 2 {
		w := worker.New(c, taskQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(RiskAlert, workflow.RegisterOptions{Name: names.RiskAlert})
		(&answers{sends: map[string]int{}}).register(w)
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	run := start(t, c, taskQueue, "factory-a", Raise{Alerts: []alert.Alert{danger("alert_0")}})
	for i := 1; i < flood; i++ {
		require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{danger(fmt.Sprintf("alert_%d", i))}}))
	}
	await(t, c, run, func(s Status) bool { return s.Totals["sent"] == flood && s.Pending == 0 })
	described, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	require.NotEqual(t, run.GetRunID(), described.WorkflowExecution.RunID, "the entity continued as new")
	require.NoError(t, c.TerminateWorkflow(t.Context(), run.GetID(), "", "test is over"))
	keep(t, c, "", run)
}
