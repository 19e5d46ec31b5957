package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/domain/observability"
	"millrace/gateway/server"
	observabilitystore "millrace/storage/observability"
	"millrace/storage/provision"
	"millrace/storage/storagetest"
)

// signalAPI is a gateway with the routes of signals.
type signalAPI struct {
	*fixture
	signals observabilitystore.Store
	token   string
}

func newSignalStore(t testing.TB) observabilitystore.Store {
	t.Helper()
	shape := provision.GovernanceTable("")
	schema := storagetest.Schema{PartitionKey: shape.PartitionKey, SortKey: shape.SortKey}
	for _, index := range shape.Indexes {
		schema.Indexes = append(schema.Indexes, storagetest.Index(index))
	}
	own := storagetest.Table(t, schema)
	client, ok := own.Client.(*dynamodb.Client)
	require.True(t, ok)
	return observabilitystore.New(client, own.Name)
}

const testPrices = `{"version":"2026-05","models":[
	{"model":"model-x","from":"2026-01-01","input":2,"cached_input":0.2,"output":8,"reasoning":8},
	{"model":"model-*","from":"2026-01-01","input":100,"cached_input":100,"output":100,"reasoning":100}]}`

func newSignalAPI(t testing.TB, store observabilitystore.Store, now func() time.Time) *signalAPI {
	t.Helper()
	prices, err := observability.ParsePrices([]byte(testPrices))
	require.NoError(t, err)
	f := newFixture(t,
		server.Signals(store, prices, prometheus.NewRegistry(), now), server.Aggregates(store, now), server.Traces(store, now),
		server.SignalAlerts(store, now), server.AlertRules(store, now))
	_, token := f.issue("user:kim", monitoring.AllScopes()...)
	return &signalAPI{fixture: f, signals: store, token: token}
}

// send posts signals that must be taken.
func (a *signalAPI) send(body string) server.SignalResults {
	a.t.Helper()
	got := a.call(http.MethodPost, "/v1/signals", a.token, body)
	require.Equal(a.t, http.StatusOK, got.Status, string(got.Body))
	var results server.SignalResults
	got.decode(&results)
	return results
}

// sent is a signal as a client sends it.
func sent(id string, at time.Time, more string) string {
	return fmt.Sprintf(`{"signal_id":%q,"app_id":"app-x","request_id":"req-1","timestamp":%q,"protocol":"aigp","type":"request"%s}`, id, at.Format(time.RFC3339Nano), more)
}

// countAll counts what is pending of an application, as a rollup does.
func (a *signalAPI) countAll(app string) {
	a.t.Helper()
	pending, _, err := a.signals.Pending(a.t.Context(), observabilitystore.PendingQuery{
		Shard: observability.ShardOf(app), To: time.Now().Add(time.Hour), Limit: 1000,
	})
	require.NoError(a.t, err)
	for _, batch := range observability.Pack(pending, 100) {
		_, err := a.signals.Count(a.t.Context(), batch)
		require.NoError(a.t, err)
	}
}

func TestEverySignalIsAnsweredOnItsOwn(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	now := time.Now().UTC()
	deep := strings.Repeat("x", 4000)
	results := api.send(fmt.Sprintf(`{"signals":[%s,%s,%s,7,%s,%s,%s,%s,%s,%s,%s,%s]}`,
		sent("a", now, `,"cost_usd":0.123456789012345678901234567890`),
		sent("a", now.Add(6*time.Minute), ""),
		sent("a", now.Add(-49*time.Hour), ""),
		sent("b", now, `,"input_tokens":-1`),
		sent("b", now, `,"input_tokens":1e300`),
		sent("b", now, `,"cost_usd":"NaN"`),
		sent("b", now, `,"duration_ms":-0.5`),
		sent("b", now, `,"colour":"red"`),
		strings.Replace(sent("b", now, ""), "app-x", "app#x", 1),
		strings.Replace(sent("b", now, ""), "app-x", "app/x", 1),
		sent("c", now, fmt.Sprintf(`,"attributes":{"a":%q,"b":%q,"c":%q}`, deep, deep, deep))))
	require.Equal(t, 1, results.Accepted)
	require.Equal(t, 11, results.Rejected)
	var fields []string
	for _, r := range results.Results[1:] {
		require.Equal(t, "rejected", r.Status)
		require.NotEmpty(t, r.Rule)
		fields = append(fields, r.Field)
	}
	require.Equal(t, []string{"timestamp", "timestamp", "signal", "input_tokens", "input_tokens", "cost_usd", "duration_ms", "colour", "app_id", "app_id", "attributes"}, fields)
	api.countAll("app-x")
	var list server.SignalAggregateList
	api.call(http.MethodGet, "/v1/apps/app-x/aggregates?granularity=daily", api.token, "").decode(&list)
	require.Len(t, list.Aggregates, 1)
	require.Equal(t, "0.12345678901234567890123456789", list.Aggregates[0].Counters["total_cost_usd"].String())
}

func TestARetryIsADuplicate(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	now := time.Now()
	batch := "[" + sent("a", now, "") + "," + strings.Replace(sent("", now, `,"name":"no id"`), `"signal_id":"",`, "", 1) + "]"
	first := api.send(batch)
	require.Equal(t, 2, first.Accepted)
	again := api.send(batch)
	require.Equal(t, 2, again.Duplicate)
	require.Equal(t, first.Results[1].SignalID, again.Results[1].SignalID)
	require.Len(t, again.Results[1].SignalID, 36)
	elsewhere := api.send(strings.Replace(batch, now.Format(time.RFC3339Nano), now.In(time.FixedZone("", 9*3600)).Format(time.RFC3339Nano), 2))
	require.Equal(t, 2, elsewhere.Duplicate, "the same instant in another zone is the same")
}

func TestTheSameSignalFromTwoClientsAtOnceIsKeptOnce(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	batch := "[" + sent("a", time.Now(), "") + "]"
	var work sync.WaitGroup
	var lock sync.Mutex
	accepted := 0
	for range 10 {
		work.Go(func() {
			got := api.call(http.MethodPost, "/v1/signals", api.token, batch)
			var results server.SignalResults
			if err := json.Unmarshal(got.Body, &results); err != nil {
				t.Error(err)
			}
			lock.Lock()
			defer lock.Unlock()
			accepted += results.Accepted
		})
	}
	work.Wait()
	require.Equal(t, 1, accepted)
}

func TestPricesFillCostsAndSaySo(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	tokens := `,"model":"model-x","input_tokens":1000,"cached_input_tokens":500,"output_tokens":10,"reasoning_tokens":1`
	results := api.send("[" + sent("a", time.Now(), tokens) + "," + sent("b", time.Now(), tokens+`,"cost_usd":"0.5"`) + "," +
		sent("c", time.Now(), `,"model":"other","input_tokens":1`) + "," + sent("d", time.Now(), tokens+`,"total_tokens":1600`) + "]")
	require.Equal(t, 4, results.Accepted)
	require.Equal(t, "0.002188", results.Results[0].CostUSD.String())
	require.Equal(t, "price_table", results.Results[0].CostSource)
	require.Equal(t, "2026-05", results.Results[0].PriceVersion)
	require.Nil(t, results.Results[1].CostUSD, "the client said it")
	require.Nil(t, results.Results[2].CostUSD, "no price is known")
	require.False(t, results.Results[0].TokenMismatch)
	require.True(t, results.Results[3].TokenMismatch, "1511 are not 1600")
	var trace server.Trace
	api.call(http.MethodGet, "/v1/traces/req-1", api.token, "").decode(&trace)
	require.Equal(t, "0.504376", trace.Totals.CostUSD.String())
	require.Equal(t, "client", trace.Signals[1].CostSource)
	require.EqualValues(t, 1511+1511+1+1600, trace.Totals.Tokens.Total)
}

func TestDoorsOfSignalsAreGuarded(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	_, reader := api.issue("user:reader", monitoring.ScopeRead)
	api.call(http.MethodPost, "/v1/signals", reader, "{}").problem(http.StatusForbidden, "forbidden")
	api.call(http.MethodPost, "/v1/traces", reader, "{}").problem(http.StatusForbidden, "forbidden")
	api.call(http.MethodPost, "/v1/apps/app-x/rules", reader, "{}").problem(http.StatusForbidden, "forbidden")
	_, other := api.issue("app:other", monitoring.ScopeSignalsWrite)
	var results server.SignalResults
	api.call(http.MethodPost, "/v1/signals", other, sent("a", time.Now(), "")).decode(&results)
	require.Equal(t, "app_id", results.Results[0].Field)
	_, own := api.issue("app:app-x", monitoring.ScopeSignalsWrite)
	api.call(http.MethodPost, "/v1/signals", own, sent("a", time.Now(), "")).decode(&results)
	require.Equal(t, 1, results.Accepted)
}

func TestBadBatchesAreRefusedWhole(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	for body, code := range map[string]int{
		`[]`: http.StatusBadRequest, `{"signals":{}}`: http.StatusBadRequest, `{"signals":[],"x":1}`: http.StatusBadRequest,
		`[NaN]`: http.StatusBadRequest, `"a"`: http.StatusBadRequest, "[" + strings.Repeat("{},", 500) + "{}]": http.StatusBadRequest,
	} {
		require.Equal(t, code, api.call(http.MethodPost, "/v1/signals", api.token, body).Status, body)
	}
	huge := `{"signals":[` + strings.Repeat(" ", 10<<20) + `]}`
	api.call(http.MethodPost, "/v1/signals", api.token, huge).problem(http.StatusRequestEntityTooLarge, "body-too-large")
	api.call(http.MethodPost, "/v1/signals", api.token, "{}", "Content-Type", "text/plain").problem(http.StatusUnsupportedMediaType, "unsupported-media-type")
}

// brokenStore is a store that does not answer after some signals.
type brokenStore struct {
	observabilitystore.Store
	lock sync.Mutex
	left int
}

func (b *brokenStore) Put(ctx context.Context, s observability.Signal) (bool, error) {
	b.lock.Lock()
	b.left--
	broken := b.left < 0
	b.lock.Unlock()
	if broken {
		return false, &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "PutItem", Err: errors.New("no answer")}
	}
	return b.Store.Put(ctx, s)
}

func TestAfterAnOutageTheBatchIsSentAgain(t *testing.T) {
	store := &brokenStore{Store: newSignalStore(t), left: 3}
	f := newFixture(t, server.Signals(store, observability.Prices{}, prometheus.NewRegistry(), time.Now))
	_, token := f.issue("user:kim", monitoring.ScopeSignalsWrite)
	var signals []string
	for n := range 10 {
		signals = append(signals, sent(fmt.Sprint("s", n), time.Now(), ""))
	}
	batch := "[" + strings.Join(signals, ",") + "]"
	f.call(http.MethodPost, "/v1/signals", token, batch).problem(http.StatusGatewayTimeout, "store-unavailable")
	store.lock.Lock()
	store.left = 100
	store.lock.Unlock()
	var results server.SignalResults
	f.call(http.MethodPost, "/v1/signals", token, batch).decode(&results)
	require.Equal(t, 10, results.Accepted+results.Duplicate)
	require.LessOrEqual(t, results.Duplicate, 3)
}

func TestTracesAreTreesWithTotals(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	at := time.Now().UTC().Truncate(time.Second)
	api.send("[" + strings.Join([]string{
		sent("leaf", at.Add(2*time.Second), `,"parent_signal_id":"mid","duration_ms":1500,"cost_usd":0.1,"status":"error"`),
		sent("root", at, `,"duration_ms":100`),
		sent("mid", at.Add(time.Second), `,"parent_signal_id":"root","input_tokens":5`),
		sent("late", at.Add(3*time.Second), `,"parent_signal_id":"root"`),
		sent("lost", at.Add(3*time.Second), `,"parent_signal_id":"nobody"`),
	}, ",") + "]")
	var trace server.Trace
	api.call(http.MethodGet, "/v1/traces/req-1", api.token, "").decode(&trace)
	var tree []string
	for _, s := range trace.Signals {
		tree = append(tree, fmt.Sprintf("%d %s %t", s.Depth, s.SignalID, s.Orphan))
	}
	require.Equal(t, []string{"0 root false", "1 mid false", "2 leaf false", "1 late false", "0 lost true"}, tree)
	require.EqualValues(t, 5, trace.Totals.Signals)
	require.EqualValues(t, 1, trace.Totals.Errors)
	require.Equal(t, "3500", trace.Totals.DurationMS.String())
	var page server.Trace
	api.call(http.MethodGet, "/v1/traces/req-1?limit=2", api.token, "").decode(&page)
	require.Len(t, page.Signals, 2)
	api.call(http.MethodGet, "/v1/traces/req-1?limit=10&cursor="+page.NextCursor, api.token, "").decode(&page)
	require.Len(t, page.Signals, 3)
	api.call(http.MethodGet, "/v1/traces/none", api.token, "").problem(http.StatusNotFound, "not-found")
	api.call(http.MethodGet, "/v1/traces/a%23b", api.token, "").problem(http.StatusBadRequest, "invalid-input")
	api.call(http.MethodGet, "/v1/traces/req-1?cursor=x", api.token, "").problem(http.StatusBadRequest, "invalid-input")
}

func TestAggregatesAreReadByApplicationAndByDate(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	now := time.Now().UTC()
	var signals []string
	for n := range 30 {
		signals = append(signals, sent(fmt.Sprint("s", n), now.Add(-time.Duration(n)*time.Hour), fmt.Sprintf(`,"duration_ms":%d,"cost_usd":"0.1"`, 100+n)))
	}
	api.send("[" + strings.Join(signals, ",") + "]")
	api.countAll("app-x")
	var all []server.SignalAggregate
	for path := "/v1/apps/app-x/aggregates?granularity=hourly&limit=7&from=" + now.Add(-29*time.Hour).Format(time.RFC3339); ; {
		var list server.SignalAggregateList
		got := api.call(http.MethodGet, path, api.token, "")
		require.Equal(t, http.StatusOK, got.Status, string(got.Body))
		got.decode(&list)
		all = append(all, list.Aggregates...)
		if list.NextCursor == "" {
			break
		}
		path = "/v1/apps/app-x/aggregates?granularity=hourly&limit=7&from=" + now.Add(-29*time.Hour).Format(time.RFC3339) + "&cursor=" + list.NextCursor
	}
	require.Len(t, all, 30)
	require.True(t, all[29].Start.Equal(now.Truncate(time.Hour)))
	require.Equal(t, "200", all[0].Rates.P95.Upper.String())
	var list server.SignalAggregateList
	api.call(http.MethodGet, "/v1/aggregates?date="+now.Format("2006-01"), api.token, "").decode(&list)
	require.Len(t, list.Aggregates, 1)
	require.Equal(t, "monthly", list.Aggregates[0].Granularity)
	api.call(http.MethodGet, "/v1/aggregates?date="+now.Format(time.DateOnly), api.token, "").decode(&list)
	require.Equal(t, "daily", list.Aggregates[0].Granularity)
	api.call(http.MethodGet, "/v1/aggregates?granularity=hourly&date="+now.Format(time.DateOnly), api.token, "").decode(&list)
	require.Len(t, list.Aggregates, now.Hour()+1)
	for path, field := range map[string]string{
		"/v1/aggregates?date=now": "query.date", "/v1/aggregates?date=2026-05&granularity=daily": "query.granularity",
		"/v1/apps/a%23b/aggregates": "path.app_id", "/v1/apps/app-x/aggregates?from=x": "query.from", "/v1/apps/app-x/aggregates?to=x": "query.to",
		"/v1/apps/app-x/aggregates?from=2026-05&to=2026-04": "query.from", "/v1/apps/app-x/aggregates?to=9999-12-31T23:59:59-12:00": "query.to", "/v1/apps/app-x/aggregates?cursor=AAAA": "query.cursor",
	} {
		p := api.call(http.MethodGet, path, api.token, "").problem(http.StatusBadRequest, "invalid-input")
		require.Equal(t, field, p.Errors[0].Field, path)
	}
}

func TestAlertRulesAreEditedByRevision(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	const all, one = "/v1/apps/app-x/rules", "/v1/apps/app-x/rules/budget"
	body := `{"rule_id":"budget","name":"Budget","kind":"daily_cost","threshold":12.5}`
	created := api.call(http.MethodPost, all, api.token, body)
	require.Equal(t, http.StatusCreated, created.Status, string(created.Body))
	require.Equal(t, `"1"`, created.Header.Get("ETag"))
	require.Equal(t, http.StatusCreated, api.call(http.MethodPost, all, api.token, body).Status, "a retry")
	api.call(http.MethodPost, all, api.token, strings.Replace(body, "12.5", "13", 1)).problem(http.StatusConflict, "rule-exists")
	change := `{"name":"Budget","kind":"daily_cost","threshold":20,"severity":"danger"}`
	api.call(http.MethodPut, one, api.token, change).problem(http.StatusPreconditionRequired, "precondition-required")
	changed := api.call(http.MethodPut, one, api.token, change, "If-Match", `"1"`)
	require.Equal(t, http.StatusOK, changed.Status, string(changed.Body))
	require.Equal(t, `"2"`, changed.Header.Get("ETag"))
	api.call(http.MethodPut, one, api.token, change, "If-Match", `"1"`).problem(http.StatusPreconditionFailed, "precondition-failed")
	var list server.AlertRuleList
	api.call(http.MethodGet, all, api.token, "").decode(&list)
	require.Len(t, list.Rules, 1)
	require.Equal(t, "20", list.Rules[0].Threshold.String())
	for _, bad := range []struct{ body, field string }{
		{`{"rule_id":"A","name":"x","kind":"silence","threshold":5}`, "body.rule_id"},
		{`{"rule_id":"a","name":"x","kind":"silence","threshold":4}`, "body.threshold"},
		{`{"rule_id":"a","name":"x","kind":"error_rate","threshold":101}`, "body.threshold"},
		{`{"rule_id":"a","name":"x","kind":"silence","threshold":5,"window_hours":2}`, "body.window_hours"},
		{`{"rule_id":"a","name":"","kind":"silence","threshold":5}`, "body.name"},
	} {
		p := api.call(http.MethodPost, all, api.token, bad.body).problem(http.StatusBadRequest, "invalid-input")
		require.Equal(t, bad.field, p.Errors[0].Field)
	}
	api.call(http.MethodDelete, one, api.token, "", "If-Match", `"1"`).problem(http.StatusPreconditionFailed, "precondition-failed")
	require.Equal(t, http.StatusNoContent, api.call(http.MethodDelete, one, api.token, "").Status)
	require.Equal(t, http.StatusNoContent, api.call(http.MethodDelete, one, api.token, "").Status)
	api.call(http.MethodGet, one, api.token, "").problem(http.StatusNotFound, "not-found")
}

func TestAlertsOfApplicationsAreRead(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	at := time.Now().UTC()
	for n := range 3 {
		a := observability.NewAlert(observability.Rule{RuleID: "r", AppID: "app-x", Spec: observability.Spec{Kind: observability.Silence}},
			observability.Firing{Level: "warning", Severity: "warning", Value: exact.FromInt(7), Threshold: exact.FromInt(5), Summary: "quiet"}, at.Add(time.Duration(n)*time.Microsecond))
		require.NoError(t, api.signals.PutAlert(t.Context(), a))
	}
	for _, path := range []string{"/v1/apps/app-x/alerts?limit=2", "/v1/signals/alerts?limit=2&date=" + at.Format(time.DateOnly)} {
		var list server.AppAlertList
		api.call(http.MethodGet, path, api.token, "").decode(&list)
		require.Len(t, list.Alerts, 2)
		require.True(t, list.Alerts[0].Timestamp.After(list.Alerts[1].Timestamp), "newest first")
		api.call(http.MethodGet, path+"&cursor="+list.NextCursor, api.token, "").decode(&list)
		require.Len(t, list.Alerts, 1)
	}
	api.call(http.MethodGet, "/v1/signals/alerts?date=x", api.token, "").problem(http.StatusBadRequest, "invalid-input")
	api.call(http.MethodGet, "/v1/apps/a%2Fb/alerts", api.token, "").problem(http.StatusBadRequest, "invalid-input")
}

// TestTheOpenTelemetrySDKIsAClient sends spans by the official exporter, plain
// and compressed.
func TestTheOpenTelemetrySDKIsAClient(t *testing.T) {
	for name, compression := range map[string]otlptracehttp.Compression{"plain": otlptracehttp.NoCompression, "gzip": otlptracehttp.GzipCompression} {
		t.Run(name, func(t *testing.T) {
			api := newSignalAPI(t, newSignalStore(t), time.Now)
			_, token := api.issue("app:agent.shop", monitoring.ScopeSignalsWrite)
			exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(api.url+"/v1/traces"),
				otlptracehttp.WithHeaders(map[string]string{"Authorization": "Bearer " + token}), otlptracehttp.WithCompression(compression))
			require.NoError(t, err)
			provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))))
			tracer := provider.Tracer("test")
			ctx, agent := tracer.Start(t.Context(), "invoke_agent shop")
			agent.SetAttributes(attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.Int("gen_ai.usage.input_tokens", 1000))
			chatCtx, chat := tracer.Start(ctx, "chat model-x")
			chat.SetAttributes(
				attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.response.model", "model-x"),
				attribute.Int("gen_ai.usage.input_tokens", 1000), attribute.Int("gen_ai.usage.cache_read.input_tokens", 400),
				attribute.Int("gen_ai.usage.output_tokens", 50), attribute.Int("gen_ai.usage.reasoning.output_tokens", 20),
				attribute.String("gen_ai.input.messages", "a secret prompt"))
			chat.SetStatus(codes.Error, "overloaded")
			chat.End()
			_, sql := tracer.Start(chatCtx, "SELECT")
			sql.End()
			agent.End()
			require.NoError(t, provider.Shutdown(t.Context()))

			var trace server.Trace
			api.call(http.MethodGet, "/v1/traces/"+agent.SpanContext().TraceID().String(), api.token, "").decode(&trace)
			require.Len(t, trace.Signals, 2, "the span of the database is none of generative AI")
			root, leaf := trace.Signals[0], trace.Signals[1]
			require.Equal(t, "span", root.Type)
			require.Zero(t, root.Tokens.Total, "agents repeat what is within them")
			require.Equal(t, "agent.shop", leaf.AppID)
			require.Equal(t, "request", leaf.Type)
			require.Equal(t, "error", leaf.Status)
			require.Equal(t, root.SignalID, leaf.ParentSignalID)
			require.Equal(t, server.TokenCounts{Input: 600, CachedInput: 400, Output: 30, Reasoning: 20, Total: 1050}, leaf.Tokens)
			require.False(t, leaf.TokenMismatch)
			require.Equal(t, "0.00168", leaf.CostUSD.String())
			require.Equal(t, observability.SpanSignalID(trace.RequestID, chat.SpanContext().SpanID().String()), leaf.SignalID)
			require.NotContains(t, leaf.Attributes, "gen_ai.input.messages")
		})
	}
}

const otlpJSON = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[
	{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","name":"chat","kind":3,"startTimeUnixNano":"%[1]d","endTimeUnixNano":%[2]d,
	 "attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"12"}},
	  {"key":"gen_ai.usage.output_tokens","value":{"intValue":3}},{"key":"gen_ai.usage.cost","value":{"doubleValue":0.1000000000000000055}},
	  {"key":"gen_ai.request.stop_sequences","value":{"arrayValue":{"values":[{"stringValue":"a"}]}}}],"status":{"code":2}},
	{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175","name":"chat","startTimeUnixNano":"1","endTimeUnixNano":"2",
	 "attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}`

func TestTracesInJSONKeepEveryDigitAndTellWhatWasRefused(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	start := time.Now().UnixNano()
	body := fmt.Sprintf(otlpJSON, start, start+1_500_000)
	var squeezed bytes.Buffer
	zipped := gzip.NewWriter(&squeezed)
	_, err := zipped.Write([]byte(body))
	require.NoError(t, err)
	require.NoError(t, zipped.Close())
	got := api.call(http.MethodPost, "/v1/traces", api.token, squeezed.String(), "Content-Encoding", "gzip")
	require.Equal(t, http.StatusOK, got.Status, string(got.Body))
	require.JSONEq(t, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"1 of 2 gen_ai spans refused; the first: timestamp must not be older than 48 hours"}}`, string(got.Body))
	var trace server.Trace
	api.call(http.MethodGet, "/v1/traces/5b8efff798038103d269b633813fc60c", api.token, "").decode(&trace)
	require.Len(t, trace.Signals, 1)
	s := trace.Signals[0]
	require.Equal(t, "0.1000000000000000055", s.CostUSD.String())
	require.Equal(t, "1.5", s.DurationMS.String())
	require.Equal(t, "shop", s.AppID)
	require.Equal(t, "error", s.Status)
	require.Equal(t, `["a"]`, s.Attributes["gen_ai.request.stop_sequences"])
}

func TestTracesThatCantBeReadAreRefused(t *testing.T) {
	api := newSignalAPI(t, newSignalStore(t), time.Now)
	post := func(body string, headers ...string) answer {
		return api.call(http.MethodPost, "/v1/traces", api.token, body, headers...)
	}
	post("{").problem(http.StatusBadRequest, "invalid-input")
	post("\xff\xff", "Content-Type", "application/x-protobuf").problem(http.StatusBadRequest, "invalid-input")
	post("{}", "Content-Type", "text/plain").problem(http.StatusUnsupportedMediaType, "unsupported-media-type")
	post("{}", "Content-Encoding", "br").problem(http.StatusUnsupportedMediaType, "unsupported-media-type")
	post("{}", "Content-Encoding", "gzip").problem(http.StatusBadRequest, "invalid-input")
	var bomb bytes.Buffer
	zipped := gzip.NewWriter(&bomb)
	for range 20 {
		_, err := zipped.Write(bytes.Repeat([]byte(" "), 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, zipped.Close())
	post(bomb.String(), "Content-Encoding", "gzip").problem(http.StatusRequestEntityTooLarge, "body-too-large")
	require.Equal(t, http.StatusOK, post("{}").Status)
}
