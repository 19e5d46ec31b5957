package cloudinfra

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/encoding/cbor"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/cloudinfra"
	"millrace/platform/config"
	workflows "millrace/workflows/cloudinfra"
)

var noon = time.Date(2026, 6, 1, 12, 0, 20, 0, time.UTC)

// call is a request that a fake was sent: the operation and its parameters in
// the wire's own form.
type call struct {
	operation string
	body      []byte
	form      url.Values
	path      string
	query     url.Values
}

// fakeAWS speaks the wire protocols of the services: AWS JSON, the query protocol
// with XML, REST with JSON, and RPC with CBOR for CloudWatch.
type fakeAWS struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	calls   []call
}

func newFakeAWS(t *testing.T) *fakeAWS {
	t.Helper()
	f := &fakeAWS{t: t, answers: map[string]http.HandlerFunc{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// ServeHTTP finds out which operation a request is for and answers as it was
// told; what it was not told fails the test.
func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	c := call{body: body, path: r.URL.Path, query: r.URL.Query()}
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		_, c.operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	case r.Header.Get("Smithy-Protocol") == "rpc-v2-cbor":
		c.operation = r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	case r.Header.Get("Content-Type") == "application/x-www-form-urlencoded":
		c.form, _ = url.ParseQuery(string(body))
		c.operation = c.form.Get("Action")
	default:
		c.operation = r.Method + " " + r.URL.Path
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	answer := f.answers[c.operation]
	f.mu.Unlock()
	if answer == nil {
		f.t.Errorf("nobody expected %s", c.operation)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	answer(w, r)
}

func (f *fakeAWS) on(operation string, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[operation] = answer
}

// onJSON answers an operation of AWS JSON or REST with JSON.
func (f *fakeAWS) onJSON(operation, body string) {
	f.on(operation, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, body)
	})
}

// onXML answers an operation of the query protocol.
func (f *fakeAWS) onXML(operation, result string) {
	f.on(operation, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>", operation, result)
	})
}

// fails has an operation fail in the form of its protocol.
func (f *fakeAWS) fails(operation string, status int, code, message string) {
	f.on(operation, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Smithy-Protocol") != "":
			w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
			w.Header().Set("Content-Type", "application/cbor")
			w.WriteHeader(status)
			_, _ = w.Write(cbor.Encode(cbor.Map{"__type": cbor.String("com.amazonaws#" + code), "message": cbor.String(message), "Message": cbor.String(message)}))
		case r.Header.Get("Content-Type") == "application/x-www-form-urlencoded":
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>", code, message)
		default:
			w.Header().Set("X-Amzn-ErrorType", code)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"__type":%q,"message":%q}`, code, message)
		}
	})
}

// hangs has an operation answer only when the client has gone.
func (f *fakeAWS) hangs(operation string) {
	f.on(operation, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// of are the requests for an operation.
func (f *fakeAWS) of(operation string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.calls), func(c call) bool { return c.operation != operation })
}

func (f *fakeAWS) config() aws.Config {
	return aws.Config{
		Region: "ap-south-1", BaseEndpoint: aws.String(f.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
}

// collector has all probes of AWS configured and asks the fake.
func (f *fakeAWS) collector() Collector {
	cfg := f.config()
	clusters := eks.NewFromConfig(cfg)
	return Collector{
		Settings: config.CloudInfra{
			ECSClusterName: "cluster", ECSServiceName: "api", ALBTargetGroupName: "tg", CloudFrontDistributionID: "DIST",
			RedisReplicationGroupID: "cache", RDSInstanceID: "db", PipelineLambdaNames: []string{"ingest", "aggregate"},
			MonitoredTableName: "status", DLQQueueName: "letters", SchedulerNames: []string{"refresh", "nightly/report"},
			EKSClusterName: "aegis", ArgoCDNamespace: "argocd", TopPods: 2, MetricWindow: 5 * time.Minute, StorageLookback: 24 * time.Hour,
		},
		Rules:      cloudinfra.DefaultThresholds(),
		FactoryIDs: []string{"factory-a", "factory-b"},
		Queues:     []WatchedQueue{{Name: "telemetry", URL: f.url + "/telemetry"}, {Name: "telemetry-dlq", URL: f.url + "/dlq", IsDLQ: true}, {Name: "none"}},
		ECS:        ecs.NewFromConfig(cfg), ELB: elbv2.NewFromConfig(cfg), CloudWatch: cloudwatch.NewFromConfig(cfg), GlobalCloudWatch: cloudwatch.NewFromConfig(cfg),
		ElastiCache: elasticache.NewFromConfig(cfg), RDS: rds.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), Scheduler: scheduler.NewFromConfig(cfg),
		EKS: clusters, Autoscaling: autoscaling.NewFromConfig(cfg),
		Kubernetes: &Cluster{EKS: clusters, STS: sts.NewPresignClient(sts.NewFromConfig(cfg)), Name: "aegis", Now: func() time.Time { return noon }},
		Now:        func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler),
	}
}

// run runs a probe as its activity.
func run[T any](t *testing.T, c Collector, p cloudinfra.Probe, request any) (workflows.Found[T], error) {
	t.Helper()
	var found workflows.Found[T]
	value, err := activities(c).ExecuteActivity(workflows.ActivityOf(p), request)
	if err == nil {
		require.NoError(t, value.Get(&found))
	}
	return found, err
}

func activities(c Collector) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	for name, f := range c.Activities() {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return env
}

// must is a probe that finds everything.
func must[T any](t *testing.T, c Collector, p cloudinfra.Probe, request any) T {
	t.Helper()
	found, err := run[T](t, c, p, request)
	require.NoError(t, err)
	require.Empty(t, found.Errors)
	return found.Value
}

var ask = workflows.ProbeRequest{AsOf: noon}

// failureOf is what a failed probe tells the workflow.
func failureOf(t *testing.T, err error) (e cloudinfra.Error, final bool) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.NoError(t, application.Details(&e))
	require.Equal(t, e.Code, application.Type())
	return e, application.NonRetryable()
}

// point is a series of a metric by its name, stat and dimensions, newest first.
type series map[string][]float64

// onMetrics answers GetMetricData. A query is named
// {namespace}/{metric}/{stat}/{dimension value}...; what is not in the series has
// no values. Pages holds how many results a page has, 0 for all on one.
func (f *fakeAWS) onMetrics(data series, page int) {
	f.on("GetMetricData", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		sent := f.calls[len(f.calls)-1].body
		f.mu.Unlock()
		decoded, err := cbor.Decode(sent)
		request, ok := decoded.(cbor.Map)
		if err != nil || !ok {
			f.t.Errorf("request is no CBOR map: %v", err)
			return
		}
		queries, _ := request["MetricDataQueries"].(cbor.List)
		start := 0
		if token, ok := request["NextToken"].(cbor.String); ok {
			_, _ = fmt.Sscan(string(token), &start)
		}
		end := len(queries)
		if page > 0 {
			end = min(end, start+page)
		}
		results := cbor.List{}
		for _, q := range queries[start:end] {
			query, _ := q.(cbor.Map)
			results = append(results, cbor.Map{
				"Id": query["Id"], "Label": cbor.String("l"), "StatusCode": cbor.String("Complete"), "Values": floats(data[nameOf(query)]),
				"Timestamps": stamps(len(data[nameOf(query)])),
			})
		}
		answer := cbor.Map{"MetricDataResults": results}
		if end < len(queries) {
			answer["NextToken"] = cbor.String(fmt.Sprint(end))
		}
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.Header().Set("Content-Type", "application/cbor")
		_, _ = w.Write(cbor.Encode(answer))
	})
}

func nameOf(query cbor.Map) string {
	stat, _ := query["MetricStat"].(cbor.Map)
	metric, _ := stat["Metric"].(cbor.Map)
	name := fmt.Sprint(metric["Namespace"], "/", metric["MetricName"], "/", stat["Stat"])
	dimensions, _ := metric["Dimensions"].(cbor.List)
	for _, d := range dimensions {
		dimension, _ := d.(cbor.Map)
		name += fmt.Sprint("/", dimension["Value"])
	}
	return name
}

func floats(values []float64) cbor.List {
	list := cbor.List{}
	for _, v := range values {
		list = append(list, cbor.Float64(v))
	}
	return list
}

func stamps(n int) cbor.List {
	list := cbor.List{}
	for i := range n {
		list = append(list, &cbor.Tag{ID: 1, Value: cbor.Float64(float64(noon.Add(-time.Duration(i) * time.Minute).Unix()))})
	}
	return list
}

// fakeKubernetes is the API of a cluster over TLS, with paged lists.
type fakeKubernetes struct {
	*httptest.Server
	mu     sync.Mutex
	lists  map[string][]map[string]any
	status map[string]int
	tokens []string
	pages  map[string]int
}

func newFakeKubernetes(t *testing.T) *fakeKubernetes {
	t.Helper()
	k := &fakeKubernetes{lists: map[string][]map[string]any{}, status: map[string]int{}, pages: map[string]int{}}
	k.Server = httptest.NewTLSServer(k)
	t.Cleanup(k.Close)
	return k
}

// attach has the fake AWS name this cluster.
func (k *fakeKubernetes) attach(f *fakeAWS) {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw})
	f.onJSON("GET /clusters/aegis", fmt.Sprintf(`{"cluster":{"name":"aegis","status":"ACTIVE","version":"1.34","createdAt":1748736000.5,"endpoint":%q,"certificateAuthority":{"data":%q}}}`,
		k.URL, base64.StdEncoding.EncodeToString(authority)))
}

// ServeHTTP lists objects: limit of them, from the place that continue names.
func (k *fakeKubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens = append(k.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	k.pages[r.URL.Path]++
	w.Header().Set("Content-Type", "application/json")
	items, known := k.lists[r.URL.Path]
	if status := k.status[r.URL.Path]; status != 0 || !known {
		if status == 0 {
			status = http.StatusNotFound
		}
		reason := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}[status]
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, reason, reason, status)
		return
	}
	start, limit := 0, len(items)
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &start)
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	end := min(start+limit, len(items))
	metadata := map[string]any{"resourceVersion": "1"}
	if end < len(items) {
		metadata["continue"] = fmt.Sprint(end)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[start:end]})
}

func (k *fakeKubernetes) put(path string, items ...map[string]any) { k.lists[path] = items }

func object(text string) map[string]any {
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// seen are snapshots shown to an observer.
type seen struct {
	mu     sync.Mutex
	shown  []string
	bodies [][]byte
	err    error
}

func (s *seen) ObserveFast(_ context.Context, snapshot []byte, key string) error {
	return s.observe("fast", snapshot, key)
}

func (s *seen) ObserveSlow(_ context.Context, snapshot []byte, key string) error {
	return s.observe("slow", snapshot, key)
}

func (s *seen) observe(track string, snapshot []byte, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.bodies = append(s.shown, track+" "+key), append(s.bodies, snapshot)
	return s.err
}
