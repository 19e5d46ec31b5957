package factory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
)

// Outcome is what became of a message.
type Outcome string

// The outcomes of a message.
const (
	Applied     Outcome = "applied"
	Duplicate   Outcome = "duplicate"
	Late        Outcome = "late"
	Quarantined Outcome = "quarantined"
)

// Step is a point of the ingest contract between two writes; tests stop there.
type Step string

// The steps of the ingest contract, in order.
const (
	StepParsed     Step = "parsed"
	StepRead       Step = "latest read"
	StepProcessed  Step = "processed object written"
	StepCommitted  Step = "state committed"
	StepMarked     Step = "bucket marked dirty"
	StepProjected  Step = "projections written"
	StepQuarantine Step = "quarantine written"
)

// Ingester carries messages into the read models by the ingest contract.
// Messages of one factory must be given one after the other.
type Ingester struct {
	Store storage.Store
	Now   func() time.Time
	// At, where set, is called after every step; an error ends the work there.
	At func(Step) error
}

// Result is what became of a message and, where its factory's state changed,
// the committed state.
type Result struct {
	Outcome   Outcome
	Reason    string
	Message   factory.Message
	Committed *factory.Latest
}

// Ingest does what must happen in order: up to the committed state. Project
// then writes what follows from it.
func (i Ingester) Ingest(ctx context.Context, e Envelope, known *factory.Latest) (Result, error) {
	m, block, err := i.read(e)
	if err != nil {
		return i.refuse(ctx, e, err)
	}
	if err := i.at(StepParsed); err != nil {
		return Result{}, err
	}
	latest := known
	if latest == nil {
		if latest, err = i.Store.Latest(ctx, m.FactoryID); err != nil {
			return Result{}, err
		}
	}
	if err := i.at(StepRead); err != nil {
		return Result{}, err
	}
	switch factory.StandingOf(m, latest) {
	case factory.Late:
		return i.late(ctx, m, block, latest)
	case factory.Duplicate:
		return i.repeat(ctx, m, block, latest)
	}
	return i.apply(ctx, m, block, latest)
}

func (i Ingester) at(step Step) error {
	if i.At == nil {
		return nil
	}
	return i.At(step)
}

func (i Ingester) read(e Envelope) (factory.Message, factory.Block, error) {
	now := i.Now()
	m, err := factory.ParseMessage(e.Body, now)
	if err != nil {
		return factory.Message{}, factory.Block{}, err
	}
	if err := m.CheckTopic(e.Topic); err != nil {
		return factory.Message{}, factory.Block{}, err
	}
	block, err := factory.Normalise(m, now)
	return m, block, err
}

// maxConflicts is how often a commit is tried on a state that others change.
const maxConflicts = 5

// errContended tells that other writers won every race; the message comes back.
var errContended = errors.New("the factory's state changed on every attempt")

// apply stores the message and makes it the factory's state.
func (i Ingester) apply(ctx context.Context, m factory.Message, block factory.Block, latest *factory.Latest) (Result, error) {
	if err := i.putProcessed(ctx, m, block, latest, false); err != nil {
		return Result{}, err
	}
	if err := i.at(StepProcessed); err != nil {
		return Result{}, err
	}
	marked, err := i.markBacklog(ctx, m, i.Now().Add(commitMargin))
	if err != nil {
		return Result{}, err
	}
	for range maxConflicts {
		next := factory.Apply(latest, m, block, i.Now())
		err := i.commit(ctx, m, next)
		var stale *storage.StaleError
		switch {
		case err == nil && !marked:
			_, err = i.markBacklog(ctx, m, next.UpdatedAt.Time)
			return Result{Outcome: Applied, Message: m, Committed: &next}, errors.Join(err, i.at(StepCommitted))
		case err == nil:
			return Result{Outcome: Applied, Message: m, Committed: &next}, i.at(StepCommitted)
		case !errors.As(err, &stale):
			return Result{}, err
		}
		latest = stale.Current
		switch factory.StandingOf(m, latest) {
		case factory.Late:
			return Result{Outcome: Late, Message: m, Committed: latest}, i.markDirty(ctx, m)
		case factory.Duplicate:
			return i.repeat(ctx, m, block, latest)
		}
	}
	return Result{}, fmt.Errorf("apply %s: %w", m.MessageID, errContended)
}

// commitMargin is how long a commit may take after its bucket was thought to
// need no mark; a slower one is marked after it.
const commitMargin = 10 * time.Second

// markBacklog has the bucket of a message computed again when its history row,
// written at that time, comes too late for it: a drained backlog is in order, yet
// its buckets were computed long ago. The mark comes before the commit, so that a
// repeat needs none.
func (i Ingester) markBacklog(ctx context.Context, m factory.Message, writtenAt time.Time) (bool, error) {
	if !factory.MissesHistory(m.SourceTimestamp, factory.MillisOf(writtenAt)) {
		return false, nil
	}
	return true, i.markDirty(ctx, m)
}

func (i Ingester) commit(ctx context.Context, m factory.Message, next factory.Latest) error {
	if m.SourceType == factory.SourceImageSnapshot {
		return i.Store.CommitLatest(ctx, next)
	}
	return i.Store.Commit(ctx, next)
}

func (i Ingester) putProcessed(ctx context.Context, m factory.Message, block factory.Block, latest *factory.Latest, late bool) error {
	object := factory.ProcessedObject(m, block, latest, i.Now(), late)
	_, err := i.Store.PutNew(ctx, processedKey(m), object)
	return err
}

func processedKey(m factory.Message) string {
	return factory.ProcessedKey(m.FactoryID, string(m.SourceType), m.SourceTimestamp, m.MessageID)
}

// Project writes the objects that follow from a committed state: the snapshot
// and, for a factory_state message, the risk. Pictures have neither.
func (i Ingester) Project(ctx context.Context, r Result) error {
	if r.Outcome != Applied || r.Message.SourceType == factory.SourceImageSnapshot {
		return nil
	}
	if err := i.project(ctx, r.Message.SourceType, *r.Committed); err != nil {
		return err
	}
	return i.at(StepProjected)
}

func (i Ingester) project(ctx context.Context, source factory.SourceType, committed factory.Latest) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return i.Store.PutSnapshot(ctx, committed) })
	if source == factory.SourceFactoryState {
		work.Go(func() error { return i.Store.PutRisk(ctx, committed) })
	}
	return work.Wait()
}
