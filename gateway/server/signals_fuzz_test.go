package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"millrace/domain/observability"
	"millrace/gateway/server"
)

// checkingStore takes signals that keep the rules; for others it fails, which the
// gateway answers with 500.
type checkingStore struct{}

func (checkingStore) Put(_ context.Context, s observability.Signal) (bool, error) {
	if err := s.Check(s.ReceivedAt); err != nil {
		return false, fmt.Errorf("a signal that breaks a rule got in: %w", err)
	}
	return true, nil
}

// FuzzDoorsOfSignals sends anything to both doors: the answer is never a failure
// of ours, and what gets in keeps the rules.
func FuzzDoorsOfSignals(f *testing.F) {
	at := uint64(time.Now().UnixNano())
	span := &trace.Span{
		TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{9}, 8), Name: "chat", StartTimeUnixNano: at, EndTimeUnixNano: at + 5,
		Attributes: []*common.KeyValue{
			{Key: "gen_ai.operation.name", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "chat"}}},
			{Key: "gen_ai.usage.input_tokens", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 5}}},
			{Key: "millrace.app_id", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "app-x"}}},
		},
	}
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{span}}}}}})
	require.NoError(f, err)
	f.Add("/v1/traces", "application/x-protobuf", "", body)
	f.Add("/v1/traces", "application/json", "", []byte(otlpJSON))
	f.Add("/v1/traces", "application/json", "gzip", []byte("\x1f\x8b"))
	f.Add("/v1/signals", "application/json", "", []byte("["+sent("a", time.Now(), `,"cost_usd":1e-30`)+"]"))
	s, err := server.New(server.Config{Tokens: anyToken{}}, server.Signals(checkingStore{}, observability.Prices{}, prometheus.NewRegistry(), time.Now))
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close(context.Background())) })
	f.Fuzz(func(t *testing.T, path, contentType, encoding string, body []byte) {
		if path != "/v1/traces" {
			path = "/v1/signals"
		}
		request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		request.Header = http.Header{"Authorization": {"Bearer " + someToken}, "Content-Type": {contentType}, "Content-Encoding": {encoding}}
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		require.Less(t, recorder.Code, http.StatusInternalServerError, recorder.Body.String())
	})
}
