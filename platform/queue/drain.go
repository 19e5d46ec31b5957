package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Handler processes the messages of a drained queue.
type Handler interface {
	// Lane names the order that a message belongs to: messages of one lane are
	// handled one after the other, lanes side by side.
	Lane(Message) string
	// Handle does all that must be done in order. The function that it returns,
	// if any, finishes the message beside the next ones of the lane. The message
	// is deleted after both went well.
	Handle(context.Context, Message) (finish func(context.Context) error, err error)
	// Idle is called when a lane has no more messages for now.
	Idle(ctx context.Context, lane string)
}

// ErrOutage marks failures that say nothing of the message: the drain stops
// receiving for a while, and what it holds comes back later.
var ErrOutage = errors.New("a service that every message needs is out")

// Settings of a drain; the zero value of each is replaced by its default.
type Settings struct {
	// InFlight bounds the messages held at once (200).
	InFlight int64
	// Receivers poll side by side (4).
	Receivers int
	// Visibility hides received messages (60 s); it is renewed while they are held.
	Visibility time.Duration
	// Poll is how long one receive waits for messages (5 s). A receive is never
	// cut short by a stop: what it took would be hidden for nothing.
	Poll time.Duration
	// MinBackoff and MaxBackoff bound the pause after an outage (1 s, 30 s).
	MinBackoff, MaxBackoff time.Duration
}

func (s Settings) withDefaults() Settings {
	setDefault(&s.InFlight, 200)
	setDefault(&s.Receivers, 4)
	setDefault(&s.Visibility, time.Minute)
	setDefault(&s.Poll, 5*time.Second)
	setDefault(&s.MinBackoff, time.Second)
	setDefault(&s.MaxBackoff, 30*time.Second)
	return s
}

func setDefault[T comparable](value *T, otherwise T) {
	var unset T
	if *value == unset {
		*value = otherwise
	}
}

// Counts tells what a drain did.
type Counts struct {
	Received  int64 `json:"received"`
	Deleted   int64 `json:"deleted"`
	Abandoned int64 `json:"abandoned"`
	Outages   int64 `json:"outages"`
}

// Drainer takes messages from a queue until it is told to stop.
type Drainer struct {
	Queue    Queue
	Handler  Handler
	Settings Settings
	Logger   *slog.Logger

	held    heldMessages
	lanes   laneSet
	breaker breaker
	slots   *semaphore.Weighted
	deletes chan Message
	returns chan Message
	counts  struct{ received, deleted, abandoned, outages atomic.Int64 }
	// remarks bounds the log lines of faults that hit every message alike.
	remarks rate.Sometimes
}

// remarkEvery is how often a drain speaks of one kind of trouble.
const remarkEvery = 5 * time.Second

// Counts are what was done so far.
func (d *Drainer) Counts() Counts {
	return Counts{
		Received: d.counts.received.Load(), Deleted: d.counts.deleted.Load(),
		Abandoned: d.counts.abandoned.Load(), Outages: d.counts.outages.Load(),
	}
}

// Run drains until stop ends: then it receives no more, finishes what it holds
// and returns. When ctx itself ends, what is held is left to come back.
func (d *Drainer) Run(ctx, stop context.Context) {
	d.Settings = d.Settings.withDefaults()
	d.slots = semaphore.NewWeighted(d.Settings.InFlight)
	d.deletes = make(chan Message, d.Settings.InFlight)
	d.returns = make(chan Message, d.Settings.InFlight)
	d.remarks = rate.Sometimes{First: 1, Interval: remarkEvery}
	d.breaker = breaker{min: d.Settings.MinBackoff, max: d.Settings.MaxBackoff}
	receiving, stopReceiving := context.WithCancel(stop)
	defer stopReceiving()
	defer context.AfterFunc(ctx, stopReceiving)()

	background := startAll(
		func(done <-chan struct{}) { d.renew(ctx, done) },
		func(done <-chan struct{}) { collect(d.deletes, done, func(batch []Message) { d.delete(ctx, batch) }) },
		func(done <-chan struct{}) { collect(d.returns, done, func(batch []Message) { d.giveBack(ctx, batch) }) },
	)
	var receivers sync.WaitGroup
	for range d.Settings.Receivers {
		receivers.Go(func() { d.receive(ctx, receiving) })
	}
	receivers.Wait()
	d.lanes.wait()
	background()
}

// startAll runs functions until the returned one is called, which waits for
// them.
func startAll(functions ...func(done <-chan struct{})) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	for _, f := range functions {
		running.Go(func() { f(done) })
	}
	return func() {
		close(done)
		running.Wait()
	}
}

func (d *Drainer) receive(ctx, receiving context.Context) {
	for receiving.Err() == nil {
		if !d.breaker.wait(receiving) {
			return
		}
		if err := d.slots.Acquire(receiving, MaxBatch); err != nil {
			return
		}
		messages, err := d.Queue.Receive(ctx, MaxBatch, d.Settings.Poll, d.Settings.Visibility)
		d.slots.Release(int64(MaxBatch - len(messages)))
		if err != nil && receiving.Err() == nil {
			d.outage(err)
		}
		d.counts.received.Add(int64(len(messages)))
		for _, m := range messages {
			d.held.add(m)
			lane := d.Handler.Lane(m)
			d.lanes.add(lane, m, func(m Message) { d.handle(ctx, m) }, func() { d.Handler.Idle(ctx, lane) })
		}
	}
}

func (d *Drainer) outage(err error) {
	d.counts.outages.Add(1)
	if pause := d.breaker.trip(); pause > 0 {
		d.Logger.Warn("queue drain pauses", "pause", pause, "error", err)
	}
}

func (d *Drainer) handle(ctx context.Context, m Message) {
	if ctx.Err() != nil || d.breaker.open() {
		d.abandon(m)
		return
	}
	finish, err := d.Handler.Handle(ctx, m)
	if err != nil || finish == nil {
		d.settle(m, err)
		return
	}
	d.lanes.beside(func() { d.settle(m, finish(ctx)) })
}

func (d *Drainer) settle(m Message, err error) {
	switch {
	case err == nil:
		d.breaker.reset()
		d.deletes <- m
		return
	case errors.Is(err, ErrOutage):
		d.outage(err)
	default:
		d.remark("message is left to come back", err)
	}
	d.abandon(m)
}

// remark logs trouble, but not once per message.
func (d *Drainer) remark(what string, err error) {
	d.remarks.Do(func() { d.Logger.Warn("queue drain in trouble", "what", what, "error", err) })
}

// abandon gives a message up, so that it comes back: after the pause of an
// outage, else when its visibility lapses.
func (d *Drainer) abandon(m Message) {
	d.counts.abandoned.Add(1)
	if d.breaker.open() {
		d.returns <- m
		return
	}
	d.release(m)
}

// giveBack has messages come back right after the pause. Those hidden for longer
// would be late behind newer ones.
func (d *Drainer) giveBack(ctx context.Context, batch []Message) {
	if err := d.Queue.Extend(ctx, batch, max(d.breaker.remaining(), 0)); err != nil {
		d.remark("messages not given back, they come back later", err)
	}
	for _, m := range batch {
		d.release(m)
	}
}

func (d *Drainer) release(m Message) {
	d.held.remove(m)
	d.slots.Release(1)
}

// renewAt is the share of the visibility time after which it is renewed.
const renewAt = 3

func (d *Drainer) renew(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(d.Settings.Visibility / renewAt)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := d.Queue.Extend(ctx, d.held.all(), d.Settings.Visibility); err != nil {
				d.remark("visibility not renewed", err)
			}
		}
	}
}

// collectDelay is how long a message waits for others to be settled with it in
// one request.
const collectDelay = 50 * time.Millisecond

// collect passes messages on in batches until done; then it passes on the rest.
func collect(messages <-chan Message, done <-chan struct{}, settle func([]Message)) {
	batch := make([]Message, 0, MaxBatch)
	flush := func() {
		if len(batch) > 0 {
			settle(batch)
			batch = batch[:0]
		}
	}
	ticker := time.NewTicker(collectDelay)
	defer ticker.Stop()
	for {
		select {
		case m := <-messages:
			if batch = append(batch, m); len(batch) == MaxBatch {
				flush()
			}
		case <-ticker.C:
			flush()
		case <-done:
			for len(messages) > 0 {
				batch = append(batch, <-messages)
			}
			flush()
			return
		}
	}
}

func (d *Drainer) delete(ctx context.Context, batch []Message) {
	if err := d.Queue.Delete(ctx, batch); err != nil {
		d.remark("finished messages not deleted, they come back", err)
	} else {
		d.counts.deleted.Add(int64(len(batch)))
	}
	for _, m := range batch {
		d.release(m)
	}
}
