package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/workflows/names"
)

// world stands for the activities: it notes every call with its virtual time
// and answers as a test tells it to.
type world struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	started time.Time

	mu        sync.Mutex
	calls     []string
	settled   []SettleRequest
	logged    []alert.Record
	recovered []RecoveryRequest
	tokens    []string

	// Answers; nil takes the ordinary one.
	onConfirm func(ConfirmRequest) (Verdict, error)
	onReserve func(ReserveRequest) (ReserveResult, error)
	onSend    func(attempt int, req SendRequest) (SendResult, error)
	onCheck   func(look int) (CheckResult, error)
	watch     bool
	sends     int
	looks     int
}

// began is far ahead, because the test environment compares some deadlines of
// local activities with the real clock.
var began = time.Date(2100, 6, 2, 2, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w := &world{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, started: began}
	w.SetStartTime(began)
	w.SetTestTimeout(20 * time.Second)
	w.RegisterWorkflowWithOptions(RiskAlert, workflow.RegisterOptions{Name: names.RiskAlert})
	for name, f := range map[string]any{
		ConfirmAlertActivity: w.confirm, ReserveAlertActivity: w.reserve, SendAlertActivity: w.send, SettleAlertActivity: w.settle,
		LogAlertsActivity: w.log, CheckOpenAlertsActivity: w.check, SendRecoveryActivity: w.recover,
	} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

func (w *world) confirm(_ context.Context, req ConfirmRequest) (Verdict, error) {
	w.note("confirm %s", req.Alert.Reason)
	w.mu.Lock()
	w.tokens = append(w.tokens, req.Token)
	w.mu.Unlock()
	if w.onConfirm != nil {
		return w.onConfirm(req)
	}
	return Verdict{Go: true}, nil
}

func (w *world) reserve(_ context.Context, req ReserveRequest) (ReserveResult, error) {
	w.note("reserve %s", req.Alert.Reason)
	if w.onReserve != nil {
		return w.onReserve(req)
	}
	return ReserveResult{Verdict: Verdict{Go: true}}, nil
}

func (w *world) send(_ context.Context, req SendRequest) (SendResult, error) {
	w.note("send %s at %s", req.Alert.Reason, w.Now().Sub(w.started).Round(time.Second))
	w.mu.Lock()
	w.sends++
	attempt := w.sends
	w.mu.Unlock()
	if w.onSend != nil {
		return w.onSend(attempt, req)
	}
	return SendResult{}, nil
}

func (w *world) settle(_ context.Context, req SettleRequest) (SettleResult, error) {
	w.note("settle %s %s", req.Alert.Reason, req.Record.Outcome)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, req)
	return SettleResult{Watch: w.watch}, nil
}

func (w *world) log(_ context.Context, req LogRequest) error {
	for _, r := range req.Records {
		w.note("log %s %s x%d", r.Reason, r.Why, r.Count)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logged = append(w.logged, req.Records...)
	return nil
}

func (w *world) check(_ context.Context, req CheckRequest) (CheckResult, error) {
	w.mu.Lock()
	w.looks++
	look := w.looks
	w.mu.Unlock()
	if w.onCheck != nil {
		return w.onCheck(look)
	}
	return CheckResult{Raised: req.Keys, Readable: true}, nil
}

func (w *world) recover(_ context.Context, req RecoveryRequest) error {
	w.note("recover %s at %s", req.Alert.Reason, w.Now().Sub(w.started).Round(time.Second))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recovered = append(w.recovered, req)
	return nil
}

func (w *world) after(d time.Duration, f func()) { w.RegisterDelayedCallback(f, d) }

func (w *world) raise(d time.Duration, alerts ...alert.Alert) {
	w.after(d, func() { w.SignalWorkflow(RaiseSignal, Raise{Alerts: alerts}) })
}

// runFor runs the entity and cancels it after a time; everything else has
// happened by then.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.after(d, w.CancelWorkflow)
	w.ExecuteWorkflow(names.RiskAlert, Input{Request: Request{Scope: "factory-a"}})
	require.True(w.t, w.IsWorkflowCompleted())
	var cancelled *temporal.CanceledError
	require.True(w.t, errors.As(w.GetWorkflowError(), &cancelled), "%v", w.GetWorkflowError())
}

func (w *world) status() Status {
	w.t.Helper()
	value, err := w.QueryWorkflow(StatusQuery)
	require.NoError(w.t, err)
	var s Status
	require.NoError(w.t, value.Get(&s))
	return s
}

func (w *world) outcomes() []alert.Outcome {
	var outcomes []alert.Outcome
	for _, s := range w.settled {
		outcomes = append(outcomes, s.Record.Outcome)
	}
	return outcomes
}

func danger(reason string) alert.Alert {
	return alert.Alert{
		Scope: "factory-a", SourceType: alert.SourceFactory, Severity: alert.Danger, Reason: reason, Status: "normal",
		FingerprintStatus: "state_snapshot", SourceUpdatedAt: factory.MillisOf(began), Because: "F1",
	}
}

// blip is an alert that must be confirmed.
func blip() alert.Alert {
	return alert.Alert{
		Scope: "cloud-infra", SourceType: alert.SourceFast, Severity: alert.Warning, Reason: "data_pipeline_warning", Status: "warning",
		FingerprintStatus: "fast", SourceUpdatedAt: factory.MillisOf(began),
	}
}

func unavailable() error {
	return temporal.NewApplicationError("slack unavailable", "SlackUnavailable")
}

func ambiguous() error {
	return temporal.NewNonRetryableApplicationError("slack unknown: timeout", ErrAmbiguous, nil)
}
