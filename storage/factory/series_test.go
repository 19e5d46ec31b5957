package factory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
)

func TestSeriesAreTheNewestOfTheirRangeOldestFirst(t *testing.T) {
	s := storage.Store{Table: storagetest.Table(t, storagetest.Factory)}
	start := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		at := start.Add(time.Duration(i) * factory.BucketLength)
		row := factory.Latest{PK: factory.PK("factory-a"), FactoryID: "factory-a", Rev: int64(i), UpdatedAt: factory.MillisOf(at)}
		require.NoError(t, s.Table.Put(t.Context(), row.History(time.Hour), nil))
		require.NoError(t, s.Table.Put(t.Context(), factory.Graph{PK: row.PK, SK: factory.GraphSK(at), FactoryID: "factory-a", BucketStart: at}, nil))
	}
	from, to := start.Add(factory.BucketLength), start.Add(4*factory.BucketLength)

	rows, err := s.NewestHistory(t.Context(), "factory-a", factory.HistorySK(factory.MillisOf(from)), factory.HistorySK(factory.MillisOf(to)), 2)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []int64{3, 4}, []int64{rows[0].Rev, rows[1].Rev})
	rows, err = s.NewestHistory(t.Context(), "factory-a", factory.HistorySK(factory.MillisOf(from)), factory.HistorySK(factory.MillisOf(to)), 0)
	require.NoError(t, err)
	require.Len(t, rows, 4)

	graphs, err := s.GraphSeries(t.Context(), "factory-a", factory.GraphSK(from), factory.GraphSK(to))
	require.NoError(t, err)
	require.Len(t, graphs, 4)
	require.Equal(t, from, graphs[0].BucketStart)
}
