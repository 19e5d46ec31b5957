package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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

// witness keeps everything that the servers of all tests logged and answered,
// but for the two answers that may show a token, and everything that none of it
// may contain.
var witness = struct {
	lock    sync.Mutex
	seen    bytes.Buffer
	secrets map[string]string
}{secrets: map[string]string{}}

func testify(text []byte) {
	witness.lock.Lock()
	defer witness.lock.Unlock()
	witness.seen.Write(text)
	witness.seen.WriteByte('\n')
}

func hide(what, text string) {
	witness.lock.Lock()
	defer witness.lock.Unlock()
	witness.secrets[text] = what
}

// TestMain ends with the test that no log line and no answer of all the tests
// showed a token, a hash or a part of an envelope.
func TestMain(m *testing.M) {
	code := m.Run()
	seen := witness.seen.String()
	for secret, what := range witness.secrets {
		if strings.Contains(seen, secret) {
			fmt.Printf("FAIL: a log line or an answer shows the %s of a token\n", what)
			code = 1
		}
	}
	if code == 0 && flagRuns() && (len(witness.secrets) < 100 || len(seen) < 10_000) {
		fmt.Printf("FAIL: only %d secrets and %d bytes were watched\n", len(witness.secrets), len(seen))
		code = 1
	}
	os.Exit(code)
}

// flagRuns tells whether the whole suite runs, not a part of it.
func flagRuns() bool {
	for _, arg := range os.Args {
		if run, found := strings.CutPrefix(arg, "-test.run="); found && run != "" {
			return false
		}
		if strings.HasPrefix(arg, "-test.fuzz") || strings.HasPrefix(arg, "-test.list") {
			return false
		}
	}
	return true
}

type witnessWriter struct{}

func (witnessWriter) Write(line []byte) (int, error) {
	testify(line)
	return len(line), nil
}

// countingAPI counts the requests to DynamoDB by operation.
type countingAPI struct {
	table.API
	gets, updates, queries, transactions, others atomic.Int64
}

func (c *countingAPI) total() int64 {
	return c.gets.Load() + c.updates.Load() + c.queries.Load() + c.transactions.Load() + c.others.Load()
}

func (c *countingAPI) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.gets.Add(1)
	return c.API.GetItem(ctx, in, o...)
}

func (c *countingAPI) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	c.gets.Add(1)
	return c.API.BatchGetItem(ctx, in, o...)
}

func (c *countingAPI) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.updates.Add(1)
	return c.API.UpdateItem(ctx, in, o...)
}

func (c *countingAPI) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	c.queries.Add(1)
	return c.API.Query(ctx, in, o...)
}

func (c *countingAPI) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.transactions.Add(1)
	return c.API.TransactWriteItems(ctx, in, o...)
}

func (c *countingAPI) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	c.others.Add(1)
	return c.API.PutItem(ctx, in, o...)
}

func (c *countingAPI) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	c.others.Add(1)
	return c.API.DeleteItem(ctx, in, o...)
}

// fixture is a running server on a table of its own.
type fixture struct {
	t      testing.TB
	store  monitoringstore.Store
	calls  *countingAPI
	ring   monitoring.KeyRing
	url    string
	server *server.Server
}

// clock is a clock that tests can set. It starts in the middle of a minute.
type clock struct{ offset atomic.Int64 }

var clockStart = time.Date(2026, 11, 30, 12, 0, 20, 0, time.UTC)

func (c *clock) Now() time.Time          { return clockStart.Add(time.Duration(c.offset.Load())) }
func (c *clock) Advance(d time.Duration) { c.offset.Add(int64(d)) }

func newRing(t testing.TB, ids ...string) monitoring.KeyRing {
	t.Helper()
	var ring monitoring.KeyRing
	for _, id := range ids {
		next, err := ring.With(id, rand.Reader)
		require.NoError(t, err)
		ring = next
	}
	return ring
}

func newTable(t testing.TB) (monitoringstore.Store, *countingAPI) {
	t.Helper()
	keeper := storagetest.Table(t, storagetest.Monitoring)
	calls := &countingAPI{API: keeper.Client}
	keeper.Client = calls
	return monitoringstore.Store{Table: keeper}, calls
}

func newFixture(t testing.TB, routes ...server.Routes) *fixture {
	t.Helper()
	store, calls := newTable(t)
	return start(t, store, calls, newRing(t, "k1"), server.Config{}, routes...)
}

// start runs a server; several may share a table, as instances do.
func start(t testing.TB, store monitoringstore.Store, calls *countingAPI, ring monitoring.KeyRing, cfg server.Config, routes ...server.Routes) *fixture {
	t.Helper()
	cfg.Tokens, cfg.Ring = store, ring
	cfg.Logger = slog.New(slog.NewJSONHandler(witnessWriter{}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	s, err := server.New(cfg, append([]server.Routes{server.Tokens(store, ring, now)}, routes...)...)
	require.NoError(t, err)
	web := httptest.NewServer(s)
	f := &fixture{t: t, store: store, calls: calls, ring: ring, url: web.URL, server: s}
	t.Cleanup(func() {
		web.Close()
		require.NoError(t, s.Close(context.Background()))
	})
	return f
}

// issue stores a token as the starter does.
func (f *fixture) issue(owner string, scopes ...monitoring.Scope) (monitoring.Token, string) {
	f.t.Helper()
	return f.issueUnder(f.ring, owner, scopes...)
}

func (f *fixture) issueUnder(ring monitoring.KeyRing, owner string, scopes ...monitoring.Scope) (monitoring.Token, string) {
	f.t.Helper()
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	token, secret, err := monitoring.Issue(monitoring.Request{Owner: owner, Name: "test", Scopes: names}, ring, rand.Reader, time.Now())
	require.NoError(f.t, err)
	require.NoError(f.t, f.store.CreateToken(f.t.Context(), token))
	hideToken(token, secret.Plaintext())
	return token, secret.Plaintext()
}

func hideToken(token monitoring.Token, plaintext string) {
	hide("plaintext", plaintext)
	hide("hash", token.Hash)
	if raw, err := hex.DecodeString(token.Hash); err == nil {
		hide("hash in base64", base64.StdEncoding.EncodeToString(raw))
	}
	if token.Recovery != nil {
		for name, part := range map[string][]byte{"nonce": token.Recovery.Nonce, "ciphertext": token.Recovery.Ciphertext, "tag": token.Recovery.Tag} {
			hide(name, base64.StdEncoding.EncodeToString(part))
			hide(name, hex.EncodeToString(part))
		}
	}
}

// answer is what a server answered.
type answer struct {
	t      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

func (a answer) decode(into any) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.Body, into), string(a.Body))
}

func (a answer) problem(status int, code string) server.Problem {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, string(a.Body))
	require.Equal(a.t, "application/problem+json", a.Header.Get("Content-Type"))
	var p server.Problem
	a.decode(&p)
	require.Equal(a.t, "urn:millrace:problem:"+code, p.Type)
	require.Equal(a.t, status, p.Status)
	require.Equal(a.t, "urn:millrace:request:"+a.Header.Get("X-Request-Id"), p.Instance)
	return p
}

// call makes a request with a token; "" sends none.
func (f *fixture) call(method, path, token, body string, headers ...string) answer {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return f.do(request)
}

func (f *fixture) do(request *http.Request) answer {
	f.t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(f.t, err)
	defer func() { require.NoError(f.t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	mayShow := request.Method == http.MethodPost && response.StatusCode < 300 &&
		(request.URL.Path == "/v1/tokens" || strings.HasSuffix(request.URL.Path, "/reveal"))
	testify(fmt.Appendf(nil, "%v", response.Header))
	if !mayShow {
		testify(body)
	}
	f.requireContract(request, response, body)
	return answer{t: f.t, Status: response.StatusCode, Header: response.Header, Body: body}
}
