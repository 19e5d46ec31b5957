package alert

import (
	"context"
	"encoding/json"

	"millrace/domain/factory"
	"millrace/storage/table"
)

// FactoryLatest is the current state of a factory, nil when it was never seen.
func (s Store) FactoryLatest(ctx context.Context, factoryID string) (*factory.Latest, error) {
	var latest factory.Latest
	found, err := s.Status.Get(ctx, table.Key{Partition: factory.PK(factoryID), Sort: factory.LatestSK}, &latest)
	if err != nil || !found {
		return nil, err
	}
	return &latest, nil
}

// cloudPK is the partition of the cloud infrastructure's items.
const cloudPK = "CLOUD#infra"

// CloudLatest is the current state of the cloud infrastructure as JSON, nil when
// it was never collected.
func (s Store) CloudLatest(ctx context.Context) (json.RawMessage, error) {
	var body json.RawMessage
	found, err := s.Status.Get(ctx, table.Key{Partition: cloudPK, Sort: "LATEST"}, &body)
	if err != nil || !found {
		return nil, err
	}
	return body, nil
}
