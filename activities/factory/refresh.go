package factory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	workflows "millrace/workflows/factory"
)

// refreshAtOnce bounds the factories that are written side by side.
const refreshAtOnce = 16

// Refresher judges watched factories again, whether or not they sent anything.
type Refresher struct {
	Store     storage.Store
	Factories []string
	// Observer, where set, is shown every refreshed state.
	Observer Observer
	Now      func() time.Time
	Logger   *slog.Logger
}

// RefreshFactories judges all watched factories as of now. One that fails does
// not keep the others from it; a repeat only does what is left.
func (r Refresher) RefreshFactories(ctx context.Context, req workflows.RefreshRequest) (workflows.RefreshResult, error) {
	states, err := r.Store.BatchLatest(ctx, r.Factories)
	if err != nil {
		return workflows.RefreshResult{}, incomplete([]error{err}, nil)
	}
	run := refreshRun{Refresher: r, asOf: req.AsOf, repeated: activity.GetInfo(ctx).Attempt > 1}
	done := resume[workflows.RefreshedFactory](ctx)
	var work errgroup.Group
	work.SetLimit(refreshAtOnce)
	for _, id := range r.Factories {
		if _, known := done.of(id); known {
			continue
		}
		work.Go(func() error {
			entry, err := run.refresh(ctx, id, states)
			done.settle(id, entry, err)
			return nil
		})
	}
	_ = work.Wait() // failures are in done
	result := workflows.RefreshResult{Status: workflows.StatusOK, Refreshed: make([]workflows.RefreshedFactory, 0, len(r.Factories))}
	for _, id := range r.Factories {
		if entry, ok := done.of(id); ok {
			result.Refreshed = append(result.Refreshed, entry)
		}
	}
	return result, incomplete(done.failed(), result)
}

// refreshRun is one attempt of a refresh that began at asOf.
type refreshRun struct {
	Refresher
	asOf     time.Time
	repeated bool
}

func (r refreshRun) refresh(ctx context.Context, id string, states map[string]factory.Latest) (workflows.RefreshedFactory, error) {
	latest, known := states[id]
	if !known {
		return workflows.RefreshedFactory{FactoryID: id, Status: workflows.StatusMissing}, nil
	}
	committed, err := r.commit(ctx, latest)
	switch {
	case err != nil:
		return workflows.RefreshedFactory{}, fmt.Errorf("refresh %s: %w", id, err)
	case committed == nil:
		return workflows.RefreshedFactory{FactoryID: id, Status: workflows.StatusMissing}, nil
	}
	r.observe(ctx, *committed)     // first: alerts do not depend on the bucket
	if committed.MessageID == "" { // a message's own snapshot is its consumer's work
		if err := r.Store.PutSnapshot(ctx, *committed); err != nil {
			return workflows.RefreshedFactory{}, fmt.Errorf("refresh %s: %w", id, err)
		}
	}
	entry := workflows.RefreshedFactory{FactoryID: id, PipelineStatus: committed.PipelineStatus.Status}
	if committed.Risk != nil {
		entry.RiskScore = &committed.Risk.Score
	}
	return entry, nil
}

// commit writes the state judged as of now, from whatever it has become in the
// meantime; nil when it is gone. A repeat leaves a state alone that was judged
// since the run began.
func (r refreshRun) commit(ctx context.Context, latest factory.Latest) (*factory.Latest, error) {
	for range maxConflicts {
		if r.repeated && judgedSince(latest, r.asOf) {
			return &latest, nil
		}
		next := factory.Refresh(latest, r.Now())
		err := r.Store.Commit(ctx, next)
		var stale *storage.StaleError
		switch {
		case err == nil:
			return &next, nil
		case !errors.As(err, &stale):
			return nil, err
		case stale.Current == nil:
			return nil, nil
		}
		latest = *stale.Current
	}
	return nil, errContended
}

// judgedSince tells whether a state's risk, or for want of one its pipeline, was
// judged at or after the given time.
func judgedSince(latest factory.Latest, asOf time.Time) bool {
	if latest.PipelineStatus == nil {
		return false
	}
	if latest.Risk != nil && latest.Risk.CalculatedAt != nil {
		return !latest.Risk.CalculatedAt.Before(asOf.Truncate(time.Millisecond))
	}
	return latest.MessageID == "" && !latest.UpdatedAt.Before(asOf.Truncate(time.Millisecond))
}

func (r refreshRun) observe(ctx context.Context, committed factory.Latest) {
	if r.Observer == nil {
		return
	}
	if err := r.Observer.Observe(ctx, committed); err != nil {
		r.Logger.Warn("alerts not signalled, the next refresh does", "factory", committed.FactoryID, "error", err)
	}
}
