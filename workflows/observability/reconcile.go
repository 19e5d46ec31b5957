package observability

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/schedule"
)

const (
	// reconcileLag is how many days after it a day is checked: signals may come two
	// days late, and its last ones are counted minutes after that.
	reconcileLag = 3
	// ReconcileCatchUp is how late the daily check may start.
	ReconcileCatchUp = 48 * time.Hour
	// catchUpDays are the days that a run checks: the newest that is due and those
	// that an outage within the catch-up window may have left out.
	catchUpDays = 2
)

// reconcileOptions: reading a million signals takes minutes; a beat comes with
// every thousand.
var reconcileOptions = workflow.ActivityOptions{
	StartToCloseTimeout:    2 * time.Hour,
	ScheduleToCloseTimeout: 6 * time.Hour,
	HeartbeatTimeout:       2 * time.Minute,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
}

// ReconcileInput names a day to check, such as 2026-05-04. The schedule names
// none: then it is the day three days before the run's nominal time, and the one
// before that.
type ReconcileInput struct {
	Day string `json:"day,omitempty"`
}

// ReconcileResult is what the checks found, by day.
type ReconcileResult struct {
	Days []DayResult `json:"days"`
}

// SignalReconcile compares the raw signals of a day with its aggregates, the day
// with its hours and the month with its days. It changes nothing: drift is a
// metric and an alert.
func SignalReconcile(ctx workflow.Context, in ReconcileInput) (ReconcileResult, error) {
	var result ReconcileResult
	days, err := in.days(schedule.Time(ctx))
	if err != nil {
		return result, err
	}
	for _, day := range days {
		options := reconcileOptions
		options.Summary = "check " + day
		var checked DayResult
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), ReconcileDayActivity, DayRequest{Day: day}).Get(ctx, &checked)
		if err != nil {
			return result, fmt.Errorf("check %s: %w", day, err)
		}
		result.Days = append(result.Days, checked)
		workflow.SetCurrentDetails(ctx, result.details())
	}
	return result, nil
}

func (in ReconcileInput) days(at time.Time) ([]string, error) {
	if in.Day != "" {
		if _, err := time.Parse(time.DateOnly, in.Day); err != nil {
			return nil, refusal("day: must be a day such as 2026-05-04")
		}
		return []string{in.Day}, nil
	}
	var days []string
	for i := range catchUpDays {
		days = append(days, at.AddDate(0, 0, -reconcileLag-i).Format(time.DateOnly))
	}
	return days, nil
}

// details shows the checks in the Temporal UI.
func (r ReconcileResult) details() string {
	lines := []string{"| day | apps | signals | pending | drifted |", "|---|---|---|---|---|"}
	for _, d := range r.Days {
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %d |", d.Day, d.Apps, d.Signals, d.Pending, d.Drifted))
		for _, drift := range d.Drifts {
			lines = append(lines, fmt.Sprintf("\n%s, %s: %s is %s, should be %s", drift.AppID, drift.Comparison, drift.Counter, drift.Have, drift.Want))
		}
	}
	return strings.Join(lines, "\n")
}
