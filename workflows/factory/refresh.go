package factory

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/schedule"
)

// refreshMaxLate is how late a refresh may run. It judges the present, so that a
// run made up for after an outage, or in a backfill, has nothing to say.
const refreshMaxLate = 2 * time.Minute

// refreshOptions let a refresh retry within its own minute: the next run starts
// then, and does the same for whatever failed.
var refreshOptions = workflow.ActivityOptions{
	Summary:                "judge every factory as of now",
	StartToCloseTimeout:    30 * time.Second,
	ScheduleToCloseTimeout: 55 * time.Second,
	HeartbeatTimeout:       15 * time.Second, // a state takes milliseconds; the SDK's own two attempts some seconds
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
	},
}

// FactoryRefresh judges every watched factory again, whether or not it sent
// anything. It is a sampler: it uses now, and a run that is more than two minutes
// late does nothing but say so.
func FactoryRefresh(ctx workflow.Context) (RefreshResult, error) {
	scheduled, began := schedule.Time(ctx), workflow.Now(ctx).UTC()
	if late := began.Sub(scheduled); late > refreshMaxLate {
		workflow.SetCurrentDetails(ctx, "Came too late: did nothing.")
		return RefreshResult{
			Status: StatusLate, ScheduledAt: scheduled, LateSeconds: int64(late / time.Second), Refreshed: []RefreshedFactory{},
		}, nil
	}
	ctx = workflow.WithActivityOptions(ctx, refreshOptions)
	var result RefreshResult
	err := workflow.ExecuteActivity(ctx, RefreshFactoriesActivity, RefreshRequest{AsOf: began}).Get(ctx, &result)
	result.ScheduledAt = scheduled
	workflow.SetCurrentDetails(ctx, result.details())
	return result, err
}

// details is the run as a Markdown table for the Temporal UI.
func (r RefreshResult) details() string {
	lines := []string{"| factory | pipeline | risk score |", "|---|---|---|"}
	for _, f := range r.Refreshed[:min(len(r.Refreshed), maxDetails)] {
		score := f.Status
		if f.RiskScore != nil {
			score = f.RiskScore.String()
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |", f.FactoryID, f.PipelineStatus, score))
	}
	return strings.Join(lines, "\n")
}
