package factory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"millrace/domain/factory"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
)

// rawEntry is a raw object in the order of receipt.
type rawEntry struct {
	rawObject
	source factory.SourceType
	// overtaken tells that a newer message of its source type was received before.
	overtaken bool
}

func (e rawEntry) position() workflows.ReplayPosition {
	return workflows.ReplayPosition{ReceivedAt: e.LastModified, SourceAt: e.sourceAt, Key: e.Key}
}

func comparePositions(a, b workflows.ReplayPosition) int {
	return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), a.SourceAt.Compare(b.SourceAt), cmp.Compare(a.Key, b.Key))
}

// entries are the messages of the chunk's day after its position that may be in
// the range, in the order of receipt. A day of one factory has some thirty
// thousand objects, of which only keys and times are held.
func (r *replayRun) entries(ctx context.Context) ([]rawEntry, error) {
	var all []rawEntry
	before := r.chunk.StartedAt.Add(-replaySettle)
	for _, source := range factory.SourceTypes {
		prefix := factory.RawPrefix(r.chunk.Request.FactoryID, string(source), r.chunk.Day)
		for o, err := range r.bucket.List(ctx, prefix, "") {
			if err != nil {
				return nil, err
			}
			if o.LastModified.Before(before) {
				all = append(all, rawEntry{rawObject: newRawObject(prefix, o), source: source})
			}
		}
	}
	slices.SortFunc(all, func(a, b rawEntry) int { return comparePositions(a.position(), b.position()) })
	entries := r.inRange(all)
	return entries, r.loadHistory(ctx, entries)
}

// inRange keeps the messages that may be in the range and come after the chunk's
// position, and notes which of them newer ones had overtaken.
func (r *replayRun) inRange(all []rawEntry) []rawEntry {
	kept := make([]rawEntry, 0, len(all))
	newest := make(map[factory.SourceType]factory.Order, len(factory.SourceTypes))
	for _, entry := range all {
		order := factory.Order{At: entry.sourceAt, MessageID: entry.leaf}
		if entry.sourceAt.IsZero() {
			order = factory.Order{}
		} else if bar := newest[entry.source]; order.Compare(bar) > 0 {
			newest[entry.source] = order
		} else {
			entry.overtaken = true
		}
		mayCount := order.At.IsZero() || r.within(order.At)
		if mayCount && comparePositions(entry.position(), r.progress.After) > 0 {
			kept = append(kept, entry)
		}
	}
	return kept
}

// historyMargin keeps a replay from writing items that expire at once.
const historyMargin = time.Minute

func (r *replayRun) historyFrom() time.Time {
	return r.chunk.StartedAt.Add(historyMargin - r.Store.HistoryTTL)
}

// historyLives tells whether the history item of a message is still to live.
func (r *replayRun) historyLives(entry rawEntry) bool {
	return entry.LastModified.After(r.historyFrom())
}

// loadHistory reads which messages have a history item, if any of the entries
// should have one.
func (r *replayRun) loadHistory(ctx context.Context, entries []rawEntry) error {
	r.history = make(map[string]factory.Millis)
	if !slices.ContainsFunc(entries, r.historyLives) {
		return nil
	}
	from, to := factory.MillisOf(r.historyFrom()), factory.MillisOf(r.Now().Add(factory.MaxClockAhead))
	for row, err := range r.Store.History(ctx, r.chunk.Request.FactoryID, factory.HistorySK(from), factory.HistorySK(to)) {
		if err != nil {
			return err
		}
		if row.MessageID != "" {
			r.history[row.MessageID] = row.UpdatedAt
		}
		r.beat()
	}
	return nil
}

// leafSets knows which objects exist, a listing per dataset and hour. It keeps
// as many as messages from different hours need at a time.
type leafSets struct {
	bucket    objects.Bucket
	factoryID string

	mu   sync.Mutex
	sets map[string]map[string]bool
}

const maxLeafSets = 48

func (s *leafSets) has(ctx context.Context, dataset string, m factory.Message) (bool, error) {
	prefix := factory.ProcessedPrefix(s.factoryID, dataset, m.SourceTimestamp)
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.sets[prefix]
	if !ok {
		var err error
		if set, err = leaves(ctx, s.bucket, prefix); err != nil {
			return false, err
		}
		if s.sets == nil || len(s.sets) == maxLeafSets {
			s.sets = make(map[string]map[string]bool)
		}
		s.sets[prefix] = set
	}
	return set[m.MessageID], nil
}
