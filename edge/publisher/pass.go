package publisher

import (
	"context"
	"errors"
	"fmt"

	"millrace/edge/outbox"
)

// maxLosses is how many attempts in a row may go unconfirmed before a pass
// ends: then it is rather the broker that is out of order than the messages.
const maxLosses = 3

var (
	errUnconfirmed = errors.New("no confirmation in time")
	errOutOfOrder  = fmt.Errorf("%d messages in a row were not confirmed", maxLosses)
)

// pass is one walk over the outbox.
type pass struct {
	*Publisher

	result Result
	// flying are the messages sent and not yet confirmed, in the order of sending.
	flying []flight
	// losses counts unconfirmed lone attempts since the last confirmation.
	losses int
}

// Once walks the outbox once: first all files that aren't held back, then those
// held back whose time has come. It fails when there is no connection or the
// broker confirms nothing; what can't be delivered stays in the outbox.
func (p *Publisher) Once(ctx context.Context) (Result, error) {
	run := &pass{Publisher: p}
	err := run.stream(ctx)
	if err == nil {
		err = run.retryHeld(ctx)
	}
	if ctx.Err() != nil {
		// Being asked to stop is no failure.
		err = nil
	}
	p.Observe(run.result)
	return run.result, err
}

func (r *pass) stream(ctx context.Context) error {
	var last outbox.Entry
	for {
		entries, err := r.Outbox.Scan(last, r.Config.Chunk)
		if err == nil {
			err = r.launchAll(ctx, entries)
		}
		if err != nil {
			r.result.Failed += len(r.drain())
			return err
		}
		if len(entries) < r.Config.Chunk || r.stopped(ctx) {
			return r.settleAll(ctx)
		}
		last = entries[len(entries)-1]
	}
}

func (r *pass) stopped(ctx context.Context) bool { return ctx.Err() != nil || r.Paused() }

func (r *pass) launchAll(ctx context.Context, entries []outbox.Entry) error {
	for _, entry := range entries {
		if r.stopped(ctx) {
			return nil
		}
		if r.held.has(entry.Name) {
			continue
		}
		if err := r.launch(ctx, entry.Name); err != nil {
			return err
		}
	}
	return nil
}

// launch sends one message once the window has room for it.
func (r *pass) launch(ctx context.Context, name string) error {
	if len(r.flying) >= r.Config.Window {
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	f, err := r.send(ctx, name)
	if f != nil {
		r.flying = append(r.flying, *f)
	}
	return err
}

// settle waits for the message that was sent first.
func (r *pass) settle(ctx context.Context) error {
	if r.await(r.flying[0]) != nil {
		return r.settleAll(ctx)
	}
	r.flying = r.flying[1:]
	return nil
}

// settleAll waits for all messages on their way. When some aren't confirmed,
// nobody knows which one is to blame, for it may have cost the others their
// connection: they are sent again, each alone.
func (r *pass) settleAll(ctx context.Context) error {
	return r.alone(ctx, r.drain())
}

// drain waits for all messages on their way and returns the names of those that
// weren't confirmed. A connection on which a confirmation is overdue is given
// up, because the broker still counts the message as unconfirmed.
func (r *pass) drain() (suspects []string) {
	overdue := false
	for _, f := range r.flying {
		if err := r.await(f); err != nil {
			suspects = append(suspects, f.name)
			overdue = overdue || errors.Is(err, errUnconfirmed)
		}
	}
	r.flying = nil
	if overdue {
		r.Transport.Disconnect()
	}
	return suspects
}

// alone sends messages one by one, so that each failure has one culprit, which
// is held back from then on.
func (r *pass) alone(ctx context.Context, names []string) error {
	for i, name := range names {
		if r.stopped(ctx) {
			r.result.Failed += len(names) - i
			return nil
		}
		if _, err := r.try(ctx, name); err != nil {
			r.result.Failed += len(names) - i - 1
			return err
		}
	}
	return nil
}

// retryHeld tries the files held back whose time has come. It ends at the first
// that fails again, so that hopeless ones cost one connection a pass.
func (r *pass) retryHeld(ctx context.Context) error {
	for _, name := range r.held.due(r.Now()) {
		if r.stopped(ctx) {
			return nil
		}
		if delivered, err := r.try(ctx, name); err != nil || !delivered {
			return err
		}
	}
	return nil
}

// try sends one message alone and holds it back when it isn't confirmed.
func (r *pass) try(ctx context.Context, name string) (delivered bool, err error) {
	f, err := r.send(ctx, name)
	if f == nil || err != nil {
		return err == nil, err
	}
	r.flying = []flight{*f}
	if len(r.drain()) == 0 {
		return true, nil
	}
	r.result.Failed++
	hold := r.held.add(name, r.Now())
	r.Log.Warn("message not confirmed, kept in the outbox",
		"file", name, "attempts", hold.attempts, "error", f.failure(), "next_attempt_after", hold.until)
	r.losses++
	if r.losses >= maxLosses {
		return false, errOutOfOrder
	}
	return false, nil
}
