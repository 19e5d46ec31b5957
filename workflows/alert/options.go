package alert

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// storeOptions are for single writes to DynamoDB. They are tried for a day: an
// alert must outlive an outage of the table. (A local activity without a
// schedule-to-close timeout would get that of one attempt.)
func storeOptions(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: 24 * time.Hour,
		Summary:                summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
		},
	}
}

// lookOptions are for looks at the read model; a missed one is made up for by
// the next.
var lookOptions = workflow.LocalActivityOptions{
	StartToCloseTimeout:    5 * time.Second,
	ScheduleToCloseTimeout: 30 * time.Second,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 3},
}

// startToCloseTimeout is the type by which a retry policy names an attempt that
// timed out, which is what a killed worker leaves.
const startToCloseTimeout = "TemporalTimeout:StartToClose"

// maxSends is more than fit into half an hour; it only keeps a Slack that always
// answers "wait 0 seconds" from being asked for ever.
const maxSends = 100

// sendOptions outlast an outage of Slack of half an hour: 4 s for the request
// and some for reading the secret, then ever slower tries. An attempt whose end
// is not known is not repeated by the policy: the workflow decides that.
func sendOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: 30 * time.Minute,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
			MaximumAttempts:        maxSends,
			NonRetryableErrorTypes: []string{ErrAmbiguous, ErrRejected, startToCloseTimeout},
		},
	}
}
