package bridge

import (
	"context"
	"time"
)

// Retry is how an action is tried. The publisher waits meanwhile, so all of it, twice, must fit
// into the time that a publisher waits for its PUBACK (10 s).
type Retry struct {
	// Attempts is the number of tries; at least one is made.
	Attempts int
	// Timeout bounds one try.
	Timeout time.Duration
	// Backoff is the pause after the first try; it doubles.
	Backoff time.Duration
}

// DefaultRetry gives up on an action after at most 4.8 s.
var DefaultRetry = Retry{Attempts: 3, Timeout: 1500 * time.Millisecond, Backoff: 100 * time.Millisecond}

func (r Retry) do(ctx context.Context, f func(context.Context) error) error {
	pause := r.Backoff
	for attempt := 1; ; attempt++ {
		err := r.once(ctx, f)
		if err == nil || attempt >= r.Attempts || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (r Retry) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return f(ctx)
}
