package factory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/factory"
)

// benchmarkReplay replays 500 messages of which nothing was processed yet, in a
// dry run or for good, and reports messages per second.
func benchmarkReplay(b *testing.B, dryRun bool) {
	const messages = 500
	start := at("07:00:00")
	request := today()
	request.DryRun = dryRun
	for b.Loop() {
		b.StopTimer()
		past := &pastAPI{received: make(map[string]time.Time)}
		bucket := storagetest.Bucket(b)
		past.API, bucket.Client = bucket.Client, past
		for i := range messages {
			sent := start.Add(time.Duration(i) * 3 * time.Second)
			e := messageOf(factory.SourceFactoryState, sent)
			require.NoError(b, bucket.Put(b.Context(), e.rawKey(), objects.JSON, e.Body))
			past.received[e.rawKey()] = sent.Add(time.Second)
		}
		r := Replayer{
			Store: storage.Store{Table: storagetest.Table(b, storagetest.Factory), Bucket: bucket, HistoryTTL: 2 * time.Hour},
			Now:   newClock, Logger: quiet(),
		}
		b.StartTimer()
		result, err := r.replay(b.Context(), workflows.ReplayChunk{
			Request: request, StartedAt: newClock(), Day: at("00:00:00"), Limit: 2 * messages,
		}, attempt{record: func(replayProgress) {}})
		require.NoError(b, err)
		require.Equal(b, int64(messages), result.Counts.Processed)
	}
	b.ReportMetric(float64(messages*b.N)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkReplayDryRun(b *testing.B) { benchmarkReplay(b, true) }

func BenchmarkReplay(b *testing.B) { benchmarkReplay(b, false) }
