package alert

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
)

// RepeatWindow is how long the same suppression counts on one line of the log.
const RepeatWindow = 5 * time.Minute

// suppress records that an alert was held back.
func (w *riskAlert) suppress(ctx workflow.Context, a alert.Alert, v Verdict, err error) error {
	if err != nil {
		return err
	}
	return w.log(ctx, w.suppression(ctx, a, v.Why, v.Detail))
}

// suppression is the log line of a suppression: a new one, or the one on which
// the same suppression is being counted.
func (w *riskAlert) suppression(ctx workflow.Context, a alert.Alert, why, detail string) alert.Record {
	now := factory.MillisOf(workflow.Now(ctx))
	w.forgetRepeats(now.Time)
	line := a.Key().String() + " " + why
	record, repeated := w.state.Repeats[line]
	if repeated {
		record.Count++
		record.LastAt, record.Detail = now, detail
	} else {
		record = alert.NewRecord(a, alert.Suppressed, why, detail, now)
	}
	if repeated || len(w.state.Repeats) < maxRepeats {
		w.state.Repeats[line] = record
	}
	w.state.Totals[string(alert.Suppressed)]++
	if !repeated {
		w.state.Recent = newest(append(w.state.Recent, record), maxRecent)
	}
	w.describe(ctx)
	return record
}

func (w *riskAlert) forgetRepeats(now time.Time) {
	for _, line := range workflow.DeterministicKeys(w.state.Repeats) {
		if !now.Before(w.state.Repeats[line].At.Add(RepeatWindow)) {
			delete(w.state.Repeats, line)
		}
	}
}

func (w *riskAlert) log(ctx workflow.Context, records ...alert.Record) error {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	return workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions), LogAlertsActivity, LogRequest{Records: records}).Get(ctx, nil)
}
