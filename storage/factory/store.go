// Package factory keeps the factory read models in the status table and the
// long-lived objects in the bucket.
package factory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/factory"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Store is the status table (pk, sk) and the data bucket.
type Store struct {
	Table  table.Table
	Bucket objects.Bucket
	// HistoryTTL is how long history items are kept.
	HistoryTTL time.Duration
}

// StatusTable is the status table of the given name.
func StatusTable(client table.API, name string) table.Table {
	return table.Table{Client: client, Name: name, PartitionKey: "pk", SortKey: "sk"}
}

// StaleError tells that LATEST changed since it was read. Current is what it is
// now, nil when the item is gone.
type StaleError struct {
	Current *factory.Latest
}

// Error says that the state was changed by another writer.
func (e *StaleError) Error() string { return "factory state changed since it was read" }

func latestKey(factoryID string) table.Key {
	return table.Key{Partition: factory.PK(factoryID), Sort: factory.LatestSK}
}

// Latest reads the current state of a factory, nil when it was never seen.
func (s Store) Latest(ctx context.Context, factoryID string) (*factory.Latest, error) {
	var latest factory.Latest
	found, err := s.Table.Get(ctx, latestKey(factoryID), &latest)
	if err != nil || !found {
		return nil, err
	}
	return &latest, nil
}

// BatchLatest reads the current states of many factories by id; those never
// seen are left out.
func (s Store) BatchLatest(ctx context.Context, factoryIDs []string) (map[string]factory.Latest, error) {
	keys := make([]table.Key, len(factoryIDs))
	for i, id := range factoryIDs {
		keys[i] = latestKey(id)
	}
	items, err := s.Table.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	states := make(map[string]factory.Latest, len(items))
	for _, item := range items {
		var latest factory.Latest
		if err := table.Decode(item, &latest); err != nil {
			return nil, err
		}
		states[latest.FactoryID] = latest
	}
	return states, nil
}

// Commit writes a new state and its history item in one transaction, provided
// that LATEST still has the revision before it. Else it is a *StaleError.
func (s Store) Commit(ctx context.Context, next factory.Latest) error {
	condition := s.Table.Revision(next.Rev - 1)
	latest, err := s.Table.PutWrite(next, &condition)
	if err != nil {
		return err
	}
	history, err := s.Table.PutWrite(next.History(s.HistoryTTL), nil)
	if err != nil {
		return err
	}
	return stale(s.Table.Transact(ctx, latest, history))
}

// CommitLatest writes a new state without a history item, under the condition
// of Commit: pictures leave no history.
func (s Store) CommitLatest(ctx context.Context, next factory.Latest) error {
	condition := s.Table.Revision(next.Rev - 1)
	return stale(s.Table.Put(ctx, next, &condition))
}

func stale(err error) error {
	var conflict *table.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	if len(conflict.Current) == 0 {
		return &StaleError{}
	}
	var current factory.Latest
	if err := table.Decode(conflict.Current, &current); err != nil {
		return err
	}
	return &StaleError{Current: &current}
}

// HistoryOf finds the history item that a message led to, within the time after
// since in which it must have been written; nil when there is none.
func (s Store) HistoryOf(ctx context.Context, factoryID, messageID string, since time.Time, within time.Duration) (*factory.Latest, error) {
	items := s.Table.Query(ctx, table.Range{
		Partition: factory.PK(factoryID), Consistent: true,
		From: factory.HistorySK(factory.MillisOf(since)), To: factory.HistorySK(factory.MillisOf(since.Add(within))),
	})
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		var history factory.Latest
		if err := table.Decode(item, &history); err != nil {
			return nil, err
		}
		if history.MessageID == messageID {
			return &history, nil
		}
	}
	return nil, nil
}

// dirtyTTL is how long the mark of a bucket to be computed again is kept.
const dirtyTTL = 7 * 24 * time.Hour

// MarkDirty notes that the bucket holding at must be computed again. Marks of
// the same bucket add up in rev, so that a mark made during a computation
// outlives it.
func (s Store) MarkDirty(ctx context.Context, factoryID string, at, now time.Time) error {
	start := at.UTC().Truncate(factory.BucketLength)
	key := table.Key{Partition: factory.DirtyGraphPK, Sort: factory.DirtyGraphSK(start, factoryID)}
	_, err := s.Table.Increment(ctx, key, "rev", table.Item{"ttl": table.Int(now.Add(dirtyTTL).Unix())})
	if err != nil {
		return fmt.Errorf("mark bucket dirty: %w", err)
	}
	return nil
}
