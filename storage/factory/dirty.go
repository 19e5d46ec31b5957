package factory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/domain/factory"
	"millrace/storage/table"
)

// Dirty is the mark of a bucket that must be computed again.
type Dirty struct {
	FactoryID string
	Start     time.Time
	// Rev counts the marks of this bucket.
	Rev int64
	// MarkedAt is when the last of them was made, to the second.
	MarkedAt time.Time
}

// DirtyGraphs are the marks that have not expired at now, newest bucket first.
func (s Store) DirtyGraphs(ctx context.Context, now time.Time) ([]Dirty, error) {
	type mark struct {
		SK  string `json:"sk"`
		Rev int64  `json:"rev"`
		TTL int64  `json:"ttl"`
	}
	var marks []Dirty
	all := s.Table.Query(ctx, table.Range{Partition: factory.DirtyGraphPK, From: "0", To: "~", Descending: true, Consistent: true})
	for m, err := range documents[mark](all) {
		if err != nil {
			return nil, err
		}
		expires := time.Unix(m.TTL, 0).UTC()
		if expires.Before(now) {
			continue
		}
		startText, factoryID, _ := strings.Cut(m.SK, "#")
		start, err := time.Parse(time.RFC3339, startText)
		if err != nil {
			return nil, fmt.Errorf("read dirty mark %s: %w", m.SK, err)
		}
		marks = append(marks, Dirty{FactoryID: factoryID, Start: start, Rev: m.Rev, MarkedAt: expires.Add(-dirtyTTL)})
	}
	return marks, nil
}

// ClearDirty removes a mark, provided that it is still the one read, and tells
// whether it did: a mark made since then stays.
func (s Store) ClearDirty(ctx context.Context, mark Dirty) (bool, error) {
	condition := s.Table.Revision(mark.Rev)
	key := table.Key{Partition: factory.DirtyGraphPK, Sort: factory.DirtyGraphSK(mark.Start, mark.FactoryID)}
	err := s.Table.Delete(ctx, key, &condition)
	if _, marked := errors.AsType[*table.ConflictError](err); marked {
		return false, nil
	}
	return err == nil, err
}
