package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	monitoringstore "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

// timedAPI adds the time that requests to DynamoDB take to the stopwatch of the
// HTTP request that they belong to.
type timedAPI struct{ table.API }

type stopwatchKey struct{}

func timed[O any](ctx context.Context, call func() (O, error)) (O, error) {
	started := time.Now()
	out, err := call()
	if watch, ok := ctx.Value(stopwatchKey{}).(*atomic.Int64); ok {
		watch.Add(int64(time.Since(started)))
	}
	return out, err
}

func (a timedAPI) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return timed(ctx, func() (*dynamodb.GetItemOutput, error) { return a.API.GetItem(ctx, in, o...) })
}

func (a timedAPI) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return timed(ctx, func() (*dynamodb.UpdateItemOutput, error) { return a.API.UpdateItem(ctx, in, o...) })
}

// latencies are the durations of requests, in all and without the store's part.
type latencies struct {
	lock        sync.Mutex
	whole, ours []time.Duration
}

func (l *latencies) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var store atomic.Int64
		started := time.Now()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stopwatchKey{}, &store)))
		whole := time.Since(started)
		l.lock.Lock()
		defer l.lock.Unlock()
		l.whole, l.ours = append(l.whole, whole), append(l.ours, whole-time.Duration(store.Load()))
	})
}

func (l *latencies) report(b *testing.B) {
	for name, all := range map[string][]time.Duration{"": l.whole, "own-": l.ours} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"p99-ms")
	}
}

// BenchmarkAuthenticatedRead reads a token's metadata over HTTP: a lookup, a
// budget increment and one read. own-p99-ms is without the store's latency.
func BenchmarkAuthenticatedRead(b *testing.B) {
	keeper := storagetest.Table(b, storagetest.Monitoring)
	calls := &countingAPI{API: timedAPI{keeper.Client}}
	keeper.Client = calls
	store := monitoringstore.Store{Table: keeper}
	ring := newRing(b, "k1")
	s, err := server.New(server.Config{
		Tokens: store, Ring: ring, Limits: monitoring.Limits{Read: 1 << 40, Write: 1, TokenCreate: 1},
	}, server.Tokens(store, ring, time.Now))
	require.NoError(b, err)
	var seen latencies
	web := httptest.NewServer(seen.measure(s))
	defer web.Close()
	f := &fixture{t: b, store: store, calls: calls, ring: ring, url: web.URL, server: s}
	token, plaintext := f.issue("user:kim", monitoring.ScopeTokens)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

	before := calls.total()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, web.URL+"/v1/tokens/"+token.ID, http.NoBody)
			request.Header.Set("Authorization", "Bearer "+plaintext)
			response, err := client.Do(request)
			if err != nil || response.StatusCode != http.StatusOK {
				b.Errorf("read failed: %v", err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
	b.ReportMetric(float64(calls.total()-before)/float64(b.N), "dynamodb-calls/op")
	seen.report(b)
	require.NoError(b, s.Close(b.Context()))
}

// BenchmarkDoors is what the doors themselves cost, with a store that answers at
// once.
func BenchmarkDoors(b *testing.B) {
	s, err := server.New(server.Config{Tokens: anyToken{}}, doors)
	require.NoError(b, err)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request := httptest.NewRequest(http.MethodGet, "/door", http.NoBody)
			request.Header.Set("Authorization", "Bearer "+someToken)
			recorder := httptest.NewRecorder()
			s.ServeHTTP(recorder, request)
			if recorder.Code != http.StatusOK {
				b.Errorf("answered %d", recorder.Code)
			}
		}
	})
}
