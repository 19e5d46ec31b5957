package factory

import (
	"time"

	"millrace/domain/factory"
)

// Names of the activities that repair read models from raw/.
const (
	PlanReconcileActivity      = "PlanReconcile"
	ReconcileFactoryActivity   = "ReconcileFactory"
	ReplayRawActivity          = "ReplayRaw"
	RestoreLatestStateActivity = "RestoreLatestState"
)

// ReconcileRequest asks for raw objects that were never processed. The zero
// value asks for what an hourly run looks at.
type ReconcileRequest struct {
	// WindowHours is how far back the run looks, by the time of receipt.
	WindowHours int `json:"window_hours,omitempty"`
	// Complete looks at every object received in the window. Otherwise only those
	// whose source time is in the window too are listed, which costs a fraction.
	Complete bool `json:"complete,omitempty"`
	// SettleSeconds is how long a message may take to be processed; 0 is 15
	// minutes. What is younger than that, and than the queue's backlog, is left.
	SettleSeconds int `json:"settle_seconds,omitempty"`
}

// ReconcilePlan is what one run looks at.
type ReconcilePlan struct {
	FactoryIDs []string  `json:"factory_ids"`
	From       time.Time `json:"from"`
	// Before is the cut-off: younger objects may still be in the queue.
	Before   time.Time `json:"before"`
	Complete bool      `json:"complete"`
	// Skipped says why this run does nothing, where it does not.
	Skipped string `json:"skipped,omitempty"`
}

// ReconcileFactoryRequest is the share of one factory in a plan.
type ReconcileFactoryRequest struct {
	FactoryID string    `json:"factory_id"`
	From      time.Time `json:"from"`
	Before    time.Time `json:"before"`
	Complete  bool      `json:"complete"`
}

// ReconcileCounts is what a run found and did, in raw objects.
type ReconcileCounts struct {
	Looked      int64 `json:"looked"`
	Processed   int64 `json:"processed"`
	Quarantined int64 `json:"quarantined"`
	Enqueued    int64 `json:"enqueued"`
	// Unreadable objects are no message that fits into a queue, or are damaged.
	Unreadable int64 `json:"unreadable"`
	// Lists is how many LIST requests it took.
	Lists int64 `json:"lists"`
}

// Add adds other to c.
func (c *ReconcileCounts) Add(other ReconcileCounts) {
	c.Looked += other.Looked
	c.Processed += other.Processed
	c.Quarantined += other.Quarantined
	c.Enqueued += other.Enqueued
	c.Unreadable += other.Unreadable
	c.Lists += other.Lists
}

// ReplayRequest asks for the read models of one factory to be built again from
// raw/: messages with a source time from From up to, but not including, To.
type ReplayRequest struct {
	FactoryID string    `json:"factory_id"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	// DryRun counts what would change and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Overwrite replaces processed objects that exist.
	Overwrite bool `json:"overwrite,omitempty"`
	// LateDays is how many days after To messages may have been received; 0 takes
	// the default.
	LateDays int `json:"late_days,omitempty"`
}

// ReplayPosition is a place in the order in which a replay works: by receipt,
// then by source time. The zero value is before everything.
type ReplayPosition struct {
	ReceivedAt time.Time `json:"received_at,omitzero"`
	SourceAt   time.Time `json:"source_at,omitzero"`
	Key        string    `json:"key,omitempty"`
}

// ReplayChunk is one stretch of a replay: messages received on one UTC day,
// after a position, at most Limit of them.
type ReplayChunk struct {
	Request ReplayRequest `json:"request"`
	// StartedAt is when the replay started. What was received within the last
	// minute before it may still be in the queue and is left alone.
	StartedAt time.Time      `json:"started_at"`
	Day       time.Time      `json:"day"`
	After     ReplayPosition `json:"after"`
	// State is the state that the preceding messages led to.
	State *factory.Latest `json:"state,omitempty"`
	Limit int             `json:"limit"`
}

// ReplayChunkResult is what a stretch did, and where the next one begins.
type ReplayChunkResult struct {
	Counts ReplayCounts    `json:"counts"`
	After  ReplayPosition  `json:"after"`
	State  *factory.Latest `json:"state,omitempty"`
	// DayDone tells that the day has no more messages.
	DayDone bool `json:"day_done"`
}

// ReplayCounts is what a replay found and did; in a dry run, what it would do.
type ReplayCounts struct {
	Messages    int64 `json:"messages"`
	Duplicates  int64 `json:"duplicates"`
	Late        int64 `json:"late"`
	Quarantined int64 `json:"quarantined"`
	// Processed, Risks, Snapshots and History are objects and items written;
	// Overwritten are processed objects replaced.
	Processed    int64 `json:"processed"`
	Overwritten  int64 `json:"overwritten"`
	Risks        int64 `json:"risks"`
	Snapshots    int64 `json:"snapshots"`
	History      int64 `json:"history"`
	DirtyBuckets int64 `json:"dirty_buckets"`
	// Latest is 1 when the factory's current state was restored.
	Latest int64 `json:"latest"`
	// Unreadable are raw objects that are damaged or too large for a message.
	Unreadable int64 `json:"unreadable"`
}

// Add adds other to c.
func (c *ReplayCounts) Add(other ReplayCounts) {
	c.Messages += other.Messages
	c.Duplicates += other.Duplicates
	c.Late += other.Late
	c.Quarantined += other.Quarantined
	c.Processed += other.Processed
	c.Overwritten += other.Overwritten
	c.Risks += other.Risks
	c.Snapshots += other.Snapshots
	c.History += other.History
	c.DirtyBuckets += other.DirtyBuckets
	c.Latest += other.Latest
	c.Unreadable += other.Unreadable
}

// RestoreRequest asks that a factory's current state be at least as new as the
// state that a replay led to.
type RestoreRequest struct {
	State  factory.Latest `json:"state"`
	DryRun bool           `json:"dry_run,omitempty"`
}

// RestoreResult tells whether the current state changed.
type RestoreResult struct {
	Restored bool `json:"restored"`
}
