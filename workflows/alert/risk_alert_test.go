package alert

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/workflows/names"
)

func TestAnAlertIsReservedSentAndSettled(t *testing.T) {
	w := newWorld(t)
	w.onReserve = func(ReserveRequest) (ReserveResult, error) {
		return ReserveResult{Verdict: Verdict{Go: true}, Incident: Incident{Channel: "C", TS: "1"}}, nil
	}
	w.onSend = func(_ int, req SendRequest) (SendResult, error) { return SendResult{Incident: req.Incident}, nil }
	w.raise(time.Minute, danger("a"))
	w.runFor(time.Hour)
	require.Equal(t, []string{"reserve a", "send a at 1m0s", "settle a sent"}, w.calls)
	require.Equal(t, Incident{Channel: "C", TS: "1"}, w.settled[0].Incident)
	require.Empty(t, w.settled[0].Error)
	require.Zero(t, w.looks, "without recovery notices an entity idles")
	require.Equal(t, map[string]int64{"sent": 1}, w.status().Totals)
}

func TestABlipIsConfirmedFirst(t *testing.T) {
	w := newWorld(t)
	w.onConfirm = func(req ConfirmRequest) (Verdict, error) {
		if req.At.Before(began.Add(2 * time.Minute)) {
			return Verdict{Why: alert.WhyAwaitingConfirmation, Detail: "1 of 2"}, nil
		}
		return Verdict{Go: true}, nil
	}
	w.raise(time.Minute, blip())
	w.raise(2*time.Minute, blip())
	w.after(time.Hour, w.CancelWorkflow)
	w.ExecuteWorkflow(names.RiskAlert, Input{Request: Request{Scope: "cloud-infra"}})
	require.Equal(t, []string{
		"confirm data_pipeline_warning", "log data_pipeline_warning awaiting_confirmation x1",
		"confirm data_pipeline_warning", "reserve data_pipeline_warning", "send data_pipeline_warning at 2m0s", "settle data_pipeline_warning sent",
	}, w.calls)
	require.Len(t, w.tokens, 2)
	require.NotEqual(t, w.tokens[0], w.tokens[1], "each delivery has a token of its own")
}

func TestWhatIsNotReservedIsRecordedAndNotSent(t *testing.T) {
	for _, why := range []string{alert.WhyCooldown, alert.WhyDuplicate, alert.WhySilenced, alert.WhyNotConfigured} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t)
			w.onReserve = func(ReserveRequest) (ReserveResult, error) {
				return ReserveResult{Verdict: Verdict{Why: why, Detail: "because"}}, nil
			}
			w.raise(time.Minute, danger("a"))
			w.runFor(time.Hour)
			require.Equal(t, []string{"reserve a", "log a " + why + " x1"}, w.calls)
			require.Equal(t, alert.Suppressed, w.logged[0].Outcome)
			require.Equal(t, "because", w.logged[0].Detail)
			require.Equal(t, began.Add(time.Minute), w.logged[0].At.Time)
		})
	}
}

func TestRepeatedSuppressionsCountOnOneLineForFiveMinutes(t *testing.T) {
	w := newWorld(t)
	w.onReserve = func(ReserveRequest) (ReserveResult, error) {
		return ReserveResult{Verdict: Verdict{Why: alert.WhyCooldown}}, nil
	}
	for i := range 12 {
		w.raise(time.Duration(i)*30*time.Second, danger("a"))
	}
	w.runFor(time.Hour)
	lines := map[string]int64{}
	for _, r := range w.logged {
		lines[r.At.String()+r.ID] = r.Count
	}
	require.Len(t, w.logged, 12, "every one is written")
	require.Len(t, lines, 2, "on one line for each five minutes")
	require.ElementsMatch(t, []int64{10, 2}, []int64{lines[w.logged[0].At.String()+w.logged[0].ID], lines[w.logged[11].At.String()+w.logged[11].ID]})
	require.EqualValues(t, 12, w.status().Totals["suppressed"])
}

func TestTheRulesSuppressionsAreRecordedToo(t *testing.T) {
	w := newWorld(t)
	w.after(time.Minute, func() {
		w.SignalWorkflow(RaiseSignal, Raise{Alerts: []alert.Alert{danger("a")}, Suppressed: []alert.Suppression{
			{Alert: danger("b"), Why: "gate_covers:a"}, {Alert: blip(), Why: "of another scope"},
		}})
	})
	w.runFor(time.Hour)
	require.Contains(t, w.calls, "log b gate_covers:a x1")
	require.Len(t, w.logged, 1)
}

// A send that hangs holds up neither another alert nor a second send of its key.
func TestEachSendHasItsOwnCoroutine(t *testing.T) {
	w := newWorld(t)
	w.onSend = func(_ int, req SendRequest) (SendResult, error) {
		if req.Alert.Reason == "slow" && w.Now().Before(began.Add(10*time.Minute)) {
			return SendResult{}, unavailable()
		}
		return SendResult{}, nil
	}
	w.raise(time.Minute, danger("slow"), danger("quick"))
	w.raise(2*time.Minute, danger("slow"), danger("other"))
	w.after(5*time.Minute, func() { require.Equal(t, []string{"ALERT#factory-a/danger#slow#state_snapshot"}, w.status().InFlight) })
	w.runFor(time.Hour)
	require.Contains(t, w.calls, "settle quick sent")
	require.Contains(t, w.calls, "settle other sent")
	require.Contains(t, w.calls, "log slow in_flight x1")
	require.Equal(t, "settle slow sent", w.calls[len(w.calls)-1], "nothing is lost while Slack is down")
	require.Len(t, w.settled, 3)
}

func TestFailuresThatSurelyDidNotArriveAreRetriedForHalfAnHour(t *testing.T) {
	w := newWorld(t)
	w.onSend = func(attempt int, _ SendRequest) (SendResult, error) {
		switch attempt {
		case 1:
			return SendResult{}, unavailable()
		case 2:
			return SendResult{}, temporal.NewApplicationErrorWithOptions("slack rate_limited", "SlackLimited", temporal.ApplicationErrorOptions{NextRetryDelay: 77 * time.Second})
		}
		return SendResult{}, nil
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Equal(t, []string{"reserve a", "send a at 0s", "send a at 2s", "send a at 1m19s", "settle a sent"}, w.calls)
}

func TestARejectedMessageFailsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.onSend = func(int, SendRequest) (SendResult, error) {
		return SendResult{}, temporal.NewNonRetryableApplicationError("slack rejected: status 404: no_service", ErrRejected, nil)
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Equal(t, []alert.Outcome{alert.Failed}, w.outcomes())
	require.Equal(t, "slack rejected: status 404: no_service", w.settled[0].Error)
	require.Equal(t, 1, w.sends)
}

func TestAnUnansweredRequestIsRepeatedOnceAndAmbiguous(t *testing.T) {
	for name, test := range map[string]struct {
		answers []error
		sends   int
		why     string
	}{
		"then posted":            {[]error{ambiguous(), nil}, 2, "sent_twice_perhaps"},
		"then unanswered again":  {[]error{ambiguous(), ambiguous()}, 2, "no_answer"},
		"then refused":           {[]error{ambiguous(), temporal.NewNonRetryableApplicationError("gone", ErrRejected, nil)}, 2, "no_answer"},
		"then down, then posted": {[]error{ambiguous(), unavailable(), unavailable(), nil}, 4, "sent_twice_perhaps"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.onSend = func(attempt int, _ SendRequest) (SendResult, error) { return SendResult{}, test.answers[attempt-1] }
			w.raise(0, danger("a"))
			w.runFor(time.Hour)
			require.Equal(t, test.sends, w.sends)
			require.Equal(t, []alert.Outcome{alert.Ambiguous}, w.outcomes())
			require.Equal(t, test.why, w.settled[0].Record.Why)
			require.NotEmpty(t, w.settled[0].Error)
		})
	}
}

func TestATableThatIsDownHoldsAlertsUpAndLosesNone(t *testing.T) {
	w := newWorld(t)
	tries := 0
	w.onReserve = func(ReserveRequest) (ReserveResult, error) {
		if tries++; tries < 5 {
			return ReserveResult{}, errors.New("throttled")
		}
		return ReserveResult{Verdict: Verdict{Go: true}}, nil
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Equal(t, []alert.Outcome{alert.Sent}, w.outcomes())
	require.Equal(t, 5, tries)
}

func TestARequestThatTheTableRefusesForGoodIsShown(t *testing.T) {
	w := newWorld(t)
	w.onReserve = func(ReserveRequest) (ReserveResult, error) {
		return ReserveResult{}, temporal.NewNonRetryableApplicationError("ValidationException", "InvalidInput", nil)
	}
	w.raise(0, danger("a"))
	w.runFor(time.Hour)
	require.Empty(t, w.settled)
	require.Contains(t, w.status().Refused[0].Reason, "ValidationException")
}

func TestBadSignalsAreRefusedWithTheirReason(t *testing.T) {
	w := newWorld(t)
	other := danger("a")
	other.Scope = "factory-b"
	unslugged := danger("Not A Slug")
	w.raise(time.Second, other, unslugged, danger("good"))
	w.after(2*time.Second, func() { w.SignalWorkflow(RaiseSignal, "no raise") })
	w.runFor(time.Hour)
	refused := w.status().Refused
	require.Len(t, refused, 3)
	require.Contains(t, refused[0].Reason, "scope: must be factory-a")
	require.Contains(t, refused[1].Reason, "reason: must be a slug")
	require.Contains(t, refused[2].Reason, "can't be read")
	require.Equal(t, []string{"reserve good", "send good at 1s", "settle good sent"}, w.calls, "a bad alert never sinks its snapshot")
}

type updateResult struct {
	rejected error
	value    any
	err      error
}

func (u *updateResult) Accept()                     {}
func (u *updateResult) Reject(err error)            { u.rejected = err }
func (u *updateResult) Complete(value any, e error) { u.value, u.err = value, e }

func TestAnUpdateTellsAtOnceWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	var bad, good, again updateResult
	other := danger("a")
	other.Severity = "purple"
	w.onSend = func(attempt int, _ SendRequest) (SendResult, error) {
		if attempt == 1 {
			return SendResult{}, unavailable()
		}
		return SendResult{}, nil
	}
	w.after(time.Second, func() {
		w.UpdateWorkflow(RaiseUpdate, "1", &bad, Raise{Alerts: []alert.Alert{danger("x"), other}})
		w.UpdateWorkflow(RaiseUpdate, "2", &good, Raise{Alerts: []alert.Alert{danger("a")}})
		w.UpdateWorkflow(RaiseUpdate, "3", &again, Raise{Alerts: []alert.Alert{danger("a")}})
	})
	w.runFor(time.Hour)
	require.ErrorContains(t, bad.rejected, "alerts[1]: severity")
	require.NoError(t, good.rejected)
	require.Equal(t, Accepted{Started: 1}, good.value)
	require.Equal(t, Accepted{InFlight: 1}, again.value)
	require.Empty(t, w.status().Refused, "a refused update leaves nothing behind")
	require.Len(t, w.settled, 1)
}

func TestCancellingSettlesWhatWasReserved(t *testing.T) {
	w := newWorld(t)
	w.onSend = func(int, SendRequest) (SendResult, error) { return SendResult{}, unavailable() }
	w.raise(0, danger("a"))
	w.runFor(5 * time.Minute)
	require.Equal(t, []alert.Outcome{alert.Failed}, w.outcomes(), "a failed send releases the cooldown")
}

func TestOnlyAScopeIsAlerted(t *testing.T) {
	for name, in := range map[string]Input{
		"no scope":             {},
		"carry on a first run": {Request: Request{Scope: "factory-a"}, Carry: &Carry{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ExecuteWorkflow(names.RiskAlert, in)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, w.GetWorkflowError(), &refused)
			require.Equal(t, "InvalidInput", refused.Type())
			require.True(t, refused.NonRetryable())
		})
	}
}

func (w *world) continued() Carry {
	w.t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(w.t, w.GetWorkflowError(), &next)
	require.Equal(w.t, names.RiskAlert, next.WorkflowType.Name)
	var in Input
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	require.Equal(w.t, "factory-a", in.Request.Scope)
	return *in.Carry
}

// A run whose history is full finishes the send in hand, begins nothing new, and
// carries what came meanwhile.
func TestContinuingAsNewLosesNoSignal(t *testing.T) {
	w := newWorld(t)
	w.watch = true
	w.onSend = func(int, SendRequest) (SendResult, error) {
		if w.Now().Before(began.Add(5 * time.Minute)) {
			return SendResult{}, unavailable()
		}
		return SendResult{}, nil
	}
	w.raise(0, danger("first"))
	w.after(time.Minute, func() { w.SetContinueAsNewSuggested(true) })
	w.raise(2*time.Minute, danger("second"), danger("first"))
	w.raise(3*time.Minute, danger("second"), danger("third"))
	w.ExecuteWorkflow(names.RiskAlert, Input{Request: Request{Scope: "factory-a"}})
	carry := w.continued()
	require.Equal(t, []alert.Outcome{alert.Sent}, w.outcomes())
	require.Len(t, carry.Pending, 2)
	require.Equal(t, "second", carry.Pending[0].Reason)
	require.Equal(t, "third", carry.Pending[1].Reason)
	require.Len(t, carry.Open, 1)
	require.Equal(t, map[string]int64{"sent": 1, "suppressed": 2}, carry.Totals)

	next := newWorld(t)
	next.SetContinuedExecutionRunID("earlier")
	next.after(time.Hour, next.CancelWorkflow)
	next.ExecuteWorkflow(names.RiskAlert, Input{Request: Request{Scope: "factory-a"}, Carry: &carry})
	require.ElementsMatch(t, []alert.Outcome{alert.Sent, alert.Sent}, next.outcomes(), "the next run begins with what was pending")
	require.NotZero(t, next.looks, "and watches on")
}

// The task that says that the history is full is most often the one that brings
// a signal to an idle entity.
func TestASignalInTheLastTaskOfARunIsCarried(t *testing.T) {
	w := newWorld(t)
	raise := Raise{Alerts: []alert.Alert{danger("late")}, Suppressed: []alert.Suppression{{Alert: danger("covered"), Why: "gate_covers:late"}}}
	w.after(time.Minute, func() { w.SignalWorkflowSkippingWorkflowTask(RaiseSignal, raise) })
	w.after(2*time.Minute, func() { w.SetContinueAsNewSuggested(true) })
	w.ExecuteWorkflow(names.RiskAlert, Input{Request: Request{Scope: "factory-a"}})
	carry := w.continued()
	require.Len(t, carry.Pending, 1)
	require.Equal(t, "late", carry.Pending[0].Reason)
	require.Equal(t, []string{"log covered gate_covers:late x1"}, w.calls, "what was suppressed is written before the run ends")
}

func TestTheCarrySurvivesItsJSON(t *testing.T) {
	record := alert.NewRecord(danger("a"), alert.Sent, "raised", "", danger("a").SourceUpdatedAt)
	want := Carry{
		Pending: []alert.Alert{danger("a")}, Open: map[string]Open{"k": {Alert: danger("a"), Since: began, Quiet: 1, Incident: Incident{"C", "1"}}},
		Repeats: map[string]alert.Record{"k": record}, Refused: []Refusal{{At: began, Reason: "x"}}, Recent: []alert.Record{record},
		Totals: map[string]int64{"sent": 1}, Deliveries: 7,
	}
	body, err := json.Marshal(want)
	require.NoError(t, err)
	var got Carry
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, want, got)
}
