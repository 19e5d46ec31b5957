package monitoring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// ErrMemoryNotFound means that the owner keeps no value there.
var ErrMemoryNotFound = errors.New("no such memory")

func memoryKey(owner string, a monitoring.MemoryAddress) table.Key {
	return table.Key{Partition: monitoring.OwnerPK(owner), Sort: a.SK()}
}

// Memory reads a value consistently; without one the error is ErrMemoryNotFound.
func (s Store) Memory(ctx context.Context, owner string, a monitoring.MemoryAddress) (monitoring.Memory, error) {
	var m monitoring.Memory
	found, err := s.Table.Get(ctx, memoryKey(owner, a), &m)
	if err == nil && !found {
		err = ErrMemoryNotFound
	}
	return m, err
}

// PutMemory writes a value in one request: createdAt stays that of the first
// write, updatedAt becomes now. Of several writers at once the last one wins.
func (s Store) PutMemory(ctx context.Context, owner string, a monitoring.MemoryAddress, value string, now time.Time) (monitoring.Memory, error) {
	now = now.UTC()
	var m monitoring.Memory
	err := s.Table.Update(ctx, table.Change{
		Key:     memoryKey(owner, a),
		Set:     map[string]any{"token": owner, "project": a.Project, "key": a.Key, "value": value, "updatedAt": now},
		SetOnce: map[string]any{"createdAt": now},
	}, &m)
	if err != nil {
		return monitoring.Memory{}, fmt.Errorf("put memory: %w", err)
	}
	return m, nil
}

// DeleteMemory removes a value. Removing what is not there is no error.
func (s Store) DeleteMemory(ctx context.Context, owner string, a monitoring.MemoryAddress) error {
	return s.Table.Delete(ctx, memoryKey(owner, a), nil)
}
