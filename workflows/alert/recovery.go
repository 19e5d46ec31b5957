package alert

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
)

const (
	// lookEvery is how often an open alert is looked at.
	lookEvery = time.Minute
	// quietLooks is how often in a row an alert must be gone before it counts as
	// over, so that a flapping one is not announced back and forth.
	quietLooks = 2
)

// open watches for the end of an alert.
func (w *riskAlert) open(ctx workflow.Context, a alert.Alert, incident Incident) {
	key := a.Key().String()
	_, known := w.state.Open[key]
	if !known && len(w.state.Open) >= maxOpen {
		return
	}
	a.Details = alert.Details{}
	w.state.Open[key] = Open{Alert: a, Since: workflow.Now(ctx), Incident: incident}
	w.watch(ctx)
}

// watch looks at the read model each minute while an alert is open. It is no
// work that holds the run open: a new run watches on.
func (w *riskAlert) watch(ctx workflow.Context) {
	if w.watching || len(w.state.Open) == 0 {
		return
	}
	w.watching = true
	workflow.GoNamed(ctx, "recovery", func(ctx workflow.Context) {
		defer func() { w.watching = false }()
		for len(w.state.Open) > 0 {
			timer := workflow.NewTimerWithOptions(ctx, lookEvery, workflow.TimerOptions{Summary: "look whether the alerts are over"})
			if timer.Get(ctx, nil) != nil || w.full(ctx) {
				return
			}
			w.busy++
			w.look(ctx)
			w.busy--
		}
	})
}

func (w *riskAlert) look(ctx workflow.Context) {
	req := CheckRequest{Scope: w.scope}
	for _, key := range workflow.DeterministicKeys(w.state.Open) {
		req.Keys = append(req.Keys, w.state.Open[key].Alert.Key())
	}
	var result CheckResult
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, lookOptions), CheckOpenAlertsActivity, req).Get(ctx, &result)
	if err != nil || !result.Readable {
		return
	}
	for _, key := range req.Keys {
		open, ok := w.state.Open[key.String()]
		if !ok {
			continue
		}
		if slices.Contains(result.Raised, key) || w.inFlight[key.String()] {
			open.Quiet = 0
		} else {
			open.Quiet++
		}
		w.state.Open[key.String()] = open
		if open.Quiet >= quietLooks {
			delete(w.state.Open, key.String())
			w.spawn(ctx, "recovered "+key.String(), func(ctx workflow.Context) { w.recovered(ctx, open) })
		}
	}
	w.describe(ctx)
}

// recovered sends the notice that an alert is over and records it.
func (w *riskAlert) recovered(ctx workflow.Context, open Open) {
	at := factory.MillisOf(workflow.Now(ctx))
	req := RecoveryRequest{Alert: open.Alert, At: at, Incident: open.Incident}
	options := sendOptions("recovered " + open.Alert.Reason)
	record := alert.NewRecord(open.Alert, alert.Recovered, "condition_over", "", at)
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), SendRecoveryActivity, req).Get(ctx, nil)
	switch {
	case err != nil && isAmbiguous(err):
		record = alert.NewRecord(open.Alert, alert.Ambiguous, "recovery_notice", reasonOf(err), at)
	case err != nil:
		record = alert.NewRecord(open.Alert, alert.Failed, "recovery_notice", reasonOf(err), at)
	}
	w.remember(ctx, record)
	w.log(ctx, "recovery of "+open.Alert.Key().String(), record)
}
