package monitoring

import (
	"context"
	"fmt"
	"time"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// Spend counts one request against an owner's budget of this minute: one
// conditional increment, exact whatever the number of instances. Beyond the limit
// the error is a *monitoring.BudgetExceededError. When the SDK repeats a request
// whose answer was lost, it may count twice; it never lets one more through.
func (s Store) Spend(ctx context.Context, owner string, kind monitoring.BudgetKind, limit int64, now time.Time) error {
	exceeded := &monitoring.BudgetExceededError{Kind: kind, Limit: limit, RetryAfter: monitoring.UntilNextMinute(now)}
	if limit < 1 {
		return exceeded
	}
	err := s.Table.Update(ctx, table.Change{
		Key:     table.Key{Partition: monitoring.BudgetPK(owner), Sort: monitoring.BudgetSK(kind, now)},
		Add:     map[string]exact.Decimal{"count": exact.FromInt(1)},
		SetOnce: map[string]any{"expires_at": now.Add(monitoring.BudgetTTL).Unix()},
		Condition: &table.Condition{
			Expression: "attribute_not_exists(#count) OR #count < :limit",
			Names:      map[string]string{"#count": "count"},
			Values:     table.Item{":limit": table.Int(limit)},
		},
	}, nil)
	if isConflict(err) {
		return exceeded
	}
	if err != nil {
		return fmt.Errorf("count request against budget: %w", err)
	}
	return nil
}
