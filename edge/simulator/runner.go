package simulator

import (
	"context"
	"log/slog"
	"time"
)

// Outbox is where a runner leaves messages.
type Outbox interface {
	Write(messageID string, wire []byte) (path string, written bool, err error)
}

// Runner writes what a generator produces into an outbox. An error costs the
// messages at hand, never the run.
type Runner struct {
	Generator *Generator
	Outbox    Outbox
	// Store keeps the publish sequence number.
	Store func(sequence int64) error
	// Dropping tells that nothing is to be generated just now.
	Dropping func() bool
	Log      *slog.Logger

	stored  int64
	written int
}

// NewRunner is a runner that drops nothing and keeps no sequence number.
func NewRunner(generator *Generator, box Outbox, log *slog.Logger) *Runner {
	return &Runner{
		Generator: generator,
		Outbox:    box,
		Store:     func(int64) error { return nil },
		Dropping:  func() bool { return false },
		Log:       log,
		stored:    generator.Sequence(),
	}
}

// Written is the number of messages written so far.
func (r *Runner) Written() int { return r.written }

// Run produces messages as their time comes, on a monotonic clock, until the
// context ends.
func (r *Runner) Run(ctx context.Context) {
	start := time.Now()
	wall := wallClock{start: start.Round(0)}
	for {
		timer := time.NewTimer(r.Generator.Due() - time.Since(start))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		elapsed := time.Since(start)
		r.produce(elapsed, wall.at(elapsed, time.Now().Round(0)))
	}
}

// Fill produces at once the messages of a span of time that begins at start.
func (r *Runner) Fill(ctx context.Context, start time.Time, span time.Duration) {
	for ctx.Err() == nil && r.Generator.Due() < span {
		elapsed := r.Generator.Due()
		r.produce(elapsed, start.Add(elapsed))
	}
}

func (r *Runner) produce(elapsed time.Duration, now time.Time) {
	messages, err := r.Generator.Produce(elapsed, now)
	if err != nil {
		r.Log.Error("messages not generated", "error", err)
		return
	}
	if r.Dropping() {
		return
	}
	r.storeSequence()
	for _, m := range messages {
		if _, _, err := r.Outbox.Write(m.ID, m.Wire); err != nil {
			r.Log.Error("message not written", "message_id", m.ID, "error", err)
			continue
		}
		r.written++
	}
}

// storeSequence stores a number before it is used, so that none is used twice.
func (r *Runner) storeSequence() {
	sequence := r.Generator.Sequence()
	if sequence == r.stored {
		return
	}
	if err := r.Store(sequence); err != nil {
		r.Log.Error("publish sequence not stored", "error", err)
		return
	}
	r.stored = sequence
}

// wallClock tells the time of day by the monotonic clock, so that small
// corrections of the system clock don't shift timestamps, and follows the
// system clock when it was set.
type wallClock struct {
	start time.Time
	shift time.Duration
}

// clockWasSet is the difference from which on the system clock is believed.
const clockWasSet = time.Second

func (w *wallClock) at(elapsed time.Duration, system time.Time) time.Time {
	now := w.start.Add(elapsed + w.shift)
	if apart := system.Sub(now); apart.Abs() >= clockWasSet {
		w.shift += apart
		now = system
	}
	return now
}
