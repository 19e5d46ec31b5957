package factory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	workflows "millrace/workflows/factory"
)

// targetSet collects the buckets of a run; the first reason for a bucket counts.
type targetSet map[string]target

func (s targetSet) add(t target) {
	if _, known := s[t.name()]; !known {
		s[t.name()] = t
	}
}

// targets are the buckets of a run, oldest first, each with its dirty mark, and
// the number of dirty buckets that were too many for it.
func (a Aggregator) targets(ctx context.Context, req workflows.AggregateRequest) ([]target, int, error) {
	factories := req.Factories
	if len(factories) == 0 {
		factories = a.Factories
	}
	set := targetSet{}
	for _, id := range factories {
		for _, start := range req.Buckets {
			set.add(target{factoryID: id, start: start, reason: workflows.ReasonScheduled})
		}
	}
	marks, err := a.Store.DirtyGraphs(ctx, a.Now())
	if err != nil {
		return nil, 0, err
	}
	left := 0
	if req.Unfinished != nil {
		if err := a.addUnfinished(ctx, set, factories, *req.Unfinished); err != nil {
			return nil, 0, err
		}
		left = a.addDirty(set, factories, marks)
	}
	attach(set, marks)
	return slices.SortedFunc(maps.Values(set), func(x, y target) int {
		return cmp.Or(x.start.Compare(y.start), cmp.Compare(x.factoryID, y.factoryID))
	}), left, nil
}

// addUnfinished adds the buckets of a span that have no item: one query for each
// factory.
func (a Aggregator) addUnfinished(ctx context.Context, set targetSet, factories []string, span workflows.Span) error {
	var mu sync.Mutex
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(refreshAtOnce)
	for _, id := range factories {
		work.Go(func() error {
			finished := map[time.Time]bool{}
			for graph, err := range a.Store.Graphs(ctx, id, span.From, span.To) {
				if err != nil {
					return err
				}
				finished[graph.BucketStart.UTC()] = true
			}
			mu.Lock()
			defer mu.Unlock()
			for start := span.From.UTC(); !start.After(span.To); start = start.Add(factory.BucketLength) {
				if !finished[start] {
					set.add(target{factoryID: id, start: start, reason: workflows.ReasonUnfinished})
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// addDirty adds marked buckets, the newest ones where there are too many, and
// returns how many are left. A bucket whose rows may still be coming waits.
func (a Aggregator) addDirty(set targetSet, factories []string, marks []storage.Dirty) (left int) {
	added := 0
	for _, mark := range marks {
		switch {
		case !slices.Contains(factories, mark.FactoryID) || !a.rowsComplete(mark.Start):
		case added >= maxDirty:
			left++
		default:
			set.add(target{factoryID: mark.FactoryID, start: mark.Start, reason: workflows.ReasonDirty})
			added++
		}
	}
	return left
}

// attach gives every bucket its mark: a marked one is not computed from history,
// whatever the reason it is computed for.
func attach(set targetSet, marks []storage.Dirty) {
	for _, mark := range marks {
		t := target{factoryID: mark.FactoryID, start: mark.Start}
		if known, ok := set[t.name()]; ok {
			known.mark = &mark
			set[t.name()] = known
		}
	}
}
