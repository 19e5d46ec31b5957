package queue_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/platform/queue"
	"millrace/storage/storagetest"
)

// BenchmarkDrain is the ceiling of the queue itself: messages received, handed
// over and deleted, with nothing done in between.
func BenchmarkDrain(b *testing.B) {
	client, url := storagetest.Queue(b)
	q := queue.Queue{Client: client, URL: url}
	const batch = 1000
	bodies := make([]string, batch)
	for i := range bodies {
		bodies[i] = "lane-0/1"
	}
	var handled int64
	for b.Loop() {
		b.StopTimer()
		require.NoError(b, q.Send(b.Context(), bodies))
		b.StartTimer()
		d := &queue.Drainer{Queue: q, Handler: &recorder{}, Logger: slog.New(slog.DiscardHandler), Settings: queue.Settings{Poll: time.Second}}
		stop, cancel := context.WithCancel(b.Context())
		finished := make(chan struct{})
		go func() {
			d.Run(b.Context(), stop)
			close(finished)
		}()
		for d.Counts().Deleted < batch {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		cancel()
		<-finished
		handled += batch
		b.StartTimer()
	}
	b.ReportMetric(float64(handled)/b.Elapsed().Seconds(), "msg/s")
}
