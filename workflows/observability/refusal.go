package observability

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// scheduledStart is the search attribute that the server gives every run of a
// schedule: the nominal time that the run stands for, also in a backfill.
var scheduledStart = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// scheduledTime is the nominal time of a run; one started by hand stands for the
// time it began.
func scheduledTime(ctx workflow.Context) time.Time {
	if at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledStart); ok {
		return at.UTC()
	}
	return workflow.Now(ctx).UTC()
}

// refusal is an error that no retry can mend: the input is wrong.
func refusal(message string) error {
	return temporal.NewNonRetryableApplicationError(message, "InvalidInput", nil)
}
