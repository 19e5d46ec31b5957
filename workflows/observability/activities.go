// Package observability sequences the counting of signals and the checks of what
// was counted. Its workflows do no I/O; this file declares the activities that
// do.
package observability

import (
	"time"

	"millrace/domain/observability"
)

// Activity names.
const (
	FindPendingActivity   = "FindPendingShards"
	DrainSignalsActivity  = "DrainSignals"
	EvaluateRulesActivity = "EvaluateAlertRules"
	ReconcileDayActivity  = "ReconcileSignals"
)

// FindRequest asks which shards have pending signals that were received from From
// on and before To.
type FindRequest struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// FindResult are the shards that have some.
type FindResult struct {
	Shards []int `json:"shards"`
}

// DrainRequest asks for one stretch of counting a shard's pending signals: those
// received from From on and before To.
type DrainRequest struct {
	Shard int       `json:"shard"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// Counts are what a rollup did.
type Counts struct {
	// Signals were counted, Dropped found counted by another.
	Signals int64 `json:"signals"`
	Dropped int64 `json:"dropped"`
	// Transactions are those tried, TraceRows those written.
	Transactions int64 `json:"transactions"`
	TraceRows    int64 `json:"trace_rows"`
	// Stuck signals could not be counted exactly and stay pending.
	Stuck int64 `json:"stuck,omitempty"`
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Signals += other.Signals
	c.Dropped += other.Dropped
	c.Transactions += other.Transactions
	c.TraceRows += other.TraceRows
	c.Stuck += other.Stuck
}

// DrainResult is what one stretch did. Unless Done, the next one begins at Next,
// the receipt of the last signal seen.
type DrainResult struct {
	Counts
	Done bool      `json:"done"`
	Next time.Time `json:"next,omitzero"`
}

// EvaluateRequest asks for all alert rules to be judged as of a time.
type EvaluateRequest struct {
	At time.Time `json:"at"`
}

// EvaluateResult is what the rules said. Raised are the alerts handed on, new or
// repeated; Resolved those that ended.
type EvaluateResult struct {
	Rules    int64 `json:"rules"`
	Firing   int64 `json:"firing"`
	New      int64 `json:"new"`
	Raised   int64 `json:"raised"`
	Resolved int64 `json:"resolved"`
}

// DayRequest asks for a day, such as 2026-05-04, to be checked.
type DayRequest struct {
	Day string `json:"day"`
}

// DayResult is what the check of a day found. Drifts shows at most 20 of the
// Drifted comparisons.
type DayResult struct {
	Day     string     `json:"day"`
	Apps    int64      `json:"apps"`
	Signals int64      `json:"signals"`
	Pending int64      `json:"pending"`
	Drifted int64      `json:"drifted"`
	Drifts  []AppDrift `json:"drifts,omitempty"`
}

// Comparisons of a check.
const (
	RawAgainstDay   = "raw signals against the day"
	HoursAgainstDay = "hours against the day"
	DaysAgainstMon  = "days against the month"
)

// AppDrift is a counter of an application that is not what it should be.
type AppDrift struct {
	AppID      string `json:"app_id"`
	Comparison string `json:"comparison"`
	observability.Drift
}
