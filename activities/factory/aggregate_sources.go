package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	workflows "millrace/workflows/factory"
)

// errUnreadable tells that an object of ours is no document of its kind.
var errUnreadable = errors.New("object is not what it should be")

// gathering is the work on one bucket.
type gathering struct {
	Aggregator
	target
	beat func()

	mu  sync.Mutex
	acc *factory.Accumulator
}

// compute gathers a bucket's samples: from history while all of it is there,
// else from processed objects. Both give the same document.
func (a Aggregator) compute(ctx context.Context, t target, beat func()) (factory.Graph, string, error) {
	g := &gathering{Aggregator: a, target: t, beat: beat, acc: factory.NewAccumulator(t.factoryID, t.start, a.Rules)}
	source := workflows.FromProcessed
	now, ttl := a.Now(), a.Store.HistoryTTL
	if factory.UseHistory(t.start, now, ttl, t.mark != nil) {
		source = workflows.FromHistory
	}
	if factory.UseHistory(t.start, now, ttl, false) {
		if err := g.history(ctx, source == workflows.FromHistory); err != nil {
			return factory.Graph{}, "", err
		}
	}
	if source == workflows.FromProcessed {
		if err := g.processed(ctx); err != nil {
			return factory.Graph{}, "", err
		}
	}
	return g.acc.Graph(), source, nil
}

// history reads the bucket's history rows, counts them if asked to, and writes
// the snapshots that a crash left out.
func (g *gathering) history(ctx context.Context, count bool) error {
	from, to := factory.HistoryRange(g.start)
	if !count {
		from, to = factory.HistorySK(factory.MillisOf(g.start)), factory.HistorySK(factory.BucketEnd(g.start))
	}
	var rows []factory.Latest
	for row, err := range g.Store.History(ctx, g.factoryID, from, to) {
		if err != nil {
			return err
		}
		if count {
			g.acc.AddHistory(&row)
		}
		if factory.BucketStart(row.UpdatedAt.Time).Equal(g.start) {
			rows = append(rows, row)
		}
		g.beat()
	}
	return g.completeSnapshots(ctx, rows)
}

// completeSnapshots puts the state_snapshot objects of rows that have none.
func (g *gathering) completeSnapshots(ctx context.Context, rows []factory.Latest) error {
	if len(rows) == 0 {
		return nil
	}
	there := map[string]bool{}
	for key, err := range g.snapshotKeys(ctx) {
		if err != nil {
			return err
		}
		there[key] = true
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(objectsAtOnce)
	for _, row := range rows {
		if !there[factory.SnapshotKey(g.factoryID, row.UpdatedAt)] {
			work.Go(func() error { return g.Store.PutSnapshot(ctx, row) })
		}
	}
	return work.Wait()
}

// snapshotKeys walks the keys of the snapshots written during the bucket.
func (g *gathering) snapshotKeys(ctx context.Context) func(func(string, error) bool) {
	prefix := factory.ProcessedPrefix(g.factoryID, factory.DatasetStateSnapshot, g.start)
	first, last := prefix+factory.MillisOf(g.start).String(), factory.SnapshotKey(g.factoryID, factory.BucketEnd(g.start))
	return func(yield func(string, error) bool) {
		for object, err := range g.Store.Bucket.List(ctx, prefix, first) {
			if err == nil && object.Key > last {
				return
			}
			if !yield(object.Key, err) || err != nil {
				return
			}
		}
	}
}

// processed reads the bucket's processed objects and snapshots.
func (g *gathering) processed(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(objectsAtOnce)
	read := func(take func([]byte) error) func(string) {
		return func(key string) { work.Go(func() error { return g.read(ctx, key, take) }) }
	}
	// The lists are three of the group, so that reading always has a place.
	work.Go(func() error { return g.listMessages(ctx, factory.SourceFactoryState, read(g.takeFactoryState)) })
	work.Go(func() error { return g.listMessages(ctx, factory.SourceInfraState, read(g.takeInfraState)) })
	work.Go(func() error {
		found := read(g.takeSnapshot)
		for key, err := range g.snapshotKeys(ctx) {
			if err != nil {
				return err
			}
			found(key)
		}
		return nil
	})
	return work.Wait()
}

// listMessages walks the processed objects of the bucket's hour that may lie in
// the bucket.
func (g *gathering) listMessages(ctx context.Context, dataset factory.SourceType, found func(key string)) error {
	prefix := factory.ProcessedPrefix(g.factoryID, string(dataset), g.start)
	canonical := g.factoryID + ":" + string(dataset) + ":"
	for object, err := range g.Store.Bucket.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		id := strings.TrimSuffix(strings.TrimPrefix(object.Key, prefix), ".json")
		if g.mayHold(claimedTime(id, canonical)) {
			found(object.Key)
		}
		g.beat()
	}
	return nil
}

// mayHold tells whether a processed object of the bucket's hour must be read: it
// claims to be of the bucket, or claims nothing that can be true.
func (g *gathering) mayHold(claimed time.Time, ok bool) bool {
	return !ok || factory.BucketStart(claimed).Equal(g.start) || !claimed.Truncate(time.Hour).Equal(g.start.Truncate(time.Hour))
}

// claimedTime is the source time in an id of the form that the message contract
// gives ids: {factory}:{source type}:{node}:{source time}. With it a bucket reads
// its own objects only, not all of the hour's.
func claimedTime(id, canonical string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(id, canonical)
	if !ok {
		return time.Time{}, false
	}
	_, text, ok := strings.Cut(rest, ":")
	if !ok {
		return time.Time{}, false
	}
	at, err := factory.ParseInstant(text)
	return at, err == nil
}

// maxProcessed is the greatest processed object that is read, in bytes.
const maxProcessed = 1 << 20

func (g *gathering) read(ctx context.Context, key string, take func([]byte) error) error {
	body, err := g.Store.Bucket.Get(ctx, key, maxProcessed)
	if err != nil {
		return err
	}
	g.beat()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := take(body); err != nil {
		return fmt.Errorf("%w: %s: %w", errUnreadable, key, err)
	}
	return nil
}

func (g *gathering) takeFactoryState(body []byte) error {
	var object struct {
		Data factory.FactoryState `json:"data"`
	}
	err := json.Unmarshal(body, &object)
	if err == nil {
		g.acc.AddFactoryState(&object.Data)
	}
	return err
}

func (g *gathering) takeInfraState(body []byte) error {
	var object struct {
		Data factory.InfraState `json:"data"`
	}
	err := json.Unmarshal(body, &object)
	if err == nil {
		g.acc.AddInfraState(&object.Data)
	}
	return err
}

func (g *gathering) takeSnapshot(body []byte) error {
	var snapshot factory.Latest
	err := json.Unmarshal(body, &snapshot)
	if err == nil {
		g.acc.AddSnapshot(&snapshot)
	}
	return err
}
