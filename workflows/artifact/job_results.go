package artifact

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// DrainJobResultsActivity takes the replies of devices from their queue.
const DrainJobResultsActivity = "DrainJobResults"

// ErrNotConfigured is the error type of what a worker was given no settings for.
const ErrNotConfigured = "NotConfigured"

// JobResultStretch is how long one drain activity takes replies.
const JobResultStretch = 5 * time.Minute

// jobResultOptions leave a minute for finishing what is held. The heartbeat comes
// every 15 s from its own goroutine, so two missed ones mean a dead worker. An
// outage is dealt with inside the activity; what ends it early is retried for as
// long as the drain is meant to run.
var jobResultOptions = workflow.ActivityOptions{
	StartToCloseTimeout: JobResultStretch + time.Minute,
	HeartbeatTimeout:    30 * time.Second,
	WaitForCancellation: true,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
	},
}

// JobResultRequest asks for one stretch of draining.
type JobResultRequest struct{}

// JobResultCounts are what a drain did; Outcomes says what became of replies.
type JobResultCounts struct {
	Received  int64            `json:"received"`
	Deleted   int64            `json:"deleted"`
	Abandoned int64            `json:"abandoned"`
	Outages   int64            `json:"outages"`
	Outcomes  map[string]int64 `json:"outcomes,omitempty"`
}

// JobResultInput starts the drain; Carry is only for its own continuation.
type JobResultInput struct {
	Carry *JobResultCarry `json:"carry,omitempty"`
}

// JobResultCarry is what the drain carries from run to run.
type JobResultCarry struct {
	Runs     int64            `json:"runs"`
	Received int64            `json:"received"`
	Deleted  int64            `json:"deleted"`
	Outcomes map[string]int64 `json:"outcomes,omitempty"`
}

// JobResultStatus is the answer to the query "status".
type JobResultStatus struct {
	Totals JobResultCarry `json:"totals"`
}

// JobResultDrain takes the replies of devices from their queue and tells the
// lifecycles that wait for them. It runs one drain after the other, each in a run
// of its own.
func JobResultDrain(ctx workflow.Context, in JobResultInput) error {
	var status JobResultStatus
	if in.Carry != nil {
		if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
			return temporal.NewNonRetryableApplicationError("carry is only for a continued run", ErrInvalid, nil)
		}
		status.Totals = *in.Carry
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (JobResultStatus, error) { return status, nil }); err != nil {
		return err
	}
	var counts JobResultCounts
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, jobResultOptions), DrainJobResultsActivity, JobResultRequest{}).Get(ctx, &counts)
	if err != nil {
		return err
	}
	status.Totals.add(counts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return workflow.NewContinueAsNewError(ctx, JobResultDrain, JobResultInput{Carry: &status.Totals})
}

func (c *JobResultCarry) add(counts JobResultCounts) {
	c.Runs++
	c.Received += counts.Received
	c.Deleted += counts.Deleted
	if c.Outcomes == nil {
		c.Outcomes = make(map[string]int64, len(counts.Outcomes))
	}
	for _, outcome := range workflow.DeterministicKeys(counts.Outcomes) {
		c.Outcomes[outcome] += counts.Outcomes[outcome]
	}
}
