package observability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// Counted is what became of a batch.
type Counted struct {
	// Signals were counted by this call; Dropped were counted before by another.
	Signals, Dropped int
	// Attempts are the transactions that were tried.
	Attempts int
}

// ErrUncountable marks a batch that DynamoDB refuses for what it says: a sum
// would not fit into 38 digits. Nothing of it is counted.
var ErrUncountable = errors.New("counters can't hold the sums exactly")

const (
	// conflictAttempts and the waits let about 20 s pass: conflicts last as long as
	// other transactions on the same aggregates.
	conflictAttempts = 40
	conflictWait     = 10 * time.Millisecond
	maxConflictWait  = time.Second
)

// Count adds a batch to its aggregates in one transaction: each signal's entry
// leaves the index of pending signals on the condition that it is still there,
// and each aggregate gets the sums. Either all of it happens or nothing, so that
// a signal counts once whatever crashes and however often it is tried. Signals
// found counted are dropped and the sums made anew.
func (s Store) Count(ctx context.Context, b observability.Batch) (Counted, error) {
	var done Counted
	wait := conflictWait
	for len(b.Signals) > 0 {
		done.Attempts++
		gone, err := s.tryCount(ctx, b)
		switch {
		case err != nil:
			return done, err
		case gone == nil:
			done.Signals = len(b.Signals)
			return done, nil
		case len(gone) > 0:
			done.Dropped += len(gone)
			b = b.Without(gone)
			continue
		case done.Attempts == conflictAttempts:
			return done, fmt.Errorf("count %d signals of %s: %w", len(b.Signals), b.AppID, errContended)
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(rand.N(wait)): //nolint:gosec // jitter is no secret
		}
		wait = min(2*wait, maxConflictWait)
	}
	return done, nil
}

var errContended = errors.New("other transactions kept working on the same items")

// tryCount makes one transaction. It returns nil when it was made, else the
// places of the signals that are not pending any more: none of them when other
// transactions were in the way.
func (s Store) tryCount(ctx context.Context, b observability.Batch) (gone map[int]bool, err error) {
	writes, err := s.countWrites(b)
	if err != nil {
		return nil, err
	}
	_, err = s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err == nil {
		return nil, nil
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		if table.IsCollision(err) {
			return map[int]bool{}, nil
		}
		return nil, fmt.Errorf("count %d signals of %s: %w", len(b.Signals), b.AppID, err)
	}
	gone = map[int]bool{}
	for i, reason := range cancelled.CancellationReasons {
		switch code := aws.ToString(reason.Code); code {
		case "ConditionalCheckFailed":
			gone[i] = true
		case "ValidationError", "ItemCollectionSizeLimitExceeded":
			return nil, fmt.Errorf("count %d signals of %s: %s: %w", len(b.Signals), b.AppID, aws.ToString(reason.Message), ErrUncountable)
		}
	}
	return gone, nil
}

// countWrites are the signals' writes in the order of the batch, then those of
// the aggregates.
func (s Store) countWrites(b observability.Batch) ([]types.TransactWriteItem, error) {
	additions := b.Additions()
	writes := make([]types.TransactWriteItem, 0, len(b.Signals)+len(additions))
	for _, signal := range b.Signals {
		writes = append(writes, types.TransactWriteItem{Update: &types.Update{
			TableName: &s.Table.Name, Key: key(signalKey(signal)),
			UpdateExpression: aws.String("REMOVE GSI2PK, GSI2SK"), ConditionExpression: aws.String("attribute_exists(GSI2PK)"),
		}})
	}
	for _, addition := range additions {
		write, err := s.Table.UpdateWrite(change(b.AppID, addition))
		if err != nil {
			return nil, fmt.Errorf("count signals of %s: %w: %w", b.AppID, ErrUncountable, err)
		}
		writes = append(writes, write)
	}
	return writes, nil
}

func change(appID string, a observability.Addition) table.Change {
	pk, sk := a.Period.GSI1(appID)
	c := table.Change{
		Key: table.Key{Partition: observability.AppPK(appID), Sort: a.Period.SK()},
		Set: map[string]any{"GSI1PK": pk, "GSI1SK": sk}, Add: a.Counters,
	}
	if at, ends := a.Period.ExpiresAt(); ends {
		c.Set[expires] = at.Unix()
	}
	return c
}
