package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	factorystore "millrace/storage/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

// watchedQueries notes every query and how many items it read.
type watchedQueries struct {
	table.API
	lock    sync.Mutex
	ranges  []string
	items   int
	batches atomic.Int64
}

func (w *watchedQueries) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := w.API.Query(ctx, in, o...)
	if err != nil {
		return nil, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.ranges = append(w.ranges, text(in.ExpressionAttributeValues[":from"])+" "+text(in.ExpressionAttributeValues[":to"]))
	w.items += int(out.ScannedCount)
	return out, nil
}

func (w *watchedQueries) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	w.batches.Add(1)
	return w.API.BatchGetItem(ctx, in, o...)
}

func text(value types.AttributeValue) string {
	if s, ok := value.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// plant is a factory table of its own with a gateway in front of it.
type plant struct {
	*fixture
	table   table.Table
	watched *watchedQueries
	clock   *clock
	token   string
}

func newPlant(t testing.TB, ids ...string) *plant {
	t.Helper()
	status := storagetest.Table(t, storagetest.Factory)
	p := &plant{table: status, watched: &watchedQueries{API: status.Client}, clock: &clock{}}
	read := status
	read.Client = p.watched
	store, calls := newTable(t)
	p.fixture = start(t, store, calls, newRing(t, "k1"), server.Config{Now: p.clock.Now, Limits: monitoring.Limits{Read: 1 << 30, Write: 1, TokenCreate: 1}},
		server.Factories(factorystore.Store{Table: read}, ids, p.clock.Now))
	_, p.token = p.issue("user:kim", monitoring.ScopeRead)
	return p
}

func (p *plant) put(documents ...any) {
	p.t.Helper()
	for _, document := range documents {
		require.NoError(p.t, p.table.Put(p.t.Context(), document, nil))
	}
}

func (p *plant) get(path string) answer {
	p.t.Helper()
	return p.call(http.MethodGet, path, p.token, "")
}

func latest(id string, at time.Time, score string) factory.Latest {
	return factory.Latest{
		PK: factory.PK(id), SK: factory.LatestSK, FactoryID: id, SchemaVersion: factory.SchemaVersion, Rev: 3, UpdatedAt: factory.MillisOf(at),
		Risk: &factory.Risk{Score: exact.MustParse(score), Level: "safe"},
	}
}

func graph(id string, start time.Time) factory.Graph {
	return factory.Graph{
		PK: factory.PK(id), SK: factory.GraphSK(start), ItemType: "GRAPH#5M", FactoryID: id, BucketMinutes: 5,
		BucketStart: start, BucketEnd: factory.MillisOf(start.Add(factory.BucketLength - time.Millisecond)),
	}
}

func TestTheListHasTheConfiguredFactoriesInOrder(t *testing.T) {
	p := newPlant(t, "factory-b", "factory-a", "factory-never-seen")
	p.put(latest("factory-a", clockStart, "12.5"), latest("factory-b", clockStart, "0"), latest("factory-other", clockStart, "1"))
	var list []factory.FactorySummary
	p.get("/v1/factories").decode(&list)
	require.Len(t, list, 2)
	require.Equal(t, "factory-b", list[0].FactoryID)
	require.Equal(t, "factory-a", list[1].FactoryID)
	require.Equal(t, "12.5", list[1].RiskScore.String())
}

func TestTheListIsReadOnceInTenSeconds(t *testing.T) {
	p := newPlant(t, "factory-a")
	require.JSONEq(t, `[]`, string(p.get("/v1/factories").Body), "no factory was seen yet")
	p.put(latest("factory-a", clockStart, "1"))
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { p.get("/v1/factories") })
	}
	wait.Wait()
	require.Equal(t, int64(1), p.watched.batches.Load())
	p.clock.Advance(10 * time.Second)
	for range 20 {
		wait.Go(func() { p.get("/v1/factories") })
	}
	wait.Wait()
	require.Equal(t, int64(2), p.watched.batches.Load(), "all that wait share one read")
	var list []factory.FactorySummary
	p.get("/v1/factories").decode(&list)
	require.Len(t, list, 1)
}

func TestAFactoryIsServedAsItIsStored(t *testing.T) {
	p := newPlant(t)
	want := latest("factory-a", clockStart, "33.3333")
	p.put(want)
	var got map[string]any
	a := p.get("/v1/factories/factory-a")
	a.decode(&got)
	require.Equal(t, "FACTORY#factory-a", got["pk"])
	require.Equal(t, "LATEST", got["sk"])
	body, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(a.Body))
	require.Contains(t, string(a.Body), `"score":33.3333`, "numbers are exact and no strings")
}

func TestFactoriesThatCanNotBe(t *testing.T) {
	p := newPlant(t)
	p.get("/v1/factories/factory-x").problem(http.StatusNotFound, "not-found")
	for _, id := range []string{"Factory-A", "-a", "a%23b", "%2e%2e", "a%2Fb", "cloud-infra", "a%00b"} {
		a := p.get("/v1/factories/" + id)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, a.Status, id)
		a = p.get("/v1/factories/" + id + "/history")
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, a.Status, id)
	}
}

func TestADayReadsAtMost288ItemsOfOnePrefix(t *testing.T) {
	p := newPlant(t)
	for i := range 600 { // two days and more, and raw rows beside them
		p.put(graph("factory-a", clockStart.Truncate(factory.BucketLength).Add(-time.Duration(i)*factory.BucketLength)))
	}
	for i := range 50 {
		p.put(latest("factory-a", clockStart.Add(-time.Duration(i)*time.Minute), "1").History(time.Hour))
	}
	var points []factory.BucketPoint
	p.get("/v1/factories/factory-a/history?window=24h").decode(&points)
	require.LessOrEqual(t, p.watched.items, 288)
	require.GreaterOrEqual(t, p.watched.items, 284)
	require.Contains(t, []int{72, 73}, len(points))
	for _, r := range p.watched.ranges {
		require.Regexp(t, `^GRAPH#5M#\S+ GRAPH#5M#`, r)
	}
	require.Len(t, p.watched.ranges, 1, "one query")
	for i, point := range points {
		require.True(t, point.IsBucket)
		require.Zero(t, point.BucketStart.Minute()%20, "elements lie on the clock")
		require.True(t, i == 0 || points[i-1].BucketStart.Before(point.BucketStart))
	}
}

func TestAnHourIsRawRowsNewestOnesUpToTheLimit(t *testing.T) {
	p := newPlant(t)
	for i := range 700 {
		p.put(latest("factory-a", clockStart.Add(-time.Duration(i)*10*time.Second), fmt.Sprint(i%100)).History(2 * time.Hour))
	}
	var points []factory.RawPoint
	p.get("/v1/factories/factory-a/history?limit=7").decode(&points)
	require.Len(t, points, 7)
	require.True(t, points[6].Timestamp.Equal(clockStart), "the limit drops the oldest")
	require.True(t, points[0].Timestamp.Equal(clockStart.Add(-time.Minute)))
	require.Equal(t, 7, p.watched.items, "no more is read than is shown")

	p.get("/v1/factories/factory-a/history").decode(&points)
	require.Len(t, points, 361, "the whole hour, by pages")
	p.get("/v1/factories/factory-a/history?window=10m").decode(&points)
	require.Len(t, points, 61)

	since := clockStart.Add(-time.Minute).Format(time.RFC3339)
	p.get("/v1/factories/factory-a/history?since=" + since).decode(&points)
	require.Len(t, points, 6, "only what is newer")
	require.JSONEq(t, `[]`, string(p.get("/v1/factories/factory-b/history").Body))
	require.JSONEq(t, `[]`, string(p.get("/v1/factories/factory-b/history?window=6h").Body))
}

func TestBadHistoryParametersAreNamed(t *testing.T) {
	p := newPlant(t)
	for query, field := range map[string]string{
		"window=1w": "query.window", "window=-1h": "query.window", "window=49h": "window", "window=0m": "window", "window=1h1h": "query.window",
		"limit=0": "query.limit", "limit=2001": "query.limit", "limit=many": "query.limit", "limit=-1": "query.limit",
		"since=yesterday": "since", "since=2026-11-30T12:00:00": "since", "from=1": "query.from",
	} {
		problem := p.get("/v1/factories/factory-a/history?"+query).problem(http.StatusBadRequest, "invalid-input")
		require.Equal(t, field, problem.Errors[0].Field, query)
	}
}

// brokenFactories is a table that does not answer.
type brokenFactories struct{ server.FactoryReader }

func (brokenFactories) BatchLatest(ctx context.Context, _ []string) (map[string]factory.Latest, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (brokenFactories) Latest(context.Context, string) (*factory.Latest, error) {
	return nil, fmt.Errorf("get item: %w", errors.New("boom"))
}

func TestASilentTableIs504(t *testing.T) {
	store, calls := newTable(t)
	f := start(t, store, calls, newRing(t, "k1"), server.Config{Timeout: 50 * time.Millisecond}, server.Factories(brokenFactories{}, []string{"factory-a"}, time.Now))
	_, token := f.issue("user:kim", monitoring.ScopeRead)
	f.call(http.MethodGet, "/v1/factories", token, "").problem(http.StatusGatewayTimeout, "store-unavailable")
	f.call(http.MethodGet, "/v1/factories/factory-a", token, "").problem(http.StatusInternalServerError, "internal")
}
