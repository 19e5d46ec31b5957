package alert

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

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

func newAnswers() map[string]any {
	a := &answers{sends: map[string]int{}}
	return map[string]any{
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
	}
}

// TestFreshHistoriesReplay runs entities on a real server and replays what they
// did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	recorder := historytest.New(t, registered, newAnswers())

	t.Run("factory", func(t *testing.T) {
		r := recorder.In(t)
		watched := danger("watched")
		watched.SourceUpdatedAt = factory.MillisOf(time.Now())
		run := start(t, r, "factory-a", Raise{
			Alerts:     []alert.Alert{watched, danger("cooling"), danger("rejected"), danger("ambiguous"), danger("retried")},
			Suppressed: []alert.Suppression{{Alert: danger("covered"), Why: "gate_covers:x"}},
		})
		require.NoError(t, r.Client.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{danger("retried"), blip()}}))
		require.NoError(t, r.Client.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, "not a raise"))
		update, err := r.Client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: run.GetID(), UpdateName: RaiseUpdate, Args: []any{Raise{Alerts: []alert.Alert{danger("updated")}}}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		require.NoError(t, err)
		var accepted Accepted
		require.NoError(t, update.Get(t.Context(), &accepted))
		require.Equal(t, Accepted{Started: 1}, accepted)
		// 6 sent, failed or ambiguous; 3 held back, one of them perhaps only
		// repeated; 2 refused.
		settled := await(t, r.Client, run, func(s Status) bool {
			return s.Totals["sent"] == 3 && s.Totals["failed"] == 1 && s.Totals["ambiguous"] == 1 && len(s.Refused) == 2
		})
		require.Len(t, settled.Open, 1)
		if historytest.Recording() {
			await(t, r.Client, run, func(s Status) bool { return s.Totals["recovered"] == 1 })
		}
		finish(t, r.Client, run)
		r.Keep("factory", run)
	})
	t.Run("cloud", func(t *testing.T) {
		r := recorder.In(t)
		run := start(t, r, alert.ScopeCloud, Raise{Alerts: []alert.Alert{blip()}})
		await(t, r.Client, run, func(s Status) bool { return s.Totals["suppressed"] == 1 })
		require.NoError(t, r.Client.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{blip()}}))
		await(t, r.Client, run, func(s Status) bool { return s.Totals["sent"] == 1 })
		finish(t, r.Client, run)
		r.Keep("cloud", run)
	})
}

func start(t *testing.T, r historytest.Recorder, scope string, raise Raise) client.WorkflowRun {
	t.Helper()
	id := historytest.NewID(scope)
	run, err := r.Client.SignalWithStartWorkflow(t.Context(), id, RaiseSignal, raise, client.StartWorkflowOptions{ID: id, TaskQueue: r.TaskQueue},
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

// TestNoSignalIsLostWhenContinuingAsNewOnTheServer floods an entity until the
// server suggests a new run, and counts.
func TestNoSignalIsLostWhenContinuingAsNewOnTheServer(t *testing.T) {
	const flood = 900
	r := historytest.New(t, registered, newAnswers())
	r.Work(newAnswers())
	run := start(t, r, "factory-a", Raise{Alerts: []alert.Alert{danger("alert_0")}})
	for i := 1; i < flood; i++ {
		require.NoError(t, r.Client.SignalWorkflow(t.Context(), run.GetID(), "", RaiseSignal, Raise{Alerts: []alert.Alert{danger(fmt.Sprintf("alert_%d", i))}}))
	}
	await(t, r.Client, run, func(s Status) bool { return s.Totals["sent"] == flood && s.Pending == 0 })
	described, err := r.Client.DescribeWorkflow(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	require.NotEqual(t, run.GetRunID(), described.WorkflowExecution.RunID, "the entity continued as new")
	require.NoError(t, r.Client.TerminateWorkflow(t.Context(), run.GetID(), "", "test is over"))
	r.Replay(run)
}
