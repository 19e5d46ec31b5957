package factory

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	workflows "millrace/workflows/factory"
)

// bucketsAtOnce bounds the buckets that are computed side by side; each reads up
// to objectsAtOnce objects side by side.
const (
	bucketsAtOnce = 4
	objectsAtOnce = 16
)

// maxDirty bounds the dirty buckets of one run: a day of three factories takes
// three.
const maxDirty = 288

// Aggregator computes the GRAPH#5M aggregates of watched factories.
type Aggregator struct {
	Store     storage.Store
	Factories []string
	Rules     factory.GraphRules
	Now       func() time.Time
	Logger    *slog.Logger
	// At, where set, is called after every write; an error ends the work on that
	// bucket there.
	At func(Step) error
}

// target is one bucket to compute. Mark is its dirty mark, if any.
type target struct {
	factoryID string
	start     time.Time
	mark      *storage.Dirty
	reason    string
}

func (t target) name() string { return t.factoryID + "/" + t.start.Format(time.RFC3339) }

// AggregateGraphs computes the buckets asked for, oldest first. One that fails
// does not keep the others from it; a retry only does what is left.
func (a Aggregator) AggregateGraphs(ctx context.Context, req workflows.AggregateRequest) (workflows.AggregateResult, error) {
	targets, left, err := a.targets(ctx, req)
	if err != nil {
		return workflows.AggregateResult{}, incomplete([]error{err}, nil)
	}
	done := resume[workflows.ProcessedBucket](ctx)
	var work errgroup.Group
	work.SetLimit(bucketsAtOnce)
	for _, t := range targets {
		if _, known := done.of(t.name()); known {
			continue
		}
		work.Go(func() error {
			bucket, err := a.aggregate(ctx, t, done.beat)
			if err != nil {
				err = fmt.Errorf("aggregate %s: %w", t.name(), err)
			}
			done.settle(t.name(), bucket, err)
			return nil
		})
	}
	_ = work.Wait() // failures are in done
	result := workflows.AggregateResult{
		Status: workflows.StatusOK, BucketMinutes: factory.BucketMinutes, Processed: done.all(), DirtyLeft: left,
	}
	return result, incomplete(done.failed(), result)
}

// aggregate computes one bucket and writes item, then archive; only then the
// dirty mark goes.
func (a Aggregator) aggregate(ctx context.Context, t target, beat func()) (workflows.ProcessedBucket, error) {
	graph, source, err := a.compute(ctx, t, beat)
	if err != nil {
		return workflows.ProcessedBucket{}, err
	}
	standing, err := a.write(ctx, graph)
	if err != nil {
		return workflows.ProcessedBucket{}, err
	}
	if err := a.clear(ctx, t.mark); err != nil {
		return workflows.ProcessedBucket{}, err
	}
	return workflows.ProcessedBucket{
		FactoryID: t.factoryID, BucketStart: t.start, SourceCount: standing.Quality.SourceCount,
		DynamoDBSK: factory.GraphSK(t.start), S3Key: factory.AggregateKey(t.factoryID, t.start),
		Source: source, Reason: t.reason, Kept: !graph.Replaces(&standing),
	}, nil
}

// dirtySettles is how old a mark must be before it is cleared: it is made before
// the late object is written, and a computation in between would miss that one.
const dirtySettles = time.Minute

func (a Aggregator) clear(ctx context.Context, mark *storage.Dirty) error {
	if mark == nil || a.Now().Sub(mark.MarkedAt) < dirtySettles || !a.rowsComplete(mark.Start) {
		return nil
	}
	cleared, err := a.Store.ClearDirty(ctx, *mark)
	if err == nil && !cleared {
		a.Logger.Info("bucket marked again while it was computed", "factory", mark.FactoryID, "bucket", mark.Start)
	}
	return err
}

// rowsComplete tells whether all history rows of a bucket are written. Before
// that its mark must stay: a later run could count more rows, yet without the
// late messages.
func (a Aggregator) rowsComplete(start time.Time) bool {
	_, last := factory.HistoryRange(start)
	return last < factory.HistorySK(factory.MillisOf(a.Now()))
}
