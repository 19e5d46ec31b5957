package factory

import (
	"context"
	"slices"

	"millrace/domain/factory"
	"millrace/storage/table"
)

// seriesPage is how many history rows one request reads.
const seriesPage = 300

// NewestHistory reads the newest HISTORY#STATE rows of a factory between two
// sort keys, both inclusive: at most limit of them (0 for all), oldest first.
func (s Store) NewestHistory(ctx context.Context, factoryID, fromSK, toSK string, limit int) ([]factory.Latest, error) {
	page := seriesPage
	if limit > 0 {
		page = min(page, limit)
	}
	rows, err := collect[factory.Latest](ctx, s.Table, table.Range{
		Partition: factory.PK(factoryID), From: fromSK, To: toSK, Descending: true, Page: int32(page), //nolint:gosec // at most 300
	}, limit)
	slices.Reverse(rows)
	return rows, err
}

// GraphSeries reads the aggregates of a factory between two sort keys, both
// inclusive, oldest first.
func (s Store) GraphSeries(ctx context.Context, factoryID, fromSK, toSK string) ([]factory.Graph, error) {
	return collect[factory.Graph](ctx, s.Table, table.Range{Partition: factory.PK(factoryID), From: fromSK, To: toSK}, 0)
}

func collect[T any](ctx context.Context, t table.Table, r table.Range, limit int) ([]T, error) {
	var all []T
	for document, err := range documents[T](t.Query(ctx, r)) {
		if err != nil {
			return nil, err
		}
		if all = append(all, document); len(all) == limit {
			break
		}
	}
	return all, nil
}
