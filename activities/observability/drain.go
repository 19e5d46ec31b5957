package observability

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/table"
	workflows "millrace/workflows/observability"
)

const (
	// pageSize bounds the pending signals in memory at once: about a megabyte.
	pageSize = 1000
	// appsAtOnce bounds the applications that are counted side by side. Batches of
	// one application go one after another: they would only get in each other's way.
	appsAtOnce = 4
	// stretch is how long one activity goes on.
	stretch = 3 * time.Minute
)

// Step is a point of a drain at which a crash is tried.
type Step string

// The steps of a drain.
const (
	StepRead    Step = "page read"
	StepTraced  Step = "trace rows written"
	StepCounted Step = "batch counted"
	StepPage    Step = "page counted"
)

// Raiser hands alerts to the entity of their scope.
type Raiser interface {
	Signal(ctx context.Context, scope string, d alert.Decision) error
}

// Drainer counts pending signals.
type Drainer struct {
	Store   storage.Store
	Raiser  Raiser
	Metrics *Metrics
	Now     func() time.Time
	Logger  *slog.Logger
	// Stretch is how long one activity goes on; 0 stands for three minutes.
	Stretch time.Duration
	// At, where set, is called at every step; an error ends the work there.
	At func(Step) error
}

// FindPendingShards tells which shards have pending signals.
func (d Drainer) FindPendingShards(ctx context.Context, req workflows.FindRequest) (workflows.FindResult, error) {
	found := workflows.FindResult{Shards: []int{}}
	for shard := range observability.Shards {
		signals, _, err := d.Store.Pending(ctx, storage.PendingQuery{Shard: shard, From: req.From, To: req.To, Limit: 1})
		if err != nil {
			return found, failure(err)
		}
		if len(signals) > 0 {
			found.Shards = append(found.Shards, shard)
		}
	}
	return found, nil
}

// DrainSignals counts a shard's pending signals, page by page, for a stretch. It
// may end anywhere: what was not counted is still pending.
func (d Drainer) DrainSignals(ctx context.Context, req workflows.DrainRequest) (workflows.DrainResult, error) {
	result, err := d.drain(ctx, req, func(done workflows.DrainResult) { activity.RecordHeartbeat(ctx, done.Counts) })
	return result, failure(err)
}

func (d Drainer) drain(ctx context.Context, req workflows.DrainRequest, beat func(workflows.DrainResult)) (workflows.DrainResult, error) {
	var result workflows.DrainResult
	until := d.Now().Add(d.stretch())
	query := storage.PendingQuery{Shard: req.Shard, From: req.From, To: req.To, Limit: pageSize}
	stuck := map[string]error{}
	for {
		signals, after, err := d.Store.Pending(ctx, query)
		if err == nil {
			err = d.step(StepRead)
		}
		if err != nil {
			return result, err
		}
		if len(signals) > 0 {
			result.Next = signals[len(signals)-1].ReceivedAt
			counts, err := d.page(ctx, signals, stuck)
			result.Add(counts)
			if err != nil {
				return result, err
			}
		}
		beat(result)
		if after == nil {
			result.Done = true
			return result, d.report(ctx, stuck)
		}
		if !d.Now().Before(until) {
			return result, d.report(ctx, stuck)
		}
		query.After = after
	}
}

func (d Drainer) stretch() time.Duration {
	if d.Stretch == 0 {
		return stretch
	}
	return d.Stretch
}

func (d Drainer) step(s Step) error {
	if d.At == nil {
		return nil
	}
	return d.At(s)
}

// page counts a page's signals, several applications side by side.
func (d Drainer) page(ctx context.Context, signals []observability.Pending, stuck map[string]error) (workflows.Counts, error) {
	delay := d.Now().Sub(signals[0].ReceivedAt)
	var lock sync.Mutex
	var sum workflows.Counts
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(appsAtOnce)
	for _, batches := range byApp(observability.Pack(signals, table.MaxTransaction)) {
		work.Go(func() error {
			for _, batch := range batches {
				counts, err := d.count(ctx, batch)
				lock.Lock()
				sum.Add(counts)
				if errors.Is(err, storage.ErrUncountable) {
					sum.Stuck += int64(len(batch.Signals))
					stuck[batch.AppID], err = err, nil
				}
				lock.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := work.Wait()
	d.Metrics.counted(sum, delay)
	if err == nil {
		err = d.step(StepPage)
	}
	return sum, err
}

func byApp(batches []observability.Batch) [][]observability.Batch {
	var apps [][]observability.Batch
	for _, batch := range batches {
		if last := len(apps) - 1; last >= 0 && apps[last][0].AppID == batch.AppID {
			apps[last] = append(apps[last], batch)
			continue
		}
		apps = append(apps, []observability.Batch{batch})
	}
	return apps
}

// count writes a batch's trace rows, then counts it. Only what is still pending
// would be written again after a crash, so that the rows must come first.
func (d Drainer) count(ctx context.Context, batch observability.Batch) (workflows.Counts, error) {
	rows, err := d.Store.PutTraces(ctx, batch.Signals)
	counts := workflows.Counts{TraceRows: int64(rows)}
	if err == nil {
		err = d.step(StepTraced)
	}
	if err != nil {
		return counts, err
	}
	done, err := d.Store.Count(ctx, batch)
	counts.Signals, counts.Dropped, counts.Transactions = int64(done.Signals), int64(done.Dropped), int64(done.Attempts)
	if err == nil {
		err = d.step(StepCounted)
	}
	return counts, err
}

// report tells of applications whose signals can't be counted.
func (d Drainer) report(ctx context.Context, stuck map[string]error) error {
	for app, err := range stuck {
		d.Logger.ErrorContext(ctx, "signals can't be counted", "app", app, "error", err)
		raised := alert.Alert{
			Scope: alert.ScopeObservability, SourceType: alert.SourceObservability, Severity: alert.Danger, Reason: "rollup_stuck",
			Status: "stuck", FingerprintStatus: app, SourceUpdatedAt: factory.MillisOf(d.Now()),
			Summary: "signals of " + app + " can't be counted: a sum does not fit into 38 digits", Because: "SignalRollup",
		}
		if err := d.Raiser.Signal(ctx, alert.ScopeObservability, alert.Decision{Alerts: []alert.Alert{raised}}); err != nil {
			return err
		}
	}
	return nil
}
