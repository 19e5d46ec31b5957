package factory

import (
	"time"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Names of the activities that schedules run.
const (
	RefreshFactoriesActivity = "RefreshFactories"
	AggregateGraphsActivity  = "AggregateGraphs"
)

// RefreshRequest asks for every watched factory to be judged again. AsOf is when
// the run began: a repeat leaves those alone that were judged since.
type RefreshRequest struct {
	AsOf time.Time `json:"as_of"`
}

// Statuses of results.
const (
	StatusOK      = "ok"
	StatusLate    = "late"
	StatusMissing = "missing"
)

// RefreshResult is what a refresh did; status late means that the run came too
// late to say anything of now and did nothing.
type RefreshResult struct {
	Status      string             `json:"status"`
	ScheduledAt time.Time          `json:"scheduled_at"`
	LateSeconds int64              `json:"late_seconds,omitempty"`
	Refreshed   []RefreshedFactory `json:"refreshed"`
}

// RefreshedFactory is one factory of a refresh. A factory that never sent
// anything has status missing and nothing else.
type RefreshedFactory struct {
	FactoryID      string         `json:"factory_id"`
	Status         string         `json:"status,omitempty"`
	PipelineStatus factory.Health `json:"pipeline_status,omitempty"`
	RiskScore      *exact.Decimal `json:"risk_score,omitempty"`
}

// AggregateRequest asks for aggregates of 5-minute buckets.
type AggregateRequest struct {
	// Factories are all watched ones where empty.
	Factories []string `json:"factories,omitempty"`
	// Buckets are the starts of those that are computed in any case.
	Buckets []time.Time `json:"buckets"`
	// Unfinished, where set, bounds the buckets that are computed if they have no
	// item yet; dirty ones are then computed too, wherever they are.
	Unfinished *Span `json:"unfinished,omitempty"`
}

// Span are the bucket starts from From to To, both inclusive.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// AggregateResult is what an aggregation did. DirtyLeft counts the dirty buckets
// that were too many for one run; the next one goes on with them.
type AggregateResult struct {
	Status        string            `json:"status"`
	BucketMinutes int64             `json:"bucket_minutes"`
	Processed     []ProcessedBucket `json:"processed"`
	DirtyLeft     int               `json:"dirty_left,omitempty"`
}

// ProcessedBucket is one bucket of a factory that was computed. Kept tells that
// a fuller aggregate was there already and stands; SourceCount is that of the
// one that stands.
type ProcessedBucket struct {
	FactoryID   string    `json:"factory_id"`
	BucketStart time.Time `json:"bucket_start"`
	SourceCount int64     `json:"source_count"`
	DynamoDBSK  string    `json:"dynamodb_sk"`
	S3Key       string    `json:"s3_key"`
	Source      string    `json:"source"`
	Reason      string    `json:"reason"`
	Kept        bool      `json:"kept,omitempty"`
}

// Sources that a bucket is computed from.
const (
	FromHistory   = "history"
	FromProcessed = "processed"
)

// Reasons why a bucket is computed.
const (
	ReasonScheduled  = "scheduled"
	ReasonUnfinished = "unfinished"
	ReasonDirty      = "dirty"
)
