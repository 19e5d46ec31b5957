package factory

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/factory"
	"millrace/workflows/schedule"
)

// GraphCatchUp is how far back a run looks for buckets without an aggregate. It
// is the catch-up window of the schedule too, which drops all but one of the
// runs that an outage delayed.
const GraphCatchUp = time.Hour

// Bounds of lookback_buckets; the default catches what came just after its
// bucket's run.
const (
	defaultLookback = 2
	maxLookback     = 288
)

// aggregateOptions leave time for a day's drained backlog. Beats come with every
// bucket and every few objects, so that a minute without one means a dead
// worker. Outages are waited for: the schedule holds the next run back.
var aggregateOptions = workflow.ActivityOptions{
	Summary:                "aggregate 5-minute buckets",
	StartToCloseTimeout:    10 * time.Minute,
	ScheduleToCloseTimeout: 30 * time.Minute,
	HeartbeatTimeout:       time.Minute,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
	},
}

// AggregateInput changes what a run computes; the schedule gives none of it.
type AggregateInput struct {
	// Factories are all watched ones where empty.
	Factories []string `json:"factories,omitempty"`
	// BucketStart asks for that bucket alone.
	BucketStart *time.Time `json:"bucket_start,omitempty"`
	// LookbackBuckets is how many of the newest buckets are computed (2).
	LookbackBuckets int `json:"lookback_buckets,omitempty"`
}

// GraphAggregate computes the newest closed buckets as of the run's nominal
// time, those before them that have no aggregate yet, and the dirty ones. A
// repeat or a backfill of the same time gives the same items.
func GraphAggregate(ctx workflow.Context, in AggregateInput) (AggregateResult, error) {
	request, err := in.request(schedule.Time(ctx), workflow.Now(ctx))
	if err != nil {
		return AggregateResult{}, refusal(err)
	}
	ctx = workflow.WithActivityOptions(ctx, aggregateOptions)
	var result AggregateResult
	err = workflow.ExecuteActivity(ctx, AggregateGraphsActivity, request).Get(ctx, &result)
	workflow.SetCurrentDetails(ctx, result.details())
	return result, err
}

// details is the run as a Markdown table for the Temporal UI.
func (r AggregateResult) details() string {
	lines := []string{"| factory | bucket | messages | from | why |", "|---|---|---|---|---|"}
	for _, b := range r.Processed[:min(len(r.Processed), maxDetails)] {
		lines = append(lines, fmt.Sprintf("| %s | %s | %d | %s | %s |", b.FactoryID, b.BucketStart.Format(time.RFC3339), b.SourceCount, b.Source, b.Reason))
	}
	if r.DirtyLeft > 0 {
		lines = append(lines, fmt.Sprintf("\n%d dirty buckets are left for the next run.", r.DirtyLeft))
	}
	return strings.Join(lines, "\n")
}

func (in AggregateInput) request(at, now time.Time) (AggregateRequest, error) {
	for _, id := range in.Factories {
		if err := factory.CheckFactoryID(id); err != nil {
			return AggregateRequest{}, fmt.Errorf("factories: %w", err)
		}
	}
	request := AggregateRequest{Factories: in.Factories}
	if in.BucketStart != nil {
		start := in.BucketStart.UTC()
		request.Buckets = []time.Time{start}
		return request, factory.CheckBucketStart(start, now)
	}
	lookback := in.LookbackBuckets
	switch {
	case lookback == 0:
		lookback = defaultLookback
	case lookback < 0 || lookback > maxLookback:
		return AggregateRequest{}, fmt.Errorf("lookback_buckets: must be 1 to %d", maxLookback)
	}
	request.Buckets = factory.ClosedBuckets(at, lookback)
	newest := request.Buckets[len(request.Buckets)-1]
	request.Unfinished = &Span{From: factory.BucketStart(at.Add(-GraphCatchUp)), To: newest}
	return request, nil
}
