package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/stretchr/testify/require"

	"millrace/platform/awsconf"
)

const modelID = "anthropic.claude-3-sonnet-20240229-v1:0"

func request() Request {
	return Request{
		Model: modelID, System: "words only", User: "<findings/>", MaxTokens: 3000, Temperature: 0.2,
		Tool: Tool{Name: "write_report", Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"maximum":7}}}`)},
	}
}

// service is the real wire with a service of our own behind it; it counts the
// requests.
func service(t *testing.T, serve http.HandlerFunc) (Model, *int) {
	t.Helper()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.URL)
	t.Setenv("AWS_REGION", "ap-south-2")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	cfg, err := awsconf.Load(t.Context())
	require.NoError(t, err)
	return Model{API: New(cfg)}, &calls
}

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func TestARequestForcesTheToolAndGoesWhereTheSettingsSay(t *testing.T) {
	var got map[string]any
	var path, auth string
	model, calls := service(t, func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.EscapedPath(), r.Header.Get("Authorization")
		require.NoError(t, json.NewDecoder(r.Body).Decode(&got))
		answering(`{"output":{"message":{"role":"assistant","content":[{"text":"Well: "},{"toolUse":{"toolUseId":"t1","name":"write_report","input":{"sections":[],"n":1.50}}}]}},
			"stopReason":"tool_use","usage":{"inputTokens":11,"outputTokens":3,"totalTokens":14},"metrics":{"latencyMs":42}}`)(w, r)
	})
	a, err := model.Ask(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, 1, *calls)
	require.Equal(t, "/model/anthropic.claude-3-sonnet-20240229-v1%3A0/converse", path)
	require.Contains(t, auth, "/bedrock/aws4_request")
	require.JSONEq(t, `{"sections":[],"n":1.5}`, string(a.Input))
	require.Equal(t, Answer{Input: a.Input, Text: "Well: ", Stop: StopToolUse, InputTokens: 11, OutputTokens: 3, Latency: 42 * time.Millisecond}, a)

	body, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"system":[{"text":"words only"}],
		"messages":[{"role":"user","content":[{"text":"<findings/>"}]}],
		"inferenceConfig":{"maxTokens":3000,"temperature":0.2},
		"toolConfig":{"tools":[{"toolSpec":{"name":"write_report","description":"d","inputSchema":{"json":{"type":"object","properties":{"n":{"maximum":7}}}}}}],
			"toolChoice":{"tool":{"name":"write_report"}}}}`, string(body))
}

func TestAnswersMayLackAnything(t *testing.T) {
	cases := map[string]struct {
		body string
		want Answer
	}{
		"nothing at all":   {`{}`, Answer{}},
		"text alone":       {`{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn"}`, Answer{Text: "hi", Stop: "end_turn"}},
		"another tool":     {`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"other","input":{}}}]}},"stopReason":"tool_use"}`, Answer{Stop: StopToolUse}},
		"a new stop word":  {`{"stopReason":"bored","usage":{"inputTokens":5,"outputTokens":0,"totalTokens":5}}`, Answer{Stop: "bored", InputTokens: 5}},
		"no input":         {`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"write_report"}}]}},"stopReason":"max_tokens"}`, Answer{Stop: StopMaxTokens}},
		"the tool twice":   {`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"write_report","input":{"a":1}}},{"toolUse":{"toolUseId":"2","name":"write_report","input":{"b":1}}}]}}}`, Answer{Input: json.RawMessage(`{"a":1}`)}},
		"an unknown block": {`{"output":{"message":{"role":"assistant","content":[{"novel":{"x":1}},{"text":"t"}]}}}`, Answer{Text: "t"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			model, _ := service(t, answering(c.body))
			a, err := model.Ask(t.Context(), request())
			require.NoError(t, err)
			require.Equal(t, c.want, a)
		})
	}
}

func TestErrorsSayWhetherToTryAgain(t *testing.T) {
	typed := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", code)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"message":"said so"}`)
		}
	}
	plain := func(status int, header http.Header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for name := range header {
				w.Header().Set(name, header.Get(name))
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	cases := map[string]struct {
		serve     http.HandlerFunc
		code      string
		retryable bool
		after     time.Duration
	}{
		"throttled":               {typed(429, "ThrottlingException"), "ThrottlingException", true, 10 * time.Second},
		"throttled with a suffix": {typed(429, "aws.bedrock#ThrottlingException:http://internal.amazon.com/coral/"), "ThrottlingException", true, 10 * time.Second},
		"throttled with a time": {
			plain(429, http.Header{"X-Amzn-Errortype": {"ThrottlingException"}, "Retry-After": {"7"}}, `{"message":"slower"}`),
			"ThrottlingException", true, 7 * time.Second,
		},
		"throttled, named in the body": {plain(429, nil, `{"__type":"ThrottlingException","message":"slower"}`), "ThrottlingException", true, 10 * time.Second},
		"429 of no name":               {plain(429, nil, `{"message":"slower"}`), "UnknownError", true, 10 * time.Second},
		"internal":                     {typed(500, "InternalServerException"), "InternalServerException", true, 0},
		"unavailable":                  {typed(503, "ServiceUnavailableException"), "ServiceUnavailableException", true, 10 * time.Second},
		"500 that is no JSON":          {plain(500, nil, `<html>bad gateway</html>`), "UnreadableAnswer", true, 0},
		"model timeout":                {typed(408, "ModelTimeoutException"), "ModelTimeoutException", true, 0},
		"model not ready":              {typed(429, "ModelNotReadyException"), "ModelNotReadyException", true, 30 * time.Second},
		"model error":                  {typed(424, "ModelErrorException"), "ModelErrorException", true, 0},
		"quota":                        {typed(400, "ServiceQuotaExceededException"), "ServiceQuotaExceededException", true, time.Minute},
		"invalid":                      {typed(400, "ValidationException"), "ValidationException", false, 0},
		"denied":                       {typed(403, "AccessDeniedException"), "AccessDeniedException", false, 0},
		"no such model":                {typed(404, "ResourceNotFoundException"), "ResourceNotFoundException", false, 0},
		"other 4xx":                    {typed(413, "PayloadTooLargeException"), "PayloadTooLargeException", false, 0},
		"half a token":                 {answering(`{"usage":{"inputTokens":1.5}}`), "UnreadableAnswer", true, 0},
		"cut off":                      {answering(`{"output":{"message":`), "UnreadableAnswer", true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			model, calls := service(t, c.serve)
			_, err := model.Ask(t.Context(), request())
			failed, ok := errors.AsType[*Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.code, failed.Code)
			require.Equal(t, c.retryable, failed.Retryable)
			require.Equal(t, c.after, failed.RetryAfter)
			require.Equal(t, 1, *calls, "the SDK must not retry by itself")
			require.NotContains(t, err.Error(), "findings", "an error repeats nothing of what was asked")
		})
	}
}

func TestSDKNamesItsTypedErrors(t *testing.T) {
	model, _ := service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", "ModelNotReadyException")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"Message":"warming up"}`)
	})
	_, err := model.Ask(t.Context(), request())
	var typed *types.ModelNotReadyException
	require.ErrorAs(t, err, &typed)
	require.EqualError(t, err, "bedrock ModelNotReadyException: warming up")
}

func TestARequestEndsInTime(t *testing.T) {
	release := make(chan struct{})
	model, _ := service(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	model.Timeout = 50 * time.Millisecond
	_, err := model.Ask(t.Context(), request())
	failed, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "RequestTimeout", failed.Code)
	require.True(t, failed.Retryable)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = model.Ask(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	_, ok = errors.AsType[*Error](err)
	require.False(t, ok, "giving up is no failure of the model's")
}

func TestNobodyListening(t *testing.T) {
	model := Model{API: New(aws.Config{
		Region: "ap-south-2", BaseEndpoint: aws.String("http://127.0.0.1:" + strconv.Itoa(1)),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})}
	_, err := model.Ask(t.Context(), request())
	failed, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "NoAnswer", failed.Code)
	require.True(t, failed.Retryable)
}

func TestASchemaThatIsNoJSONIsRefused(t *testing.T) {
	r := request()
	r.Tool.Schema = json.RawMessage(`{`)
	_, err := Model{}.Ask(t.Context(), r)
	failed, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	require.False(t, failed.Retryable)
}

// TestAnswersMayTakeLongerThanThoseOfOtherServices has a configuration whose
// connections give up at once.
func TestAnswersMayTakeLongerThanThoseOfOtherServices(t *testing.T) {
	model, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		answering(`{"stopReason":"end_turn"}`)(w, r)
	})
	cfg, err := awsconf.Load(t.Context())
	require.NoError(t, err)
	cfg.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.ResponseHeaderTimeout = time.Millisecond })
	model.API = New(cfg)
	answer, err := model.Ask(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, "end_turn", answer.Stop)
}
