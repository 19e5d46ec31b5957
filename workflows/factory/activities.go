// Package factory sequences the factory capability: ingest, refresh,
// aggregation, reconciliation and replay. Its workflows do no I/O; this file
// declares the activities that do.
package factory

// Activity names.
const (
	DrainTelemetryActivity  = "DrainTelemetry"
	DrainRuleErrorsActivity = "DrainRuleErrors"
)

// DrainRequest asks for one stretch of draining a queue.
type DrainRequest struct {
	Consumer int `json:"consumer"`
}

// DrainResult is what one stretch of draining did.
type DrainResult struct {
	Received  int64            `json:"received"`
	Deleted   int64            `json:"deleted"`
	Abandoned int64            `json:"abandoned"`
	Outages   int64            `json:"outages"`
	Outcomes  map[string]int64 `json:"outcomes,omitempty"`
}
