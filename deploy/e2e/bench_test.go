package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	"millrace/storage/table"
)

// BenchmarkEndToEnd measures broker to LATEST: 80 messages a second for half a
// minute, over 1, 10 and 100 factories, then a burst of 150 a second. Latency is
// from the source timestamp to the state's updated_at.
func BenchmarkEndToEnd(b *testing.B) {
	for _, c := range []struct{ factories, rate int }{{1, 80}, {10, 80}, {100, 80}, {10, 150}} {
		b.Run(fmt.Sprintf("factories=%d/rate=%d", c.factories, c.rate), func(b *testing.B) {
			s := newStack(b)
			devices := make([]*device, c.factories)
			for n := range devices {
				devices[n] = newDevice(b, factoryID(n))
			}
			cpu := s.metric("process_cpu_seconds_total")
			b.ResetTimer()
			for b.Loop() {
				begin := time.Now()
				published := flood(devices, c.rate, 30*time.Second)
				s.awaitOutcomes(published)
				b.ReportMetric(float64(published)/time.Since(begin).Seconds(), "msg/s")
				latencies := s.latencies(devices, begin)
				b.ReportMetric(float64(quantile(latencies, 0.50).Milliseconds()), "p50-ms")
				b.ReportMetric(float64(quantile(latencies, 0.99).Milliseconds()), "p99-ms")
				b.ReportMetric((s.metric("process_cpu_seconds_total")-cpu)*1000/float64(published), "worker-cpu-ms/msg")
				b.ReportMetric(s.metric("process_resident_memory_bytes")/1e6, "worker-MB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// awaitOutcomes waits until the worker has dealt with as many messages.
func (s *stack) awaitOutcomes(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return int(s.metric("millrace_ingest_messages_total")) >= n }, 3*time.Minute, 100*time.Millisecond)
}

// latencies are how long each message took from its source to its state.
func (s *stack) latencies(devices []*device, since time.Time) []time.Duration {
	s.t.Helper()
	var latencies []time.Duration
	for _, d := range devices {
		for item, err := range s.store.Table.Query(s.t.Context(), table.Range{
			Partition: factory.PK(d.factory), From: factory.HistorySK(factory.MillisOf(since)), To: factory.HistoryPrefix + "~",
		}) {
			require.NoError(s.t, err)
			var row factory.Latest
			require.NoError(s.t, table.Decode(item, &row))
			latencies = append(latencies, row.UpdatedAt.Sub(row.FactoryState.SourceTimestamp))
		}
	}
	slices.Sort(latencies)
	return latencies
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
