package artifact

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// storeOptions are for single transactions. They are tried for a day: a
// lifecycle must outlive an outage of the table.
func storeOptions(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: 24 * time.Hour,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	}
}

// contentOptions are for what reads or writes up to 200 MiB of content; the
// heartbeat of 30 s lets a dead worker be replaced early. No limit of attempts:
// S3 comes back.
func contentOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Minute,
		HeartbeatTimeout:    30 * time.Second,
		Summary:             summary,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	}
}

// noticeOptions are for what tells others: tried for an hour, then given up, for
// nothing may wait for it.
func noticeOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: time.Hour,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	}
}

const (
	// RunHeartbeat is the heartbeat timeout of a run. An executor that gets no
	// heartbeat acknowledged for two thirds of it kills what it runs.
	RunHeartbeat = 30 * time.Second
	// RunKeep is how long an executor tries to record a run that is over and to store
	// what it left, with heartbeats: stores come back.
	RunKeep = 10 * time.Minute
	// runGrace is what an executor may take beyond the run's own timeout to kill,
	// store and report.
	runGrace = RunKeep + 2*time.Minute
	// lostGrace is how long after a lost worker was noticed its script is surely
	// dead: the heartbeat timeout again, and some.
	lostGrace = RunHeartbeat + 15*time.Second
	// runQueued is how long a run waits for a worker.
	runQueued = 24 * time.Hour
)

// runOptions are for a run: one attempt, for a script must not run twice.
func runOptions(taskQueue string, limits artifact.Limits, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              taskQueue,
		ScheduleToStartTimeout: runQueued,
		StartToCloseTimeout:    limits.Timeout.Of() + runGrace,
		HeartbeatTimeout:       RunHeartbeat,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}
}

const (
	// undoAttempts and undoWait are how often and how slowly an undo is tried.
	undoAttempts = 5
	undoWait     = 10 * time.Second
	// busyWait is how long a version waits before it asks for its turn again.
	busyWait = 10 * time.Second
	// maxBusyWait is what that wait grows to, doubled at most maxTurns times.
	maxBusyWait = 5 * time.Minute
	maxTurns    = 5
	// archiveRetry is how long a failed archive waits.
	archiveRetry = 24 * time.Hour
)
