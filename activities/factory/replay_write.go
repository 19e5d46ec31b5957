package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/table"
	workflows "millrace/workflows/factory"
)

// replayPlan is what one message leads to.
type replayPlan struct {
	entry    rawEntry
	refused  *refusedMessage
	message  factory.Message
	block    factory.Block
	standing factory.Standing
	object   factory.Processed
	// next is the state that the message led to, nil unless it was the newest.
	next *factory.Latest
}

type refusedMessage struct {
	envelope Envelope
	reason   error
}

// found is what of a plan is there already.
type found struct{ processed, risk, history bool }

// wants says which of the things that follow from a state are to be written.
type wants struct{ risk, history bool }

// execute writes plans side by side: no two of them write the same thing.
func (r *replayRun) execute(ctx context.Context, plans []replayPlan, counts *workflows.ReplayCounts) error {
	results := make([]workflows.ReplayCounts, len(plans))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(replayParallel)
	for i, plan := range plans {
		work.Go(func() (err error) {
			results[i], err = r.write(ctx, plan)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, result := range results {
		counts.Add(result)
	}
	return nil
}

func (r *replayRun) write(ctx context.Context, plan replayPlan) (workflows.ReplayCounts, error) {
	switch {
	case plan.refused != nil:
		return workflows.ReplayCounts{Quarantined: 1}, r.refuse(ctx, *plan.refused)
	case plan.standing == factory.Duplicate:
		return workflows.ReplayCounts{Duplicates: 1}, nil
	}
	there, err := r.look(ctx, plan)
	if err != nil {
		return workflows.ReplayCounts{}, err
	}
	counts, err := r.due(ctx, &plan, there)
	if err != nil || r.chunk.Request.DryRun {
		return counts, err
	}
	r.touch(plan, counts)
	return r.writeDue(ctx, plan, counts)
}

func (r *replayRun) refuse(ctx context.Context, refused refusedMessage) error {
	if r.chunk.Request.DryRun {
		return nil
	}
	_, err := Ingester{Store: r.Store, Now: r.Now}.refuse(ctx, refused.envelope, refused.reason)
	return err
}

// look finds what of a plan is there already.
func (r *replayRun) look(ctx context.Context, plan replayPlan) (there found, err error) {
	m := plan.message
	if there.processed, err = r.existing.has(ctx, string(m.SourceType), m); err != nil {
		return there, err
	}
	if m.SourceType == factory.SourceFactoryState {
		if there.risk, err = r.existing.has(ctx, factory.DatasetRiskScore, m); err != nil {
			return there, err
		}
	}
	_, has := r.history[m.MessageID]
	there.history = has || !r.historyLives(plan.entry)
	return there, nil
}

// due counts what is to be written for a plan.
func (r *replayRun) due(ctx context.Context, plan *replayPlan, there found) (workflows.ReplayCounts, error) {
	var due workflows.ReplayCounts
	switch {
	case !there.processed:
		due.Processed = 1
	case r.chunk.Request.Overwrite:
		due.Overwritten = 1
	}
	due.Late = count(plan.standing == factory.Late)
	want := r.wants(*plan, there)
	if there.processed && (want != wants{} || due.Late+due.Overwritten == 2) {
		late, err := r.wasLate(ctx, plan.message)
		if err != nil {
			return due, err
		}
		plan.object.Late = late
		if late {
			want = wants{}
		}
	}
	due.Risks, due.History = count(want.risk), count(want.history)
	due.Snapshots = count(want.history || plan.judges() && !there.processed)
	return due, nil
}

// judges tells whether a message led to a state with a history.
func (p replayPlan) judges() bool {
	return p.next != nil && p.message.SourceType != factory.SourceImageSnapshot
}

func (r *replayRun) wants(plan replayPlan, there found) wants {
	if !plan.judges() {
		return wants{}
	}
	isState := plan.message.SourceType == factory.SourceFactoryState
	return wants{risk: isState && (!there.risk || r.chunk.Request.Overwrite), history: !there.history}
}

// wasLate tells whether a message was late when it was first processed: it has
// neither a risk nor history then, whatever the order of receipt says now. A
// damaged object doesn't say.
func (r *replayRun) wasLate(ctx context.Context, m factory.Message) (bool, error) {
	_, late, err := Ingester{Store: r.Store}.processed(ctx, m)
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return false, nil
	case isUnreadable(err), isNoJSON(err):
		r.Logger.Warn("processed object is damaged", "key", processedKey(m), "error", err)
		return false, nil
	}
	return late, err
}

func isNoJSON(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// writeDue writes what follows from a message before its processed object: that
// one tells the next replay that all is done.
func (r *replayRun) writeDue(ctx context.Context, plan replayPlan, due workflows.ReplayCounts) (workflows.ReplayCounts, error) {
	overwrite := r.chunk.Request.Overwrite
	if due.History+due.Snapshots > 0 {
		row, err := r.historyOf(ctx, *plan.next, due.History > 0)
		if err != nil {
			return due, err
		}
		plan.next = &row
	}
	if due.Snapshots > 0 {
		if err := r.Store.PutSnapshot(ctx, *plan.next); err != nil {
			return due, err
		}
	}
	if due.Risks > 0 {
		key := factory.ProcessedKey(plan.message.FactoryID, factory.DatasetRiskScore, plan.message.SourceTimestamp, plan.message.MessageID)
		if err := r.put(ctx, key, factory.RiskObject(*plan.next), overwrite); err != nil {
			return due, err
		}
	}
	if err := r.at(StepProjected); err != nil {
		return due, err
	}
	if due.Processed+due.Overwritten == 0 {
		return due, nil
	}
	if err := r.put(ctx, processedKey(plan.message), plan.object, overwrite); err != nil {
		return due, err
	}
	return due, r.at(StepProcessed)
}

func (r *replayRun) put(ctx context.Context, key string, document any, overwrite bool) error {
	if !overwrite {
		_, err := r.Store.PutNew(ctx, key, document)
		return err
	}
	body, err := factory.EncodeJSON(document)
	if err != nil {
		return err
	}
	return r.Store.Bucket.Put(ctx, key, objects.JSON, body)
}

// historyOf is the history item of a state: the one that is there, else the one
// that is written now. Where history expired the state stands for it.
func (r *replayRun) historyOf(ctx context.Context, state factory.Latest, missing bool) (factory.Latest, error) {
	if missing {
		return r.putHistory(ctx, state)
	}
	at, has := r.history[state.MessageID]
	if !has {
		return state, nil
	}
	row, err := r.Store.HistoryOf(ctx, state.FactoryID, state.MessageID, at.Time, 0)
	if err != nil || row == nil {
		return state, err
	}
	return *row, nil
}

// maxBumps is how many history keys after the wanted one are tried.
const maxBumps = 100

// putHistory writes the history item of a state at its time of receipt, or as
// few milliseconds later as others' items leave free, and returns the state with
// the time it got.
func (r *replayRun) putHistory(ctx context.Context, state factory.Latest) (factory.Latest, error) {
	absent := r.Store.Table.Absent()
	for range maxBumps {
		err := r.Store.Table.Put(ctx, state.History(r.Store.HistoryTTL), &absent)
		var taken *table.ConflictError
		if !errors.As(err, &taken) {
			return state, errors.Join(err, r.at(StepHistory))
		}
		var other factory.Latest
		if err := table.Decode(taken.Current, &other); err != nil {
			return state, err
		}
		if other.MessageID == state.MessageID {
			return state, nil
		}
		state.UpdatedAt = factory.MillisOf(state.UpdatedAt.Add(time.Millisecond))
	}
	return state, fmt.Errorf("history of %s: no key is free after %d tries", state.MessageID, maxBumps)
}

// touch notes that the bucket of a message is to be computed again: when
// something of it is written, or may have been by an earlier attempt.
func (r *replayRun) touch(plan replayPlan, due workflows.ReplayCounts) {
	written := due.Processed + due.Overwritten + due.History + due.Risks
	if plan.message.SourceType == factory.SourceImageSnapshot || written == 0 && !r.attempt.repeated {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched[plan.message.SourceTimestamp.Truncate(factory.BucketLength)] = true
}

func (r *replayRun) pending() []time.Time {
	starts := make([]time.Time, 0, len(r.touched))
	for start := range r.touched {
		starts = append(starts, start)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}

// markTouched has the buckets computed again. It comes after the writes, and
// buckets stay pending until it is done.
func (r *replayRun) markTouched(ctx context.Context) error {
	for _, start := range r.pending() {
		if err := r.Store.MarkDirty(ctx, r.chunk.Request.FactoryID, start, r.Now()); err != nil {
			return err
		}
		delete(r.touched, start)
		r.progress.Counts.DirtyBuckets++
		if err := r.at(StepMarked); err != nil {
			return err
		}
	}
	r.progress.Pending = nil
	return nil
}

// RestoreLatestState makes the blocks of a replayed state the factory's current
// ones where those are older or missing.
func (r Replayer) RestoreLatestState(ctx context.Context, req workflows.RestoreRequest) (workflows.RestoreResult, error) {
	latest, err := r.Store.Latest(ctx, req.State.FactoryID)
	if err != nil {
		return workflows.RestoreResult{}, err
	}
	for range maxConflicts {
		next, changed := restored(latest, req.State, r.Now())
		if !changed || req.DryRun {
			return workflows.RestoreResult{Restored: changed}, nil
		}
		err := r.Store.CommitLatest(ctx, next)
		var stale *storage.StaleError
		if !errors.As(err, &stale) {
			return workflows.RestoreResult{Restored: err == nil}, final(err)
		}
		latest = stale.Current
	}
	return workflows.RestoreResult{}, fmt.Errorf("restore %s: %w", req.State.FactoryID, errContended)
}

// restored is the state with every block of replayed that is newer. The history
// of those messages is the replay's own, so that the commit writes none.
func restored(latest *factory.Latest, replayed factory.Latest, now time.Time) (factory.Latest, bool) {
	var rev int64
	if latest != nil {
		rev = latest.Rev
	}
	next, changed := latest, false
	for _, b := range blocksOf(replayed) {
		if factory.StandingOf(b.message, next) != factory.Newer {
			continue
		}
		applied := factory.Apply(next, b.message, b.block, now)
		applied.Rev = rev + 1
		next, changed = &applied, true
	}
	if !changed {
		return factory.Latest{}, false
	}
	return *next, true
}

type replayedBlock struct {
	message factory.Message
	block   factory.Block
}

// blocksOf are the blocks of a state with the messages that they came from, the
// picture first, so that the state is named after a message that judges it.
func blocksOf(state factory.Latest) []replayedBlock {
	message := func(source factory.SourceType, order factory.Order) factory.Message {
		return factory.Message{
			MessageID: order.MessageID, FactoryID: state.FactoryID, EnvironmentType: state.EnvironmentType,
			SourceType: source, SourceTimestamp: order.At,
		}
	}
	var blocks []replayedBlock
	if image := state.LatestImageSnapshot; image != nil {
		blocks = append(blocks, replayedBlock{message(factory.SourceImageSnapshot, image.ID()), factory.Block{ImageSnapshot: image}})
	}
	if infra := state.InfraState; infra != nil {
		blocks = append(blocks, replayedBlock{message(factory.SourceInfraState, infra.ID()), factory.Block{InfraState: infra}})
	}
	if own := state.FactoryState; own != nil {
		blocks = append(blocks, replayedBlock{message(factory.SourceFactoryState, own.ID()), factory.Block{FactoryState: own}})
	}
	return blocks
}
