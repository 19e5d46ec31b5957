package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const benchmarkMetrics = `"contextUtilization":12.5,"requests":1,"inputTokens":1200,"cost":0.25`

// BenchmarkPutSource sends observations of 16 sources at once, over HTTP and into
// the store.
func BenchmarkPutSource(b *testing.B) {
	api := newSourceAPI(b)
	var senders atomic.Int64
	measure(b, api, func() func() reply {
		path, n := fmt.Sprint("/v1/sources/s", senders.Add(1)), 0
		return func() reply {
			n++
			at := api.now.Add(-time.Hour).Add(time.Duration(n) * time.Millisecond).Format(time.RFC3339Nano)
			return api.send(b, "PUT", path, agentBody(at, benchmarkMetrics))
		}
	})
}

// BenchmarkGetSource reads one source from 16 clients at once.
func BenchmarkGetSource(b *testing.B) {
	api := newSourceAPI(b)
	api.ok(b, 201, "PUT", "/v1/sources/a", agentBody("2026-11-30T12:00:00Z", benchmarkMetrics))
	measure(b, api, func() func() reply {
		return func() reply { return api.send(b, "GET", "/v1/sources/a", "") }
	})
}

// measure runs clients side by side and reports what a request costs.
func measure(b *testing.B, api *sourceAPI, client func() func() reply) {
	b.Helper()
	var lock sync.Mutex
	var all []time.Duration
	api.calls.Take()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		request, took := client(), []time.Duration{}
		for pb.Next() {
			started := time.Now()
			if got := request(); got.Code > 201 {
				b.Error(got.Text)
				return
			}
			took = append(took, time.Since(started))
		}
		lock.Lock()
		defer lock.Unlock()
		all = append(all, took...)
	})
	b.StopTimer()
	calls := 0
	for _, count := range api.calls.Take() {
		calls += count
	}
	slices.Sort(all)
	b.ReportMetric(float64(calls)/float64(len(all)), "calls/op")
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkPutSourceAlone is the gateway's own part of an observation: the store
// answers at once.
func BenchmarkPutSourceAlone(b *testing.B) {
	api := decodingAPI(b)
	body := agentBody("2026-11-30T12:00:00Z", benchmarkMetrics)
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPut, "/v1/sources/a", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer mr_"+strings.Repeat("A", 43))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			b.Fatal(w.Body)
		}
	}
}
