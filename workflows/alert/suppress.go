package alert

import (
	"fmt"
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
	w.suppression(ctx, a, v.Why, v.Detail)
	return nil
}

// suppression records a suppression: on a new line of the log, or on the one on
// which the same suppression is being counted.
func (w *riskAlert) suppression(ctx workflow.Context, a alert.Alert, why, detail string) {
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
	w.log(ctx, line, record)
}

func (w *riskAlert) forgetRepeats(now time.Time) {
	for _, line := range workflow.DeterministicKeys(w.state.Repeats) {
		if !now.Before(w.state.Repeats[line].At.Add(RepeatWindow)) {
			delete(w.state.Repeats, line)
		}
	}
}

// log has a line written. One write is under way at a time: it takes all lines
// that changed meanwhile, and a line's count never goes back.
func (w *riskAlert) log(ctx workflow.Context, line string, record alert.Record) {
	w.unwritten[line] = record
	if w.writing {
		return
	}
	w.writing = true
	w.spawn(ctx, "log", func(ctx workflow.Context) {
		defer func() { w.writing = false }()
		for len(w.unwritten) > 0 {
			w.write(ctx)
		}
	})
}

// write writes what is not written yet, even when the entity is being cancelled.
func (w *riskAlert) write(ctx workflow.Context) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	var req LogRequest
	for _, line := range workflow.DeterministicKeys(w.unwritten) {
		req.Records = append(req.Records, w.unwritten[line])
	}
	clear(w.unwritten)
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, storeOptions(fmt.Sprintf("%d lines", len(req.Records)))), LogAlertsActivity, req).Get(ctx, nil)
	if err != nil {
		w.refuse(ctx, err)
	}
}
