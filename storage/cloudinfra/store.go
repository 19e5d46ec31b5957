// Package cloudinfra keeps the read model of the cloud infrastructure in the
// factory status table and its long-lived copies in the bucket.
package cloudinfra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Store is the status table (pk, sk) and the data bucket.
type Store struct {
	Table  table.Table
	Bucket objects.Bucket
	// FastTTL and SlowTTL are how long history items are kept.
	FastTTL time.Duration
	SlowTTL time.Duration
}

// Default times to live of history items (factory.md, 9.3).
const (
	DefaultFastTTL = 6 * time.Hour
	DefaultSlowTTL = 24 * time.Hour
)

// Outcomes of commits.
const (
	// Committed means that the half became the current state.
	Committed = "committed"
	// Repeated means that it had become so before: this commit changed nothing.
	Repeated = "repeated"
	// Superseded means that a later run had stored its own half: this one was
	// dropped.
	Superseded = "superseded"
)

// maxConflicts bounds how often a commit starts again because the other
// collector wrote in between. The other one writes once a run.
const maxConflicts = 6

// ErrContended tells that the state changed again and again during a commit.
var ErrContended = errors.New("cloud infrastructure state is contended")

var latestKey = table.Key{Partition: cloudinfra.PK, Sort: cloudinfra.LatestSK}

// Latest reads the current state, nil when nothing was ever stored.
func (s Store) Latest(ctx context.Context) (*cloudinfra.Latest, error) {
	var latest cloudinfra.Latest
	found, err := s.Table.Get(ctx, latestKey, &latest)
	if err != nil || !found {
		return nil, err
	}
	return &latest, nil
}

// Commit makes a half the current state and adds its history item, in one
// transaction that leaves the other half alone; now is the writer's clock. It
// returns the history item that stands, nil when a later run was first.
func (s Store) Commit(ctx context.Context, half cloudinfra.Half, now time.Time) (*cloudinfra.History, string, error) {
	var read readLatest
	if _, err := s.Table.Get(ctx, latestKey, &read); err != nil {
		return nil, "", err
	}
	for range maxConflicts {
		if standing := half.Standing(read.state, now); standing != cloudinfra.Newer {
			return s.stands(ctx, half, standing)
		}
		history, err := s.commit(ctx, read, half)
		var changed *table.ConflictError
		if !errors.As(err, &changed) {
			return history, Committed, err
		}
		read = readLatest{}
		if err := table.Decode(changed.Current, &read); err != nil {
			return nil, "", err
		}
	}
	return nil, "", ErrContended
}

// stands looks up what a half led to that is not newer than what is stored: its
// own history item where an earlier try of the same run made it.
func (s Store) stands(ctx context.Context, half cloudinfra.Half, standing cloudinfra.Standing) (*cloudinfra.History, string, error) {
	var history cloudinfra.History
	key := table.Key{Partition: cloudinfra.PK, Sort: half.Track().HistorySK(half.At)}
	found, err := s.Table.Get(ctx, key, &history)
	switch {
	case err != nil:
		return nil, "", err
	case found:
		return &history, Repeated, nil
	case standing == cloudinfra.Older:
		return nil, Superseded, nil
	}
	return nil, "", fmt.Errorf("history item %s of the current state is missing", key.Sort)
}

func (s Store) commit(ctx context.Context, read readLatest, half cloudinfra.Half) (*cloudinfra.History, error) {
	next := read.state.With(half)
	set := map[string]any{"schema_version": next.SchemaVersion, "updated_at": next.UpdatedAt, "overall_status": next.OverallStatus}
	keep := s.SlowTTL
	if half.Fast != nil {
		set["fast"], set["fast_updated_at"], keep = half.Fast, half.At, s.FastTTL
	} else {
		set["slow"], set["slow_updated_at"] = half.Slow, half.At
	}
	history := half.History(next.OverallStatus, keep)
	condition := read.unchanged()
	update, err := s.Table.UpdateWrite(table.Change{Key: latestKey, Set: set, Condition: &condition})
	if err != nil {
		return nil, err
	}
	put, err := s.Table.PutWrite(history, nil)
	if err != nil {
		return nil, err
	}
	return &history, s.Table.TransactRetrying(ctx, update, put)
}

// readLatest is the state with its times as they are written in the item: other
// writers may have written them without milliseconds.
type readLatest struct {
	state      cloudinfra.Latest
	fast, slow *string
}

// UnmarshalJSON reads the state and the texts of its times.
func (r *readLatest) UnmarshalJSON(data []byte) error {
	var times struct {
		Fast *string `json:"fast_updated_at"`
		Slow *string `json:"slow_updated_at"`
	}
	if err := errors.Join(json.Unmarshal(data, &r.state), json.Unmarshal(data, &times)); err != nil {
		return err
	}
	r.fast, r.slow = times.Fast, times.Slow
	return nil
}

// unchanged is the condition that neither half was written since the state was
// read: the overall status follows from both.
func (r readLatest) unchanged() table.Condition {
	c := table.Condition{Names: map[string]string{"#fast": "fast_updated_at", "#slow": "slow_updated_at"}}
	c.Expression = same(&c, "fast", r.fast) + " AND " + same(&c, "slow", r.slow)
	return c
}

func same(c *table.Condition, name string, text *string) string {
	if text == nil {
		return "attribute_not_exists(#" + name + ")"
	}
	if c.Values == nil {
		c.Values = table.Item{}
	}
	c.Values[":"+name] = table.String(*text)
	return "#" + name + " = :" + name
}

// PutSnapshot writes the long-lived copy of a history item, replacing what an
// earlier try wrote.
func (s Store) PutSnapshot(ctx context.Context, history cloudinfra.History) error {
	key := history.SnapshotType.SnapshotKey(history.UpdatedAt)
	body, err := factory.EncodeJSON(history.Snapshot())
	if err != nil {
		return err
	}
	return s.Bucket.Put(ctx, key, objects.JSON, body)
}

// historyPage is how many history items one request reads.
const historyPage = 100

// History reads the newest history items of a track between two times, both
// inclusive: at most limit of them, oldest first. The times bound what is read,
// because DynamoDB deletes expired items late.
func (s Store) History(ctx context.Context, track cloudinfra.Track, from, to time.Time, limit int) ([]cloudinfra.History, error) {
	items := s.Table.Query(ctx, table.Range{
		Partition: cloudinfra.PK, From: track.HistorySK(factory.MillisOf(from)), To: track.HistorySK(factory.MillisOf(to)),
		Descending: true, Page: int32(min(limit, historyPage)), //nolint:gosec // at most historyPage
	})
	history := []cloudinfra.History{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		var h cloudinfra.History
		if err := table.Decode(item, &h); err != nil {
			return nil, err
		}
		if history = append(history, h); len(history) == limit {
			break
		}
	}
	slices.Reverse(history)
	return history, nil
}
