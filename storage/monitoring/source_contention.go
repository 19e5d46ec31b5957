package monitoring

import (
	"context"
	"math/rand/v2"
	"time"

	"millrace/storage/table"
)

// Bounds of optimistic writes: the pauses add up to about two seconds.
const (
	maxAttempts  = 40
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// contend tries a write that begins with a read until no other writer gets in
// between; after maxAttempts it gives up with ErrContended.
func contend(ctx context.Context, write func() error) error {
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		err := write()
		if err == nil || (!isConflict(err) && !table.IsCollision(err)) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
	return ErrContended
}

// pause waits a random while that grows with the attempts: writers that met once
// do not meet again at the same moment.
func pause(ctx context.Context, attempt int) error {
	longest := min(firstPause<<min(attempt, 10), longestPause)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)): //nolint:gosec // jitter is no secret
		return nil
	}
}
