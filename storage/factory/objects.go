package factory

import (
	"context"
	"encoding/json"
	"fmt"

	"millrace/domain/factory"
	"millrace/storage/objects"
)

// maxObject is the greatest object that is read back, in bytes.
const maxObject = 1 << 20

// PutNew writes a document unless its key is taken, and tells whether it did:
// an object that exists is done.
func (s Store) PutNew(ctx context.Context, key string, document any) (bool, error) {
	body, err := factory.EncodeJSON(document)
	if err != nil {
		return false, err
	}
	return s.Bucket.PutIfAbsent(ctx, key, objects.JSON, body)
}

// PutSnapshot writes the state_snapshot object of a committed state.
func (s Store) PutSnapshot(ctx context.Context, committed factory.Latest) error {
	_, err := s.PutNew(ctx, factory.SnapshotKey(committed.FactoryID, committed.UpdatedAt), committed.Snapshot())
	return err
}

// PutRisk writes the risk_score object of the committed state that a
// factory_state message led to.
func (s Store) PutRisk(ctx context.Context, committed factory.Latest) error {
	state := committed.FactoryState
	key := factory.ProcessedKey(committed.FactoryID, factory.DatasetRiskScore, state.SourceTimestamp, state.MessageID)
	_, err := s.PutNew(ctx, key, factory.RiskObject(committed))
	return err
}

// Read reads the JSON document at key.
func (s Store) Read(ctx context.Context, key string, document any) error {
	body, err := s.Bucket.Get(ctx, key, maxObject)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("read object %s: %w", key, err)
	}
	return nil
}
