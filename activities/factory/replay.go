package factory

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
)

// Replayer builds read models again from raw objects.
type Replayer struct {
	Store storage.Store
	Now   func() time.Time
	// At, where set, is called after every step; an error ends the work there.
	At     func(Step) error
	Logger *slog.Logger
}

// Steps of a replay; those of ingest come between.
const (
	StepHistory  Step = "history written"
	StepReplayed Step = "batch replayed"
)

const (
	// replayBatch is how many messages are read, folded and written at a time; a
	// kill repeats at most one batch.
	replayBatch = 64
	// replayParallel bounds the requests under way.
	replayParallel = 16
	// warmUp is how far before the range messages are read, so that the first
	// state of the range has an infra_state as it had then.
	warmUp = 10 * time.Minute
	// replaySettle leaves messages to the consumer that it is likely to be at work
	// on. Where it is behind by more, both write the same objects, and a message
	// may get a history item from each; readers count messages, not items.
	replaySettle = time.Minute
	// maxPendingBuckets bounds the dirty buckets that wait to be marked.
	maxPendingBuckets = 100
)

// replayProgress is what a heartbeat carries: where to go on, with what state,
// and the buckets that are still to be marked.
type replayProgress struct {
	After   workflows.ReplayPosition `json:"after"`
	State   *factory.Latest          `json:"state,omitempty"`
	Counts  workflows.ReplayCounts   `json:"counts"`
	Pending []time.Time              `json:"pending,omitempty"`
}

// ReplayRaw replays a stretch of messages in the order of their receipt. Each
// is judged at its receipt, so that every object and item has one possible form.
func (r Replayer) ReplayRaw(ctx context.Context, chunk workflows.ReplayChunk) (workflows.ReplayChunkResult, error) {
	a := attempt{repeated: activity.GetInfo(ctx).Attempt > 1, record: func(p replayProgress) { activity.RecordHeartbeat(ctx, p) }}
	if activity.HasHeartbeatDetails(ctx) {
		var last replayProgress
		if activity.GetHeartbeatDetails(ctx, &last) == nil {
			a.last = &last
		}
	}
	return r.replay(ctx, chunk, a)
}

// attempt is what an activity knows of itself.
type attempt struct {
	// repeated tells that an earlier attempt may have written what is found.
	repeated bool
	// last is where the earlier attempt was, nil when it told nothing.
	last *replayProgress
	// record sends a heartbeat.
	record func(replayProgress)
}

func (r Replayer) replay(ctx context.Context, chunk workflows.ReplayChunk, a attempt) (workflows.ReplayChunkResult, error) {
	run := newReplayRun(r, chunk, a)
	done, err := run.all(ctx)
	if err != nil {
		return workflows.ReplayChunkResult{}, final(fmt.Errorf("replay %s: %w", chunk.Request.FactoryID, err))
	}
	return workflows.ReplayChunkResult{Counts: run.progress.Counts, After: run.progress.After, State: run.progress.State, DayDone: done}, nil
}

// final marks an error that no retry can mend.
func final(err error) error {
	if kind, isFinal := kindOf(err); isFinal {
		return temporal.NewNonRetryableApplicationError(err.Error(), kind, err)
	}
	return err
}

// replayRun is the work on one chunk.
type replayRun struct {
	Replayer
	chunk    workflows.ReplayChunk
	attempt  attempt
	bucket   objects.Bucket
	progress replayProgress

	existing *leafSets
	// history is when the state of each message was written.
	history map[string]factory.Millis
	mu      sync.Mutex
	touched map[time.Time]bool
}

func newReplayRun(r Replayer, chunk workflows.ReplayChunk, a attempt) *replayRun {
	run := &replayRun{
		Replayer: r, chunk: chunk, attempt: a, touched: make(map[time.Time]bool),
		progress: replayProgress{After: chunk.After, State: chunk.State},
	}
	if a.last != nil {
		run.progress = *a.last
	}
	for _, start := range run.progress.Pending {
		run.touched[start] = true
	}
	run.bucket = objects.Bucket{Client: &listCounter{API: r.Store.Bucket.Client, onList: run.beat}, Name: r.Store.Bucket.Name}
	run.existing = &leafSets{bucket: run.bucket, factoryID: chunk.Request.FactoryID}
	return run
}

func (r *replayRun) beat() { r.attempt.record(r.progress) }

// all replays until the limit or the day's end, and tells whether it was the
// day's end.
func (r *replayRun) all(ctx context.Context) (dayDone bool, err error) {
	entries, err := r.entries(ctx)
	if err != nil {
		return false, err
	}
	for len(entries) > 0 && r.progress.Counts.Messages < int64(r.chunk.Limit) {
		n := min(len(entries), replayBatch)
		if err := r.batch(ctx, entries[:n]); err != nil {
			return false, err
		}
		entries = entries[n:]
	}
	return len(entries) == 0, r.markTouched(ctx)
}

// batch replays some messages and moves on behind them.
func (r *replayRun) batch(ctx context.Context, entries []rawEntry) error {
	bodies, err := r.read(ctx, entries)
	if err != nil {
		return err
	}
	var counts workflows.ReplayCounts
	state := r.progress.State
	plans := make([]replayPlan, 0, len(entries))
	for i, entry := range entries {
		if bodies[i] == nil {
			counts.Unreadable++
			continue
		}
		var plan *replayPlan
		if plan, state = r.fold(entry, bodies[i], state, &counts); plan != nil {
			plans = append(plans, *plan)
		}
	}
	if err := r.execute(ctx, plans, &counts); err != nil {
		return err
	}
	if len(r.touched) > maxPendingBuckets {
		if err := r.markTouched(ctx); err != nil {
			return err
		}
	}
	r.progress.Counts.Add(counts)
	r.progress.State, r.progress.After = state, entries[len(entries)-1].position()
	r.progress.Pending = r.pending()
	r.beat()
	return r.at(StepReplayed)
}

func (r *replayRun) at(step Step) error {
	if r.At == nil {
		return nil
	}
	return r.At(step)
}

// read reads bodies side by side; one that can't be a message is nil.
func (r *replayRun) read(ctx context.Context, entries []rawEntry) ([][]byte, error) {
	bodies := make([][]byte, len(entries))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(replayParallel)
	for i, entry := range entries {
		work.Go(func() error {
			body, err := r.bucket.Get(ctx, entry.Key, factory.MaxBody)
			if isUnreadable(err) {
				r.Logger.Error("raw object can't be replayed", "key", entry.Key, "error", err)
				return nil
			}
			bodies[i] = body
			return err
		})
	}
	return bodies, work.Wait()
}

// fold takes one message into the state and says what is to be written for it.
// Messages before the range only warm the state up.
func (r *replayRun) fold(entry rawEntry, body []byte, state *factory.Latest, counts *workflows.ReplayCounts) (*replayPlan, *factory.Latest) {
	e := rawEnvelope(r.chunk.Request.FactoryID, string(entry.source), entry.rawObject, body)
	m, block, err := r.ingester(entry).read(e)
	if err != nil {
		counts.Messages++
		return &replayPlan{entry: entry, refused: &refusedMessage{e, err}}, state
	}
	if !r.within(m.SourceTimestamp) {
		return nil, state
	}
	plan := &replayPlan{entry: entry, message: m, block: block, standing: factory.StandingOf(m, state)}
	if entry.overtaken {
		plan.standing = factory.Late
	}
	plan.object = factory.ProcessedObject(m, block, state, entry.LastModified, plan.standing == factory.Late)
	if plan.standing == factory.Newer {
		next := factory.Apply(state, m, block, entry.LastModified)
		state, plan.next = &next, &next
	}
	if m.SourceTimestamp.Before(r.chunk.Request.From) {
		return nil, state
	}
	counts.Messages++
	return plan, state
}

// ingester judges a message as if it were processed when it was received.
func (r *replayRun) ingester(entry rawEntry) Ingester {
	return Ingester{Store: r.Store, Now: func() time.Time { return entry.LastModified }}
}

func (r *replayRun) within(sourceAt time.Time) bool {
	return sourceAt.Before(r.chunk.Request.To) && !sourceAt.Before(r.chunk.Request.From.Add(-warmUp))
}
