package table

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// collisionAttempts and collisionWait let about a second pass: collisions
	// last as long as another transaction on the same item, some milliseconds.
	collisionAttempts = 10
	collisionWait     = 5 * time.Millisecond
	maxCollisionWait  = 200 * time.Millisecond
)

// TransactRetrying is Transact that tries again, after a random pause, while
// another transaction or write works on the same items. Each attempt states the
// same conditions, so a try that was made but not acknowledged is refused by
// them like any other writer's work.
func (t Table) TransactRetrying(ctx context.Context, writes ...types.TransactWriteItem) error {
	wait := collisionWait
	for attempt := 1; ; attempt++ {
		err := t.Transact(ctx, writes...)
		if err == nil || attempt == collisionAttempts || !IsCollision(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(wait)): //nolint:gosec // jitter is no secret
		}
		wait = min(2*wait, maxCollisionWait)
	}
}

// IsCollision tells whether a write was refused only because another one worked
// on the same item at that moment.
func IsCollision(err error) bool {
	var conflict *types.TransactionConflictException
	var inProgress *types.TransactionInProgressException
	if errors.As(err, &conflict) || errors.As(err, &inProgress) {
		return true
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return false
	}
	for _, reason := range cancelled.CancellationReasons {
		if reason.Code != nil && *reason.Code == "TransactionConflict" {
			return true
		}
	}
	return false
}
