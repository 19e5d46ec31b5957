package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// FactoryLock lets one change at a time touch a factory: the item
// LOCK#FACTORY#{factory_id}/LOCK. An item whose time is over is nobody's; DynamoDB
// does not expire it, for its clock is late.
type FactoryLock struct {
	FactoryID string    `json:"factory_id"`
	Owner     string    `json:"owner"`
	ExpiresAt time.Time `json:"-"`
	// Expires is ExpiresAt in the fixed width in which texts compare as times do.
	Expires string `json:"expires_at"`
}

func lockKey(factoryID string) table.Key {
	return table.Key{Partition: "LOCK#FACTORY#" + factoryID, Sort: "LOCK"}
}

// LockFactory takes the lock of a factory for an owner, or makes it last longer
// for the owner who has it. Where another owner has it, it tells so and gives
// their lock.
func (s Store) LockFactory(ctx context.Context, factoryID, owner string, lease time.Duration, now time.Time) (FactoryLock, bool, error) {
	var lock FactoryLock
	err := s.Table.Update(ctx, table.Change{
		Key: lockKey(factoryID),
		Set: map[string]any{"owner": owner, "expires_at": artifact.Timestamp(now.Add(lease)), "updated_at": now},
		SetOnce: map[string]any{
			"entity": "factory_lock", "version": 1, "schema_version": schemaVersion, "factory_id": factoryID, "created_at": now,
		},
		Condition: &table.Condition{
			Expression: "attribute_not_exists(#owner) OR #owner = :owner OR #expires <= :now",
			Names:      map[string]string{"#owner": "owner", "#expires": "expires_at"},
			Values:     table.Item{":owner": table.String(owner), ":now": table.String(artifact.Timestamp(now))},
		},
	}, &lock)
	held, refused := errors.AsType[*table.ConflictError](err)
	if refused {
		err = table.Decode(held.Current, &lock)
	}
	if err != nil {
		return FactoryLock{}, false, fmt.Errorf("lock factory %s: %w", factoryID, err)
	}
	if lock.ExpiresAt, err = time.Parse(time.RFC3339Nano, lock.Expires); err != nil {
		return FactoryLock{}, false, fmt.Errorf("lock of factory %s: %w", factoryID, err)
	}
	return lock, !refused, nil
}

// UnlockFactory gives a factory free that the owner still has; a lock that
// somebody else has by now stays theirs.
func (s Store) UnlockFactory(ctx context.Context, factoryID, owner string) error {
	err := s.Table.Delete(ctx, lockKey(factoryID), &table.Condition{
		Expression: "attribute_not_exists(#owner) OR #owner = :owner", Names: map[string]string{"#owner": "owner"},
		Values: table.Item{":owner": table.String(owner)},
	})
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return nil
	}
	if err != nil {
		return fmt.Errorf("unlock factory %s: %w", factoryID, err)
	}
	return nil
}
