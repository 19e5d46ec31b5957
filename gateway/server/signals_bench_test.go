package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/observability"
	"millrace/gateway/server"
	"millrace/storage/table"
)

// benchSignal is a typical signal as a client sends it.
func benchSignal(app string, n int, at time.Time) string {
	return fmt.Sprintf(`{"signal_id":"0b5f2c1e-7f7e-5a53-9d0a-%012d","app_id":%q,"request_id":"request-%d","timestamp":%q,"protocol":"aigp","type":"request","name":"chat","model":"model-x",`+
		`"duration_ms":%d,"input_tokens":1200,"cached_input_tokens":300,"output_tokens":80,"cost_usd":0.0247,"attributes":{"region":"ap-northeast-2"}}`, n, app, n/4, at.Format(time.RFC3339Nano), n%3000)
}

// BenchmarkIngest sends batches of 500 signals by two clients, over HTTP and into
// the stand-in, and compares with what the stand-in itself takes: unconditional
// PutItems of the same items by as many writers.
func BenchmarkIngest(b *testing.B) {
	store := newSignalStore(b)
	s, err := server.New(server.Config{Tokens: anyToken{}}, server.Signals(store, observability.Prices{}, prometheus.NewRegistry(), time.Now))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close(context.Background())) })
	const clients, batch = 2, 500
	now := time.Now().UTC()
	ceiling := putRate(b, store.Table, clients*server.SignalConcurrency, now)
	var round atomic.Int64
	var sent atomic.Int64
	b.SetParallelism(1)
	for b.Loop() {
		var work sync.WaitGroup
		for range clients {
			work.Go(func() {
				app := fmt.Sprintf("app-%d", round.Add(1))
				signals := make([]string, batch)
				for n := range signals {
					signals[n] = benchSignal(app, n, now)
				}
				request := httptest.NewRequest(http.MethodPost, "/v1/signals", strings.NewReader("["+strings.Join(signals, ",")+"]"))
				request.Header.Set("Authorization", "Bearer "+someToken)
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				s.ServeHTTP(recorder, request)
				if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), `"accepted":500`) {
					b.Error(recorder.Code, recorder.Body.String()[:200])
				}
				sent.Add(batch)
			})
		}
		work.Wait()
	}
	rate := float64(sent.Load()) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "signals/s")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(100*rate/ceiling, "%-of-ceiling")
}

// putRate is how many PutItems of signals a second the table takes.
func putRate(b *testing.B, t table.Table, writers int, now time.Time) float64 {
	b.Helper()
	const each = 400
	began := time.Now()
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for n := range each {
				id := fmt.Sprintf("0b5f2c1e-7f7e-5a53-%04d-%012d", w, n)
				stamp := observability.Stamp(now)
				err := t.Put(context.Background(), map[string]any{
					"PK": "APP#ceiling", "SK": "SIG#" + stamp + "#" + id, "GSI1PK": fmt.Sprintf("REQ#c-%d-%d", w, n/4), "GSI1SK": "SIG#" + stamp + "#" + id,
					"GSI2PK": "PENDING#none", "GSI2SK": stamp + "#" + id, "signal_id": id, "app_id": "ceiling", "timestamp": stamp, "received_at": stamp,
					"protocol": "aigp", "type": "request", "status": "ok", "request_id": fmt.Sprintf("c-%d-%d", w, n/4), "name": "chat", "model": "model-x",
					"duration_ms": n % 3000, "input_tokens": 1200, "cached_input_tokens": 300, "output_tokens": 80, "total_tokens": 1580, "expires_at": now.Unix() + 86400,
					"cost_source": "client", "attributes": map[string]string{"region": "ap-northeast-2"},
				}, nil)
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	return float64(writers*each) / time.Since(began).Seconds()
}
