package observability

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	"millrace/storage/table"
	workflows "millrace/workflows/observability"
)

// meter adds up the write units that DynamoDB says it used, in thousandths.
type meter struct {
	storage.API
	thousandths atomic.Int64
}

func (m *meter) add(used ...types.ConsumedCapacity) {
	for _, c := range used {
		if c.CapacityUnits != nil {
			m.thousandths.Add(int64(*c.CapacityUnits * 1000))
		}
	}
}

func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.API.PutItem(ctx, in, o...)
	if err == nil && out.ConsumedCapacity != nil {
		m.add(*out.ConsumedCapacity)
	}
	return out, err
}

func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.API.TransactWriteItems(ctx, in, o...)
	if err == nil {
		m.add(out.ConsumedCapacity...)
	}
	return out, err
}

func (m *meter) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.API.BatchWriteItem(ctx, in, o...)
	if err == nil {
		m.add(out.ConsumedCapacity...)
	}
	return out, err
}

// backlog is how many signals the benchmark of the rollup counts each time;
// MILLRACE_BENCH_SIGNALS sets it, up to a million.
func backlog(b *testing.B) int {
	b.Helper()
	text := os.Getenv("MILLRACE_BENCH_SIGNALS")
	if text == "" {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// benchSignals are signals of eight applications within two hours, four of a
// request.
func benchSignals(n int) []observability.Signal {
	all := make([]observability.Signal, n)
	for i := range all {
		cost, duration := exact.MustParse(fmt.Sprintf("0.%06d", i%1000)), exact.FromInt(int64(i%3000))
		at := noon.Add(time.Duration(i) * 2 * time.Hour / time.Duration(n))
		all[i] = observability.Signal{
			SignalID: fmt.Sprintf("0b5f2c1e-7f7e-5a53-9d0a-%012d", i), AppID: fmt.Sprintf("application-%d", i/4%8), RequestID: fmt.Sprintf("request-%d", i/4),
			Timestamp: at, ReceivedAt: at, Protocol: observability.AIGP, Type: observability.Request, Status: observability.StatusOK, Name: "chat", Model: "model-x",
			Tokens: observability.Tokens{Input: int64(i % 4000), Output: 120}, TotalTokens: int64(i%4000) + 120, CostUSD: &cost, DurationMS: &duration,
			Attributes: map[string]string{"region": "ap-northeast-2", "tenant": "a"},
		}
	}
	return all
}

// BenchmarkRollup keeps a backlog of signals, then counts it: signals a second
// each, write units a signal each, and the memory that counting takes beyond what
// was in use before.
func BenchmarkRollup(b *testing.B) {
	n := backlog(b)
	for b.Loop() {
		store := newStore(b)
		m := &meter{API: store.Client}
		store.Client, store.Table.Client = m, m
		began := time.Now()
		putAll(b, store, n)
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "put/s")
		b.ReportMetric(float64(m.thousandths.Swap(0))/1000/float64(n), "put-WRU/signal")

		peak, stop := watchHeap()
		began = time.Now()
		drainAll(b, newDrainer(store, &raiser{}), n)
		took := time.Since(began)
		b.ReportMetric(float64(n)/took.Seconds(), "rollup/s")
		b.ReportMetric(float64(m.thousandths.Load())/1000/float64(n), "rollup-WRU/signal")
		b.ReportMetric(float64(stop(peak))/(1<<20), "heap-MiB")
	}
}

// putAll keeps signals as fast as eight writers can.
func putAll(b *testing.B, store storage.Store, n int) {
	b.Helper()
	const chunk = 10_000
	for first := 0; first < n; first += chunk {
		signals := benchSignals(n)[first:min(first+chunk, n)]
		put(b, store, signals)
	}
}

// drainAll drains all shards, four at a time, as the workflow does.
func drainAll(b *testing.B, d Drainer, n int) {
	b.Helper()
	var lock sync.Mutex
	var sum workflows.Counts
	shards := make(chan int, observability.Shards)
	for shard := range observability.Shards {
		shards <- shard
	}
	close(shards)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for shard := range shards {
				req := workflows.DrainRequest{Shard: shard, To: noon.Add(24 * time.Hour)}
				for done := false; !done; {
					result, err := d.drain(context.Background(), req, func(workflows.DrainResult) {})
					if err != nil {
						b.Error(err)
						return
					}
					lock.Lock()
					sum.Add(result.Counts)
					lock.Unlock()
					req.From, done = result.Next, result.Done
				}
			}
		})
	}
	work.Wait()
	require.EqualValues(b, n, sum.Signals)
}

// endless is a table with any number of pending signals, made when they are read,
// that takes every write. It shows what counting costs without DynamoDB.
type endless struct {
	storage.API
	n       int
	counted atomic.Int64
}

func (e *endless) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	first := 0
	if position, ok := in.ExclusiveStartKey["n"].(*types.AttributeValueMemberN); ok {
		first, _ = strconv.Atoi(position.Value)
	}
	last := min(first+int(*in.Limit), e.n)
	out := &dynamodb.QueryOutput{}
	for i := first; i < last; i++ {
		at := observability.Stamp(noon.Add(time.Duration(i) * 10 * time.Millisecond))
		out.Items = append(out.Items, table.Item{
			"PK": table.String(fmt.Sprintf("APP#application-%d", i%8)), "SK": table.String(fmt.Sprintf("SIG#%s#signal-%d", at, i)),
			"GSI2PK": table.String("PENDING#0"), "GSI2SK": table.String(fmt.Sprintf("%s#signal-%d", at, i)),
			"protocol": table.String("aigp"), "type": table.String("request"), "status": table.String("ok"), "request_id": table.String(fmt.Sprintf("request-%d", i/4)),
			"duration_ms": table.Int(int64(i % 3000)), "input_tokens": table.Int(1200), "output_tokens": table.Int(80), "total_tokens": table.Int(1280),
			"cost_usd": &types.AttributeValueMemberN{Value: "0.0247"},
		})
	}
	if last < e.n {
		out.LastEvaluatedKey = table.Item{"n": table.Int(int64(last))}
	}
	return out, nil
}

func (e *endless) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, write := range in.TransactItems {
		if write.Update != nil && write.Update.ConditionExpression != nil {
			e.counted.Add(1)
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (e *endless) BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return &dynamodb.BatchWriteItemOutput{}, nil
}

// pendingOf is a drainer of n pending signals, in one shard.
func pendingOf(n int) (Drainer, *endless) {
	e := &endless{n: n}
	d := newDrainer(storage.New(e, "endless"), &raiser{})
	d.Stretch = time.Hour
	return d, e
}

// BenchmarkMillionPending counts a million pending signals of one shard without
// DynamoDB: the time and the memory that are our own.
func BenchmarkMillionPending(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		d, e := pendingOf(n)
		peak, stop := watchHeap()
		_, err := d.drain(context.Background(), workflows.DrainRequest{To: noon.Add(24 * time.Hour)}, func(workflows.DrainResult) {})
		require.NoError(b, err)
		require.EqualValues(b, n, e.counted.Load())
		b.ReportMetric(float64(stop(peak))/(1<<20), "heap-MiB")
	}
}

// TestMemoryDoesNotGrowWithTheBacklog compares a backlog with one ten times as
// large.
func TestMemoryDoesNotGrowWithTheBacklog(t *testing.T) {
	used := func(n int) uint64 {
		d, e := pendingOf(n)
		peak, stop := watchHeap()
		_, err := d.drain(t.Context(), workflows.DrainRequest{To: noon.Add(24 * time.Hour)}, func(workflows.DrainResult) {})
		require.NoError(t, err)
		require.EqualValues(t, n, e.counted.Load())
		return stop(peak)
	}
	small, large := used(5_000), used(50_000)
	require.Less(t, large, small+32<<20, "a page at a time")
}

// watchHeap samples the heap in use; stop returns the peak above the beginning.
func watchHeap() (*atomic.Uint64, func(*atomic.Uint64) uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, done := &atomic.Uint64{}, make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapInuse))
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return peak, func(p *atomic.Uint64) uint64 {
		close(done)
		work.Wait()
		return p.Load() - min(p.Load(), before.HeapInuse)
	}
}
