package factory

import (
	"context"
	"errors"
	"time"

	"millrace/domain/factory"
	"millrace/storage/objects"
)

// commitWithin is how long after its processed object a message's history item
// may have been written: redeliveries of an outage included.
const commitWithin = 15 * time.Minute

// repeat handles a message that is the factory's state already. It writes what a
// crash left out after the commit, and changes nothing else.
func (i Ingester) repeat(ctx context.Context, m factory.Message, block factory.Block, latest *factory.Latest) (Result, error) {
	result := Result{Outcome: Duplicate, Message: m, Committed: latest}
	if m.SourceType == factory.SourceImageSnapshot {
		return result, nil
	}
	committed := latest
	if latest.MessageID != m.MessageID {
		processedAt, _, err := i.processed(ctx, m)
		if errors.Is(err, objects.ErrNotFound) {
			return result, i.putProcessed(ctx, m, block, latest, false)
		}
		if err != nil {
			return Result{}, err
		}
		if committed, err = i.Store.HistoryOf(ctx, m.FactoryID, m.MessageID, processedAt, commitWithin); err != nil {
			return Result{}, err
		}
	}
	if committed == nil {
		return result, nil
	}
	return result, i.project(ctx, m.SourceType, *committed)
}

// late handles a message that is older than the factory's state: it is stored,
// and its bucket is computed again. The mark comes first, so that an object that
// says it is late needs no second mark.
func (i Ingester) late(ctx context.Context, m factory.Message, block factory.Block, latest *factory.Latest) (Result, error) {
	processedAt, wasLate, err := i.processed(ctx, m)
	switch {
	case errors.Is(err, objects.ErrNotFound):
	case err != nil:
		return Result{}, err
	case wasLate || m.SourceType == factory.SourceImageSnapshot:
		return Result{Outcome: Duplicate, Message: m, Committed: latest}, nil
	default:
		return i.lateRepeat(ctx, m, latest, processedAt)
	}
	if err := i.markDirty(ctx, m); err != nil {
		return Result{}, err
	}
	return Result{Outcome: Late, Message: m, Committed: latest}, i.putProcessed(ctx, m, block, latest, true)
}

// lateRepeat tells a message that was applied before newer ones came (nothing
// to do but what a crash left out) from one whose worker died before it could be
// applied (its bucket lacks it).
func (i Ingester) lateRepeat(ctx context.Context, m factory.Message, latest *factory.Latest, processedAt time.Time) (Result, error) {
	committed, err := i.Store.HistoryOf(ctx, m.FactoryID, m.MessageID, processedAt, commitWithin)
	switch {
	case err != nil:
		return Result{}, err
	case committed != nil:
		return Result{Outcome: Duplicate, Message: m, Committed: latest}, i.project(ctx, m.SourceType, *committed)
	}
	return Result{Outcome: Late, Message: m, Committed: latest}, i.markDirty(ctx, m)
}

// processed reads when a message's processed object was written, and whether it
// was late then. The error wraps objects.ErrNotFound when there is none.
func (i Ingester) processed(ctx context.Context, m factory.Message) (at time.Time, late bool, err error) {
	var object struct {
		ProcessedAt factory.Millis `json:"processed_at"`
		Late        bool           `json:"late"`
	}
	if err := i.Store.Read(ctx, processedKey(m), &object); err != nil {
		return time.Time{}, false, err
	}
	return object.ProcessedAt.Time, object.Late, nil
}

// markDirty has the bucket of a late message computed again. Pictures are in no
// bucket.
func (i Ingester) markDirty(ctx context.Context, m factory.Message) error {
	if m.SourceType == factory.SourceImageSnapshot {
		return nil
	}
	if err := i.Store.MarkDirty(ctx, m.FactoryID, m.SourceTimestamp, i.Now()); err != nil {
		return err
	}
	return i.at(StepMarked)
}
