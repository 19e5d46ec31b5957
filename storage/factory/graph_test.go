package factory

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/storage/storagetest"
)

var bucket = time.Date(2026, 5, 20, 23, 55, 0, 0, time.UTC)

func newStore(t *testing.T) Store {
	return Store{Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), HistoryTTL: 2 * time.Hour}
}

// graphOf is the aggregate of a bucket with n messages.
func graphOf(start time.Time, n int) factory.Graph {
	a := factory.NewAccumulator("factory-x", start, factory.DefaultGraphRules())
	for i := range n {
		value := exact.FromInt(int64(20 + i))
		a.AddFactoryState(&factory.FactoryState{
			MessageID: "m" + string(rune('a'+i)), SourceTimestamp: start.Add(time.Duration(i) * time.Second), TemperatureCelsius: &value,
		})
	}
	return a.Graph()
}

// requireSame compares documents by what is stored of them, byte for byte.
func requireSame(t *testing.T, want, got any) {
	t.Helper()
	wanted, err := factory.EncodeJSON(want)
	require.NoError(t, err)
	gotten, err := factory.EncodeJSON(got)
	require.NoError(t, err)
	require.Equal(t, string(wanted), string(gotten))
}

func TestAFullerGraphIsNeverReplaced(t *testing.T) {
	s := newStore(t)
	for _, step := range []struct{ put, stands int64 }{{3, 3}, {2, 3}, {3, 3}, {5, 5}, {0, 5}} {
		standing, err := s.PutGraph(t.Context(), graphOf(bucket, int(step.put)))
		require.NoError(t, err)
		requireSame(t, graphOf(bucket, int(step.stands)), standing)
		stored, err := s.Graph(t.Context(), "factory-x", bucket)
		require.NoError(t, err)
		requireSame(t, graphOf(bucket, int(step.stands)), *stored)
	}
}

func TestOfManyGraphsTheFullestStands(t *testing.T) {
	s := newStore(t)
	var puts sync.WaitGroup
	for n := range 20 {
		puts.Go(func() {
			_, err := s.PutGraph(t.Context(), graphOf(bucket, n))
			require.NoError(t, err)
		})
	}
	puts.Wait()
	stored, err := s.Graph(t.Context(), "factory-x", bucket)
	require.NoError(t, err)
	require.EqualValues(t, 19, stored.Quality.SourceCount)
}

func TestGraphsAreReadByRange(t *testing.T) {
	s := newStore(t)
	for i := range 4 {
		_, err := s.PutGraph(t.Context(), graphOf(bucket.Add(time.Duration(i)*factory.BucketLength), i))
		require.NoError(t, err)
	}
	var starts []string
	for graph, err := range s.Graphs(t.Context(), "factory-x", bucket, bucket.Add(2*factory.BucketLength)) {
		require.NoError(t, err)
		starts = append(starts, graph.BucketStart.Format(time.RFC3339))
	}
	require.Equal(t, []string{"2026-05-20T23:55:00Z", "2026-05-21T00:00:00Z", "2026-05-21T00:05:00Z"}, starts)
	missing, err := s.Graph(t.Context(), "factory-y", bucket)
	require.NoError(t, err)
	require.Nil(t, missing)
}

func TestTheArchiveIsTheItemWithoutItsKeys(t *testing.T) {
	s := newStore(t)
	none, err := s.Archive(t.Context(), "factory-x", bucket)
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, s.PutArchive(t.Context(), graphOf(bucket, 2)))
	body, err := s.Bucket.Get(t.Context(), "processed_agg/factory-x/metrics_5m/yyyy=2026/mm=05/dd=20/hh=23/mm=55.json", maxObject)
	require.NoError(t, err)
	require.Contains(t, string(body), `"dynamodb_sk":"GRAPH#5M#2026-05-20T23:55:00Z"`)
	require.NotContains(t, string(body), `"ttl"`)
	archive, err := s.Archive(t.Context(), "factory-x", bucket)
	require.NoError(t, err)
	requireSame(t, graphOf(bucket, 2).Archive(), *archive)
}

func TestDirtyMarksAddUpAndAreClearedOnlyAsRead(t *testing.T) {
	s, now := newStore(t), bucket.Add(time.Hour)
	mark := func(at time.Time) { require.NoError(t, s.MarkDirty(t.Context(), "factory-x", at, now)) }
	mark(bucket)
	mark(bucket.Add(4 * time.Minute))
	mark(bucket.Add(5 * time.Minute))
	marks, err := s.DirtyGraphs(t.Context(), now)
	require.NoError(t, err)
	require.Equal(t, []Dirty{
		{FactoryID: "factory-x", Start: bucket.Add(5 * time.Minute), Rev: 1, MarkedAt: now},
		{FactoryID: "factory-x", Start: bucket, Rev: 2, MarkedAt: now},
	}, marks)

	mark(bucket.Add(time.Minute))
	cleared, err := s.ClearDirty(t.Context(), marks[1])
	require.NoError(t, err)
	require.False(t, cleared, "a mark made since it was read stays")
	cleared, err = s.ClearDirty(t.Context(), marks[0])
	require.NoError(t, err)
	require.True(t, cleared)

	marks, err = s.DirtyGraphs(t.Context(), now)
	require.NoError(t, err)
	require.Len(t, marks, 1)
	require.EqualValues(t, 3, marks[0].Rev)
	marks, err = s.DirtyGraphs(t.Context(), now.Add(dirtyTTL+time.Second))
	require.NoError(t, err)
	require.Empty(t, marks, "expired marks don't count, though they may still be there")
}

func TestHistoryIsReadBetweenItsKeys(t *testing.T) {
	s := newStore(t)
	var latest *factory.Latest
	for i := range 5 {
		next := factory.Latest{PK: factory.PK("factory-x"), SK: factory.LatestSK, FactoryID: "factory-x", Rev: int64(i + 1), UpdatedAt: factory.MillisOf(bucket.Add(time.Duration(i) * time.Minute))}
		require.NoError(t, s.Commit(t.Context(), next))
		latest = &next
	}
	require.NotNil(t, latest)
	var revs []int64
	from, to := factory.HistorySK(factory.MillisOf(bucket.Add(time.Minute))), factory.HistorySK(factory.MillisOf(bucket.Add(3*time.Minute)))
	for row, err := range s.History(t.Context(), "factory-x", from, to) {
		require.NoError(t, err)
		require.NotZero(t, row.TTL)
		revs = append(revs, row.Rev)
	}
	require.Equal(t, []int64{2, 3, 4}, revs)
}
