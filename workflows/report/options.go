package report

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// targetsAtOnce and hoursAtOnce bound what a run does side by side (factory.md,
	// 7.2): together they keep at most 24 hours of objects in flight.
	targetsAtOnce = 4
	hoursAtOnce   = 6
	// outage is how long a stage waits for a store that does not answer. Reports are
	// made after midnight and read in the morning: a broken night still gives one.
	outage = 6 * time.Hour
	// heartbeat is how long a worker may be silent before its activity is given to
	// another: activities beat every five seconds.
	heartbeat = 20 * time.Second
	// untilTimeout leaves it to ScheduleToClose to end retries.
	untilTimeout = 100_000
	// maxDrafts is the first draft and the corrected one.
	maxDrafts = 2
	// maxCallsOfDraft bounds the requests for one draft that may have to be paid for
	// and brought nothing.
	maxCallsOfDraft = 3
	// leastWriting is the least time in which asking a model makes sense.
	leastWriting = 5 * time.Second
	// CatchUp is how late a run of the schedule may start.
	CatchUp = 48 * time.Hour
)

// storeRetries: a store that throttles is asked again soon, one that is down
// every two minutes. What can't succeed comes back as a final error.
var storeRetries = temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute, MaximumAttempts: untilTimeout}

// planOptions: a lookup of settings and one listing.
var planOptions = workflow.ActivityOptions{
	Summary:             "plan the day",
	StartToCloseTimeout: 30 * time.Second, ScheduleToCloseTimeout: outage, HeartbeatTimeout: heartbeat, RetryPolicy: &storeRetries,
}

// hourOptions: 2,600 objects at 16 at a time take seconds near the bucket and up
// to a minute far from it. It beats every few seconds, so that a dead worker's
// hour is done again soon; an hour is too short to resume within.
var hourOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 5 * time.Minute, ScheduleToCloseTimeout: outage, HeartbeatTimeout: heartbeat, RetryPolicy: &storeRetries,
}

// mergeOptions: 24 small reads and two writes.
var mergeOptions = workflow.ActivityOptions{
	Summary:             "merge the day",
	StartToCloseTimeout: 2 * time.Minute, ScheduleToCloseTimeout: outage, HeartbeatTimeout: heartbeat, RetryPolicy: &storeRetries,
}

// draftOptions: a model takes minutes for 3,000 tokens, and the activity beats
// while it waits and bounds each request itself. A model that throttles or is down
// is asked until the writing deadline, which the workflow sets as both timeouts.
var draftOptions = workflow.ActivityOptions{
	HeartbeatTimeout: heartbeat,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute, MaximumAttempts: untilTimeout,
	},
}

// publishOptions: two small reads and three writes.
var publishOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 2 * time.Minute, ScheduleToCloseTimeout: outage, HeartbeatTimeout: heartbeat, RetryPolicy: &storeRetries,
}

// deliverOptions: one message. Slack's own hours are waited for, but a message
// about yesterday that comes at noon is of little use.
var deliverOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 30 * time.Second, ScheduleToCloseTimeout: 3 * time.Hour, HeartbeatTimeout: heartbeat,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute, MaximumAttempts: untilTimeout,
	},
}

// awaitOptions: as long as a report may take. It beats from its own goroutine, so
// that another worker takes over where one dies.
var awaitOptions = workflow.ActivityOptions{
	StartToCloseTimeout: targetTimeout, ScheduleToCloseTimeout: targetTimeout, HeartbeatTimeout: heartbeat,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: untilTimeout,
	},
}

// targetTimeout is more than all stages may take together.
const targetTimeout = 22 * time.Hour
