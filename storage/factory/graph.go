package factory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"millrace/domain/factory"
	"millrace/storage/objects"
	"millrace/storage/table"
)

// Graphs walks the aggregates of a factory whose buckets start from from to to,
// both inclusive, oldest first.
func (s Store) Graphs(ctx context.Context, factoryID string, from, to time.Time) iter.Seq2[factory.Graph, error] {
	return documents[factory.Graph](s.Table.Query(ctx, table.Range{
		Partition: factory.PK(factoryID), From: factory.GraphSK(from), To: factory.GraphSK(to), Consistent: true,
	}))
}

// Graph reads the aggregate of one bucket, nil when there is none.
func (s Store) Graph(ctx context.Context, factoryID string, start time.Time) (*factory.Graph, error) {
	var graph factory.Graph
	key := table.Key{Partition: factory.PK(factoryID), Sort: factory.GraphSK(start)}
	found, err := s.Table.Get(ctx, key, &graph)
	if err != nil || !found {
		return nil, err
	}
	return &graph, nil
}

// PutGraph writes an aggregate unless the stored one of the same bucket counts
// more messages, and returns the one that stands.
func (s Store) PutGraph(ctx context.Context, graph factory.Graph) (factory.Graph, error) {
	err := s.Table.Put(ctx, graph, &table.Condition{
		Expression: "attribute_not_exists(#pk) OR #quality.#count <= :count",
		Names:      map[string]string{"#pk": s.Table.PartitionKey, "#quality": "quality", "#count": "source_count"},
		Values:     table.Item{":count": table.Int(graph.Quality.SourceCount)},
	})
	var fuller *table.ConflictError
	if !errors.As(err, &fuller) {
		return graph, err
	}
	var standing factory.Graph
	if err := table.Decode(fuller.Current, &standing); err != nil {
		return factory.Graph{}, err
	}
	return standing, nil
}

// PutArchive writes the long-lived copy of an aggregate, replacing what is there.
func (s Store) PutArchive(ctx context.Context, graph factory.Graph) error {
	body, err := factory.EncodeJSON(graph.Archive())
	if err != nil {
		return err
	}
	return s.Bucket.Put(ctx, factory.AggregateKey(graph.FactoryID, graph.BucketStart), objects.JSON, body)
}

// Archive reads the long-lived copy of an aggregate, nil when there is none.
func (s Store) Archive(ctx context.Context, factoryID string, start time.Time) (*factory.Graph, error) {
	var graph factory.Graph
	err := s.Read(ctx, factory.AggregateKey(factoryID, start), &graph)
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read aggregate: %w", err)
	}
	return &graph, nil
}
