package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/broker"
)

// received is just before midnight in a zone west of UTC, where it is tomorrow already.
var received = time.Date(2026, 3, 1, 23, 59, 59, 250_000_000, time.FixedZone("UTC-1", -3600))

var destinations = Destinations{
	Bucket: "data", TelemetryQueueURL: "q/telemetry", RuleErrorsQueueURL: "q/errors", JobResultsQueueURL: "q/results",
}

// stores records what the bridge does and fails where told.
type stores struct {
	mu      sync.Mutex
	objects map[string]string   // by bucket/key
	queues  map[string][]string // by URL
	fail    map[string]int      // remaining failures by bucket or URL; negative is for ever
	tries   map[string]int
	hold    func(name string)
}

func newStores() *stores {
	return &stores{objects: map[string]string{}, queues: map[string][]string{}, fail: map[string]int{}, tries: map[string]int{}}
}

var errDown = errors.New("service is down")

func (s *stores) enter(name string) error {
	if s.hold != nil {
		s.hold(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries[name]++
	if s.fail[name] != 0 {
		s.fail[name]--
		return errDown
	}
	return nil
}

func (s *stores) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if err := s.enter(*in.Bucket); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[*in.Bucket+"/"+*in.Key] = string(body)
	return &s3.PutObjectOutput{}, nil
}

func (s *stores) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if err := s.enter(*in.QueueUrl); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[*in.QueueUrl] = append(s.queues[*in.QueueUrl], *in.MessageBody)
	return &sqs.SendMessageOutput{}, nil
}

func newBridge(t testing.TB, s *stores) *Bridge {
	t.Helper()
	routes, err := NewRoutes(destinations, "")
	require.NoError(t, err)
	return &Bridge{
		Objects: s, Queues: s, Routes: routes, Metrics: NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return received },
		Retry: Retry{Attempts: 3, Timeout: time.Second, Backoff: time.Millisecond},
	}
}

func message(body string) broker.Message {
	return broker.Message{Topic: "aegis/factory-a/factory_state", Payload: []byte(body), ClientID: "edge-1"}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&v))
	return v
}

func only[K comparable, V any](t *testing.T, m map[K]V) (K, V) {
	t.Helper()
	require.Len(t, m, 1)
	for k, v := range m {
		return k, v
	}
	panic("unreachable")
}

const partition = "data/raw/factory-a/factory_state/yyyy=2026/mm=03/dd=02/"

func TestBodyIsStoredUnmodifiedAndSent(t *testing.T) {
	s := newStores()
	body := "{ \"message_id\" : \"factory-a:factory_state:worker2:2026-03-01T23:59:59Z\",\n\"n\": 1.50 }\r\n"
	require.NoError(t, newBridge(t, s).Handle(t.Context(), message(body)))
	key, stored := only(t, s.objects)
	require.Equal(t, partition+"factory-a:factory_state:worker2:2026-03-01T23:59:59Z.json", key)
	require.Equal(t, body, stored)
	url, sent := only(t, s.queues)
	require.Equal(t, destinations.TelemetryQueueURL, url)
	require.Len(t, sent, 1)
	envelope := decode[Envelope](t, sent[0])
	require.Equal(t, body, string(envelope.Body))
	require.Equal(t, "aegis/factory-a/factory_state", envelope.Topic)
	require.Equal(t, received.UnixMilli(), envelope.ReceivedAt)
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, envelope.TraceID)
}

func TestBodyTravelsAsBase64(t *testing.T) {
	s := newStores()
	body := "not JSON \x00\xff"
	require.NoError(t, newBridge(t, s).Handle(t.Context(), message(body)))
	_, sent := only(t, s.queues)
	raw := decode[map[string]any](t, sent[0])
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte(body)), raw["body"])
}

func TestUnsafeMessageIDIsReplacedByTheTraceID(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON": "{", "no object": `["message_id"]`, "missing": `{}`, "no string": `{"message_id":7}`, "empty": `{"message_id":""}`,
		"slash": `{"message_id":"a/b"}`, "dots": `{"message_id":"a..b"}`, "control": `{"message_id":"a\nb"}`, "hash": `{"message_id":"a#b"}`,
		"1,000 characters": `{"message_id":"` + strings.Repeat("x", 1000) + `"}`, "other case": `{"Message_ID":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStores()
			require.NoError(t, newBridge(t, s).Handle(t.Context(), message(body)))
			key, stored := only(t, s.objects)
			_, sent := only(t, s.queues)
			require.Equal(t, partition+decode[Envelope](t, sent[0]).TraceID+".json", key, "the same id in both rules")
			require.Equal(t, body, stored)
		})
	}
}

func TestJobResultGoesToItsQueueOnly(t *testing.T) {
	s := newStores()
	m := broker.Message{Topic: "aegis/factory-a/jobs/run-1/result", Payload: []byte(`{"status":"SUCCEEDED"}`), ClientID: "edge-1"}
	require.NoError(t, newBridge(t, s).Handle(t.Context(), m))
	require.Empty(t, s.objects)
	url, sent := only(t, s.queues)
	require.Equal(t, destinations.JobResultsQueueURL, url)
	require.Equal(t, m.Topic, decode[Envelope](t, sent[0]).Topic)
}

func TestOtherTopicsMatchNoRule(t *testing.T) {
	s := newStores()
	b := newBridge(t, s)
	for _, topic := range []string{"aegis/factory-a/jobs/run-1", "aegis/factory-a", "other/factory-a/factory_state", "aegis/factory-a/x/y/z"} {
		require.NoError(t, b.Handle(t.Context(), broker.Message{Topic: topic, Payload: []byte("{}")}))
	}
	require.Empty(t, s.objects)
	require.Empty(t, s.queues)
	require.Zero(t, testutil.ToFloat64(b.Metrics.published))
}

func TestShortFailureIsRetried(t *testing.T) {
	s := newStores()
	s.fail["data"], s.fail["q/telemetry"] = 2, 1
	b := newBridge(t, s)
	require.NoError(t, b.Handle(t.Context(), message(`{"message_id":"m"}`)))
	require.Equal(t, map[string]int{"data": 3, "q/telemetry": 2}, s.tries)
	require.Len(t, s.objects, 1)
	require.Len(t, s.queues["q/telemetry"], 1)
	require.EqualValues(t, 1, testutil.ToFloat64(b.Metrics.stored))
	require.EqualValues(t, 1, testutil.ToFloat64(b.Metrics.queued))
}

func TestFailedRuleGivesItsErrorActionTheOriginal(t *testing.T) {
	tests := map[string]struct{ broken, rule, action, resource string }{
		"object store": {"data", RuleRaw, "S3Action", "data"},
		"queue":        {"q/telemetry", RuleTelemetry, "SqsAction", "q/telemetry"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStores()
			s.fail[test.broken] = -1
			b := newBridge(t, s)
			require.NoError(t, b.Handle(t.Context(), message(`{"message_id":"m"}`)))
			require.Len(t, s.queues["q/errors"], 1)
			record := decode[ErrorRecord](t, s.queues["q/errors"][0])
			require.Equal(t, test.rule, record.RuleName)
			require.Equal(t, "aegis/factory-a/factory_state", record.Topic)
			require.Equal(t, "edge-1", record.ClientID)
			require.NotEmpty(t, record.CloudWatchTraceID)
			original, err := base64.StdEncoding.DecodeString(record.Base64OriginalPayload)
			require.NoError(t, err)
			require.Equal(t, `{"message_id":"m"}`, string(original))
			require.Len(t, record.Failures, 1)
			require.Equal(t, test.action, record.Failures[0].FailedAction)
			require.Equal(t, test.resource, record.Failures[0].FailedResource)
			require.Contains(t, record.Failures[0].ErrorMessage, errDown.Error())
			require.EqualValues(t, 1, testutil.ToFloat64(b.Metrics.errorRecords))
			require.EqualValues(t, 1, testutil.ToFloat64(b.Metrics.failed.WithLabelValues(test.rule)))
		})
	}
}

func TestBothRulesFailingGiveTwoRecordsOfOneTrace(t *testing.T) {
	s := newStores()
	s.fail["data"], s.fail["q/telemetry"] = -1, -1
	require.NoError(t, newBridge(t, s).Handle(t.Context(), message("{}")))
	require.Len(t, s.queues["q/errors"], 2)
	first, second := decode[ErrorRecord](t, s.queues["q/errors"][0]), decode[ErrorRecord](t, s.queues["q/errors"][1])
	require.ElementsMatch(t, []string{RuleRaw, RuleTelemetry}, []string{first.RuleName, second.RuleName})
	require.Equal(t, first.CloudWatchTraceID, second.CloudWatchTraceID)
}

func TestFailedErrorActionLeavesTheMessageUnacknowledged(t *testing.T) {
	s := newStores()
	s.fail["data"], s.fail["q/errors"] = -1, -1
	b := newBridge(t, s)
	err := b.Handle(t.Context(), message("{}"))
	require.ErrorIs(t, err, errDown)
	require.ErrorContains(t, err, RuleRaw)
	require.EqualValues(t, 1, testutil.ToFloat64(b.Metrics.lost))
}

func TestRulesRunAtTheSameTime(t *testing.T) {
	s := newStores()
	var meeting sync.WaitGroup
	meeting.Add(2)
	s.hold = func(string) { meeting.Done(); meeting.Wait() }
	require.NoError(t, newBridge(t, s).Handle(t.Context(), message("{}")))
}

func TestHangingServiceIsGivenUp(t *testing.T) {
	s := newStores()
	b := newBridge(t, s)
	b.Objects = hanging{}
	b.Retry.Timeout = 10 * time.Millisecond
	require.NoError(t, b.Handle(t.Context(), message("{}")))
	record := decode[ErrorRecord](t, s.queues["q/errors"][0])
	require.Contains(t, record.Failures[0].ErrorMessage, context.DeadlineExceeded.Error())
}

type hanging struct{}

func (hanging) PutObject(ctx context.Context, _ *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestEndedContextIsNotRetried(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tries := 0
	err := Retry{Attempts: 5, Timeout: time.Second, Backoff: time.Hour}.do(ctx, func(ctx context.Context) error {
		tries++
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, tries)
}

func TestAllRetriesFitIntoAPublishersPatience(t *testing.T) {
	r := DefaultRetry
	worst := time.Duration(0)
	for attempt, pause := 1, r.Backoff; attempt <= r.Attempts; attempt, pause = attempt+1, pause*2 {
		worst += r.Timeout
		if attempt < r.Attempts {
			worst += pause
		}
	}
	require.Less(t, 2*worst, 10*time.Second)
}

func TestLargestMessageFitsTheQueue(t *testing.T) {
	s := newStores()
	require.NoError(t, newBridge(t, s).Handle(t.Context(), broker.Message{
		Topic: "aegis/factory-a/image_snapshot", Payload: bytes.Repeat([]byte{0xff}, broker.MaxPayload), ClientID: "e",
	}))
	_, sent := only(t, s.queues)
	require.Less(t, len(sent[0]), 256<<10)
}

func BenchmarkHandleWithoutStores(b *testing.B) {
	bridge := newBridge(b, newStores())
	discard := discarding{}
	bridge.Objects, bridge.Queues = discard, discard
	m := message(`{"message_id":"factory-a:factory_state:worker2:2026-03-01T23:59:59Z","payload":{"x":"` + strings.Repeat("y", 800) + `"}}`)
	for b.Loop() {
		if err := bridge.Handle(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}

type discarding struct{}

func (discarding) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return &s3.PutObjectOutput{}, nil
}

func (discarding) SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return &sqs.SendMessageOutput{}, nil
}
