package alert

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
)

// process takes one alert through confirmation, reservation, sending and
// recording.
func (w *riskAlert) process(ctx workflow.Context, a alert.Alert) {
	if err := w.steps(ctx, a); err != nil {
		w.refuse(ctx, fmt.Errorf("%s: %w", a.Key().SK, err))
	}
}

func (w *riskAlert) steps(ctx workflow.Context, a alert.Alert) error {
	if _, needed := a.Confirmation(); needed {
		verdict, err := w.confirm(ctx, a)
		if err != nil || !verdict.Go {
			return w.suppress(ctx, a, verdict, err)
		}
	}
	reserved, err := w.reserve(ctx, a)
	if err != nil || !reserved.Go {
		return w.suppress(ctx, a, reserved.Verdict, err)
	}
	sent := w.send(ctx, a, reserved.Incident)
	watch, err := w.settle(ctx, a, sent)
	if err != nil {
		return err
	}
	if watch && sent.outcome != alert.Failed {
		w.open(ctx, a, sent.incident)
	}
	return nil
}

func (w *riskAlert) confirm(ctx workflow.Context, a alert.Alert) (Verdict, error) {
	w.state.Deliveries++
	req := ConfirmRequest{Alert: a, At: workflow.Now(ctx), Token: fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).FirstRunID, w.state.Deliveries)}
	var verdict Verdict
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions(a.Key().SK)), ConfirmAlertActivity, req).Get(ctx, &verdict)
	return verdict, err
}

// reserve goes on when the entity is being cancelled: a reservation that nobody
// knows of could not be settled.
func (w *riskAlert) reserve(ctx workflow.Context, a alert.Alert) (ReserveResult, error) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	var result ReserveResult
	req := ReserveRequest{Alert: a, At: workflow.Now(ctx)}
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions(a.Key().SK)), ReserveAlertActivity, req).Get(ctx, &result)
	return result, err
}

// sending is how the sending of an alert ended.
type sending struct {
	outcome  alert.Outcome
	why      string
	detail   string
	incident Incident
}

// send posts the alert. Attempts that surely did not arrive are repeated by the
// retry policy. One that may have arrived is repeated once; the outcome is
// ambiguous then, whatever comes of it: Slack may have the message twice, or the
// first one only.
func (w *riskAlert) send(ctx workflow.Context, a alert.Alert, incident Incident) sending {
	req := SendRequest{Alert: a, Incident: incident}
	ambiguous := ""
	for {
		var result SendResult
		options := sendOptions(string(a.Severity) + " " + a.Reason)
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), SendAlertActivity, req).Get(ctx, &result)
		switch {
		case err == nil && ambiguous == "":
			return sending{outcome: alert.Sent, why: "raised", incident: result.Incident}
		case err == nil:
			return sending{outcome: alert.Ambiguous, why: "sent_twice_perhaps", detail: ambiguous, incident: result.Incident}
		case ambiguous != "":
			return sending{outcome: alert.Ambiguous, why: "no_answer", detail: reasonOf(err), incident: incident}
		case !isAmbiguous(err):
			return sending{outcome: alert.Failed, why: "not_sent", detail: reasonOf(err)}
		}
		ambiguous = reasonOf(err)
	}
}

// isAmbiguous tells an attempt whose end is not known: Slack did not answer, or
// the worker vanished.
func isAmbiguous(err error) bool {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return application.Type() == ErrAmbiguous
	}
	var timeout *temporal.TimeoutError
	return errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE
}

// reasonOf is the innermost message of a failed activity. Activities put no
// secret into it.
func reasonOf(err error) string {
	var application *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &application):
		return application.Message()
	case errors.As(err, &timeout):
		return "timeout: " + timeout.TimeoutType().String()
	case errors.As(err, &cancelled):
		return "cancelled"
	}
	return "not sent"
}

// settle records the end of a sending, even when the entity is being cancelled:
// a reserved alert that was not sent must not stay quiet. It tells whether the
// alert's end is to be watched for.
func (w *riskAlert) settle(ctx workflow.Context, a alert.Alert, s sending) (bool, error) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	at := workflow.Now(ctx)
	record := alert.NewRecord(a, s.outcome, s.why, s.detail, factory.MillisOf(at))
	req := SettleRequest{Alert: a, Record: record, At: at, Incident: s.incident}
	if s.outcome != alert.Sent {
		req.Error = s.detail
	}
	var result SettleResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions(a.Key().SK)), SettleAlertActivity, req).Get(ctx, &result)
	if err != nil {
		return false, err
	}
	w.remember(ctx, record)
	return result.Watch, nil
}
