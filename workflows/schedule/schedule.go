// Package schedule tells workflows which nominal time a run of a schedule stands
// for.
package schedule

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Start is the search attribute that the server gives every run of a schedule:
// the nominal time that the run stands for, also in a backfill.
var Start = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// Time is the nominal time of a run; one started by hand stands for the time it
// began.
func Time(ctx workflow.Context) time.Time {
	if at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(Start); ok {
		return at.UTC()
	}
	return workflow.Now(ctx).UTC()
}
