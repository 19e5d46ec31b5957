package queue

import (
	"context"
	"sync"
	"time"
)

// breaker pauses receiving after outages, longer each time until something
// succeeds again.
type breaker struct {
	min, max time.Duration

	mu    sync.Mutex
	pause time.Duration
	until time.Time
}

// trip opens the breaker and returns the pause, or 0 when it was open already:
// the many failures of one outage count once.
func (b *breaker) trip() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Before(b.until) {
		return 0
	}
	b.pause = min(max(b.pause*2, b.min), b.max)
	b.until = now.Add(b.pause)
	return b.pause
}

func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !time.Now().Before(b.until) {
		b.pause = 0
	}
}

func (b *breaker) open() bool { return b.remaining() > 0 }

func (b *breaker) remaining() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.until)
}

// wait blocks while the breaker is open; it is false when ctx ended first.
func (b *breaker) wait(ctx context.Context) bool {
	for remaining := b.remaining(); remaining > 0; remaining = b.remaining() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(remaining):
		}
	}
	return ctx.Err() == nil
}
