package factory

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	"millrace/storage/storagetest"
)

// watch has the world's stores counted.
func (w *world) watch() *storagetest.Calls {
	calls := new(storagetest.Calls)
	cfg := calls.Watch(storagetest.Config(w.t))
	w.store.Table.Client = dynamodb.NewFromConfig(cfg)
	w.store.Bucket.Client = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	return calls
}

// TestCallsPerMessage asserts what a message costs on AWS. The consumer knows the
// factory's state from the message before, so nothing is read. A factory_state
// message needs one transaction (LATEST and its history must agree) and one
// object for each of the three datasets of the data lifecycle.
func TestCallsPerMessage(t *testing.T) {
	cases := map[factory.SourceType]map[string]int{
		factory.SourceFactoryState:  {"TransactWriteItems": 1, "PutObject": 3},
		factory.SourceInfraState:    {"TransactWriteItems": 1, "PutObject": 2},
		factory.SourceImageSnapshot: {"PutItem": 1, "PutObject": 1},
	}
	for source, want := range cases {
		t.Run(string(source), func(t *testing.T) {
			w := newWorld(t)
			known := w.take(messageOf(source, w.now.Add(-4*time.Second))).Committed
			calls := w.watch()
			result, err := w.ingester().Ingest(t.Context(), messageOf(source, w.now.Add(-time.Second)), known)
			require.NoError(t, err)
			require.NoError(t, w.ingester().Project(t.Context(), result))
			require.Equal(t, want, calls.Take())
		})
	}
}

func TestCallsOfWhatIsNotApplied(t *testing.T) {
	w := newWorld(t)
	e := messageOf(factory.SourceFactoryState, w.now.Add(-4*time.Second))
	known := w.take(e).Committed
	calls := w.watch()

	_, err := w.ingester().Ingest(t.Context(), e, known)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"PutObject": 2}, calls.Take(), "a duplicate")

	_, err = w.ingester().Ingest(t.Context(), messageOf(factory.SourceFactoryState, w.now.Add(-time.Hour)), known)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"GetObject": 1, "UpdateItem": 1, "PutObject": 1}, calls.Take(), "a late message")

	_, err = w.ingester().Ingest(t.Context(), Envelope{Body: []byte("?"), Topic: "aegis/factory-x/factory_state"}, known)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"PutObject": 1}, calls.Take(), "poison")
}
