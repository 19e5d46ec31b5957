package alert

import (
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
)

// listen takes signals as they come, also while the entity is being cancelled.
// It waits for one to lie in the channel instead of in Receive: a waiting Receive
// is handed its signal before it runs, and a run that ends in between would lose
// it.
func (w *riskAlert) listen(ctx workflow.Context, signals workflow.ReceiveChannel) {
	waiting, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	for workflow.Await(waiting, func() bool { return signals.Len() > 0 }) == nil {
		w.receive(ctx, signals)
	}
}

// receive takes one signal. It is read raw, so that one that can't be read is
// refused with its reason and not lost without a word.
func (w *riskAlert) receive(ctx workflow.Context, signals workflow.ReceiveChannel) {
	var raw converter.RawValue
	signals.Receive(ctx, &raw)
	var raise Raise
	if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &raise); err != nil {
		w.refuse(ctx, fmt.Errorf("signal can't be read: %w", err))
		return
	}
	var good Raise
	for _, a := range raise.Alerts {
		if err := w.checkAlert(a); err != nil {
			w.refuse(ctx, err)
			continue
		}
		good.Alerts = append(good.Alerts, a)
	}
	good.Suppressed = raise.Suppressed
	if _, err := w.take(ctx, good); err != nil {
		w.refuse(ctx, err)
	}
}

// take begins the alerts of one snapshot and records what is suppressed.
func (w *riskAlert) take(ctx workflow.Context, raise Raise) (Accepted, error) {
	var accepted Accepted
	for _, s := range raise.Suppressed {
		if w.checkAlert(s.Alert) == nil {
			w.suppression(ctx, s.Alert, s.Why, "")
		}
	}
	for _, a := range raise.Alerts {
		if w.begin(ctx, a) {
			accepted.Started++
			continue
		}
		accepted.InFlight++
		w.suppression(ctx, a, alert.WhyInFlight, "the same alert is being sent")
	}
	return accepted, nil
}

// begin deals with an alert in a coroutine of its own, unless its key is in
// hand. While the run is ending, the alert waits for the next run.
func (w *riskAlert) begin(ctx workflow.Context, a alert.Alert) bool {
	key := a.Key().String()
	if w.inFlight[key] {
		return false
	}
	w.inFlight[key] = true
	if w.full(ctx) {
		w.state.Pending = append(w.state.Pending, a)
		return true
	}
	w.spawn(ctx, key, func(ctx workflow.Context) {
		w.process(ctx, a)
		delete(w.inFlight, key)
	})
	return true
}

// spawn runs a coroutine that must finish before the run may end.
func (w *riskAlert) spawn(ctx workflow.Context, name string, f func(workflow.Context)) {
	w.busy++
	workflow.GoNamed(ctx, name, func(ctx workflow.Context) {
		defer func() { w.busy-- }()
		f(ctx)
	})
}
