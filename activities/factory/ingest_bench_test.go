package factory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
)

// BenchmarkIngest is one factory_state message from its envelope to its last
// object, one after the other: what one lane can do.
func BenchmarkIngest(b *testing.B) {
	i := Ingester{
		Store: storage.Store{Table: storagetest.Table(b, storagetest.Factory), Bucket: storagetest.Bucket(b), HistoryTTL: 2 * time.Hour},
		Now:   time.Now,
	}
	start := time.Now().Add(-time.Hour)
	var known *factory.Latest
	for n := 0; b.Loop(); n++ {
		e := messageOf(factory.SourceFactoryState, start.Add(time.Duration(n)*time.Millisecond))
		result, err := i.Ingest(b.Context(), e, known)
		require.NoError(b, err)
		require.NoError(b, i.Project(b.Context(), result))
		known = result.Committed
	}
}
