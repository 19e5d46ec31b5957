package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
)

// noTokens is a token store without tokens.
type noTokens struct{ server.TokenStore }

func (noTokens) Grant(context.Context, string) (monitoring.Grant, bool, error) {
	return monitoring.Grant{}, false, nil
}

// anyToken is a token store that takes every token and counts nothing.
type anyToken struct{ server.TokenStore }

func (anyToken) Grant(_ context.Context, hash string) (monitoring.Grant, bool, error) {
	return monitoring.Grant{Hash: hash, Owner: "user:kim", TokenID: "tok", Scopes: monitoring.AllScopes()}, true, nil
}

func (anyToken) Spend(context.Context, string, monitoring.BudgetKind, int64, time.Time) error {
	return nil
}

func (anyToken) RecordUse(context.Context, string, string, time.Time) (bool, error) { return true, nil }

var someToken = "mr_" + strings.Repeat("A", 43)

func probe(s http.Handler, header string) (status int, challenge string) {
	request := httptest.NewRequest(http.MethodGet, "/door", http.NoBody)
	request.Header.Set("Authorization", header)
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Header().Get("WWW-Authenticate")
}

// failing is an operation that ends in an error, or in a panic.
func failing(err error) server.Routes {
	return func(r *server.Router) {
		server.Handle(r, server.Operation{ID: "fail", Method: http.MethodGet, Path: "/fail/{id}", Scope: monitoring.ScopeRead},
			func(ctx context.Context, _ *struct {
				ID string `path:"id"`
			},
			) (*struct{}, error) {
				if err == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if errors.Is(err, errPanic) {
					panic("boom")
				}
				return nil, err
			})
	}
}

var errPanic = errors.New("panic")

func fail(t *testing.T, err error) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	s, newErr := server.New(server.Config{
		Tokens: anyToken{}, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Timeout: 20 * time.Millisecond,
	}, failing(err))
	require.NoError(t, newErr)
	request := httptest.NewRequest(http.MethodGet, "/fail/secret-path?x=1", http.NoBody)
	request.URL.RawQuery = ""
	request.Header.Set("Authorization", "Bearer "+someToken)
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	require.NoError(t, s.Close(t.Context()))
	return recorder, log.String()
}

func TestErrorsBecomeProblems(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"bad input":      {&monitoring.InvalidError{Field: "name", Rule: "must be short"}, http.StatusBadRequest, "invalid-input"},
		"problem":        {server.NewProblem(http.StatusConflict, "taken", "it is taken"), http.StatusConflict, "taken"},
		"over budget":    {&monitoring.BudgetExceededError{Kind: "read", RetryAfter: 3 * time.Second}, http.StatusTooManyRequests, "budget-exceeded"},
		"store fails":    {&smithy.OperationError{ServiceID: "DynamoDB", OperationName: "GetItem", Err: errors.New("refused")}, http.StatusGatewayTimeout, "store-unavailable"},
		"store is slow":  {nil, http.StatusGatewayTimeout, "store-unavailable"},
		"anything else":  {errors.New("secret detail"), http.StatusInternalServerError, "internal"},
		"handler panics": {errPanic, http.StatusInternalServerError, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder, log := fail(t, c.err)
			require.Equal(t, c.status, recorder.Code)
			require.Equal(t, "application/problem+json", recorder.Header().Get("Content-Type"))
			var p server.Problem
			require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &p))
			require.Equal(t, "urn:millrace:problem:"+c.code, p.Type)
			require.NotContains(t, recorder.Body.String(), "secret detail")
			require.Contains(t, log, `"route":"/fail/{id}"`)
			require.NotContains(t, log, "secret-path")
			require.Contains(t, p.Instance, recorder.Header().Get("X-Request-Id"))
		})
	}
}

func TestCausesOfOurFailuresAreLoggedOnce(t *testing.T) {
	_, log := fail(t, errors.New("disk on fire"))
	require.Equal(t, 1, strings.Count(log, "disk on fire"))
	require.Contains(t, log, `"level":"ERROR"`)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	f := newFixture(t, doors)
	f.call(http.MethodGet, "/nowhere?q=1", "", "").problem(http.StatusNotFound, "not-found")
	a := f.call(http.MethodDelete, "/door", "", "")
	a.problem(http.StatusMethodNotAllowed, "method-not-allowed")
	require.Equal(t, "GET, PUT", a.Header.Get("Allow"))
	require.Equal(t, "GET, DELETE", f.call(http.MethodPut, "/v1/tokens/a%2Fb", "", "").Header.Get("Allow"))
}

func TestUnknownQueryParametersAreNamed(t *testing.T) {
	f := newFixture(t, doors)
	_, plaintext := f.issue("user:kim", monitoring.ScopeRead)
	p := f.call(http.MethodGet, "/door?windw=1h", plaintext, "").problem(http.StatusBadRequest, "invalid-input")
	require.Equal(t, "query.windw", p.Errors[0].Field)
}

func TestRequestIDsAreKeptWhereHarmless(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, "abc-1", f.call(http.MethodGet, "/healthz", "", "", "X-Request-Id", "abc-1").Header.Get("X-Request-Id"))
	for _, bad := range []string{"a b", strings.Repeat("x", 65), "a\"b", "mr_" + strings.Repeat("x", 43)} {
		got := f.call(http.MethodGet, "/healthz", "", "", "X-Request-Id", bad).Header.Get("X-Request-Id")
		require.NotEqual(t, bad, got)
		require.NotEmpty(t, got)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var down atomic.Bool
	var checks atomic.Int64
	at := &clock{}
	s, err := server.New(server.Config{Tokens: noTokens{}, Now: at.Now, Checks: map[string]server.Check{
		"dynamodb": func(context.Context) error {
			checks.Add(1)
			if down.Load() {
				return errors.New("connection refused by 10.0.0.1")
			}
			return nil
		},
	}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, get(s, "/healthz").Code)
	require.JSONEq(t, `{"status":"ok","dependencies":{"dynamodb":"ok"}}`, get(s, "/readyz").Body.String())
	for range 10 {
		get(s, "/readyz")
	}
	require.Equal(t, int64(1), checks.Load(), "probes need no token and must cost little")
	down.Store(true)
	at.Advance(time.Second)
	ready := get(s, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, ready.Code)
	require.JSONEq(t, `{"status":"degraded","dependencies":{"dynamodb":"unavailable"}}`, ready.Body.String())
	require.Equal(t, http.StatusOK, get(s, "/healthz").Code)
}

func get(s http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	return recorder
}

func TestOnlyConfiguredOriginsMayReadAnswers(t *testing.T) {
	s, err := server.New(server.Config{Tokens: noTokens{}, Origins: []string{"https://dash.example.org"}})
	require.NoError(t, err)
	allowed := get(s, "/healthz", "Origin", "https://dash.example.org")
	require.Equal(t, "https://dash.example.org", allowed.Header().Get("Access-Control-Allow-Origin"))
	for _, origin := range []string{"", "https://evil.example.org", "https://dash.example.org.evil.org", "null"} {
		refused := get(s, "/healthz", "Origin", origin)
		require.Empty(t, refused.Header().Get("Access-Control-Allow-Origin"), origin)
		require.Equal(t, "Origin", refused.Header().Get("Vary"))
	}
	preflight := httptest.NewRequest(http.MethodOptions, "/v1/tokens", http.NoBody)
	preflight.Header.Set("Origin", "https://dash.example.org")
	preflight.Header.Set("Access-Control-Request-Method", http.MethodPost)
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, preflight)
	require.Equal(t, http.StatusNoContent, recorder.Code)
	require.Contains(t, recorder.Header().Get("Access-Control-Allow-Headers"), "Authorization")
}

func TestMetricsCountByTemplate(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := server.New(server.Config{Tokens: anyToken{}, Registry: registry}, doors)
	require.NoError(t, err)
	for _, path := range []string{"/door", "/door", "/a", "/b"} {
		get(s, path, "Authorization", "Bearer "+someToken)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "millrace_http_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			counts[strings.Join(labels, " ")] = metric.GetCounter().GetValue()
		}
	}
	require.Equal(t, map[string]float64{"GET /door 200": 2, "GET none 404": 2}, counts)
}

func TestAStoppingServerFinishesWhatIsUnderWay(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	slow := func(r *server.Router) {
		server.Handle(r, server.Operation{ID: "slow", Method: http.MethodGet, Path: "/slow", Public: true},
			func(context.Context, *struct{}) (*struct{}, error) {
				close(entered)
				<-release
				return nil, nil
			})
	}
	s, err := server.New(server.Config{Tokens: noTokens{}}, slow)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String() + "/slow") //nolint:noctx // ends with the server
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-entered
	stop()
	require.Eventually(t, func() bool {
		return strings.Contains(get(s, "/readyz").Body.String(), `"stopping"`)
	}, 5*time.Second, time.Millisecond)
	close(release)
	require.Equal(t, http.StatusNoContent, <-answered)
	require.NoError(t, <-served)
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	type streamOutput struct {
		Body func(huma.Context)
	}
	started := make(chan struct{})
	stream := func(r *server.Router) {
		server.Handle(r, server.Operation{ID: "stream", Method: http.MethodGet, Path: "/stream", Public: true, Streaming: true},
			func(ctx context.Context, _ *struct{}) (*streamOutput, error) {
				return &streamOutput{Body: func(hc huma.Context) {
					_, _ = io.WriteString(hc.BodyWriter(), "begun\n")
					close(started)
					<-ctx.Done()
					_, _ = io.WriteString(hc.BodyWriter(), "ended\n")
				}}, nil
			})
	}
	s, err := server.New(server.Config{Tokens: noTokens{}, Timeout: time.Millisecond}, stream)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	body := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String() + "/stream") //nolint:noctx // ends with the server
		if err != nil {
			body <- err.Error()
			return
		}
		all, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		body <- string(all)
	}()
	<-started
	time.Sleep(20 * time.Millisecond) // longer than any other operation may take
	stop()
	require.Equal(t, "begun\nended\n", <-body)
	require.NoError(t, <-served)
}

// bounded runs work through a bound, as the client does: each operation has a
// stack of its own.
func bounded(ctx context.Context, bound func(*middleware.Stack) error, work func()) error {
	stack := middleware.NewStack("test", func() any { return nil })
	if err := bound(stack); err != nil {
		return err
	}
	_, _, err := middleware.DecorateHandler(middleware.HandlerFunc(func(context.Context, any) (any, middleware.Metadata, error) {
		work()
		return nil, middleware.Metadata{}, nil
	}), stack).Handle(ctx, nil)
	return err
}

func TestStoreOperationsAreBounded(t *testing.T) {
	const limit = 3
	bound := server.Bound(limit)
	var running, tooMany atomic.Int64
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			err := bounded(t.Context(), bound, func() {
				if running.Add(1) > limit {
					tooMany.Add(1)
				}
				time.Sleep(5 * time.Millisecond)
				running.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	require.Zero(t, tooMany.Load())
}

func TestWaitingForTheStoreEndsWithTheRequest(t *testing.T) {
	bound := server.Bound(1)
	held, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = bounded(context.Background(), bound, func() {
			close(held)
			<-release
		})
	}()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, bounded(ctx, bound, func() { t.Error("ran beyond the bound") }), context.DeadlineExceeded)
	close(release)
}

func TestBodiesThatStopComingAreNotWaitedForForever(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens)
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/tokens", reader)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+caller)
	request.Header.Set("Content-Type", "application/json")
	go func() {
		_, _ = writer.Write([]byte(`{"name":`))
		_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	}()
	response, err := http.DefaultClient.Do(request)
	if err == nil { // the client may see its own failure first
		defer response.Body.Close() //nolint:errcheck // nothing to do about it
		require.GreaterOrEqual(t, response.StatusCode, http.StatusBadRequest)
	}
	tokens, _, err := f.store.Tokens(t.Context(), "user:kim", "", 10)
	require.NoError(t, err)
	require.Len(t, tokens, 1, "no token was made")
}
