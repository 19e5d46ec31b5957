package server_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/storage/table"
)

// doors are operations for the tests of the doors themselves.
func doors(r *server.Router) {
	type whoOutput struct {
		Body struct {
			Owner string `json:"owner"`
		}
	}
	who := func(ctx context.Context, _ *struct{}) (*whoOutput, error) {
		out := &whoOutput{}
		out.Body.Owner = server.PrincipalFrom(ctx).Owner
		return out, nil
	}
	server.Handle(r, server.Operation{ID: "door-read", Method: http.MethodGet, Path: "/door", Scope: monitoring.ScopeRead}, who)
	server.Handle(r, server.Operation{ID: "door-write", Method: http.MethodPut, Path: "/door", Scope: monitoring.ScopeWrite}, who)
	type factoryInput struct {
		FactoryID string `path:"factory_id"`
	}
	server.Handle(r, server.Operation{ID: "door-path", Method: http.MethodPost, Path: "/door/{factory_id}", Scope: "image:upload/{factory_id}"},
		func(ctx context.Context, _ *factoryInput) (*whoOutput, error) { return who(ctx, nil) })
	server.Handle(r, server.Operation{ID: "door-body", Method: http.MethodPost, Path: "/body-door", Scope: "image:upload/{factory_id}"},
		func(ctx context.Context, _ *struct{}) (*whoOutput, error) {
			if err := server.PrincipalFrom(ctx).Require(monitoring.ImageUpload("factory-b")); err != nil {
				return nil, err
			}
			return who(ctx, nil)
		})
}

func TestWithoutAGoodTokenTheAnswerIs401WithAChallenge(t *testing.T) {
	f := newFixture(t, doors)
	revoked, plaintext := f.issue("user:kim", monitoring.ScopeRead)
	_, err := f.store.RevokeToken(t.Context(), revoked.Owner, revoked.ID, time.Now())
	require.NoError(t, err)
	unknown, err := monitoring.NewSecret(rand.Reader)
	require.NoError(t, err)
	hide("plaintext", unknown.Plaintext())
	hide("hash", unknown.Hash())

	for name, c := range map[string]struct{ header, challenge string }{
		"none":          {"", `Bearer realm="millrace"`},
		"other scheme":  {"Basic a2ltOnB3", `Bearer realm="millrace"`},
		"no token":      {"Bearer", `Bearer realm="millrace", error="invalid_token"`},
		"not a token":   {"Bearer hunter2", `Bearer realm="millrace", error="invalid_token"`},
		"two spaces":    {"Bearer  " + plaintext, `Bearer realm="millrace", error="invalid_token"`},
		"unknown token": {"Bearer " + unknown.Plaintext(), `Bearer realm="millrace", error="invalid_token"`},
		"revoked token": {"Bearer " + plaintext, `Bearer realm="millrace", error="invalid_token"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.call(http.MethodGet, "/door", "", "", "Authorization", c.header)
			a.problem(http.StatusUnauthorized, "unauthenticated")
			require.Equal(t, c.challenge, a.Header.Get("WWW-Authenticate"))
		})
	}
}

func TestMalformedTokensCostTheStoreNothing(t *testing.T) {
	f := newFixture(t, doors)
	f.call(http.MethodGet, "/door", "mr_short", "")
	require.Zero(t, f.calls.total())
}

func TestTwoAuthorizationHeadersAreRefused(t *testing.T) {
	f := newFixture(t, doors)
	_, plaintext := f.issue("user:kim", monitoring.ScopeRead)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/door", http.NoBody)
	require.NoError(t, err)
	request.Header["Authorization"] = []string{"Bearer " + plaintext, "Bearer " + plaintext}
	f.do(request).problem(http.StatusUnauthorized, "unauthenticated")
}

func TestAnotherScopeIs403WithItsName(t *testing.T) {
	f := newFixture(t, doors)
	_, reader := f.issue("user:kim", monitoring.ScopeRead, monitoring.ScopeAdmin)
	require.Equal(t, http.StatusOK, f.call(http.MethodGet, "/door", reader, "").Status)
	a := f.call(http.MethodPut, "/door", reader, "")
	a.problem(http.StatusForbidden, "forbidden")
	require.Equal(t, `Bearer realm="millrace", error="insufficient_scope", scope="write"`, a.Header.Get("WWW-Authenticate"))
}

func TestScopesWithAFactoryAreCompletedByThePathOrTheHandler(t *testing.T) {
	f := newFixture(t, doors)
	_, uploader := f.issue("user:kim", monitoring.ImageUpload("factory-a"))
	_, reader := f.issue("user:kim", monitoring.ScopeRead)
	require.Equal(t, http.StatusOK, f.call(http.MethodPost, "/door/factory-a", uploader, "").Status)
	f.call(http.MethodPost, "/door/factory-b", uploader, "").problem(http.StatusForbidden, "forbidden")
	f.call(http.MethodPost, "/door/factory-a", reader, "").problem(http.StatusForbidden, "forbidden")
	f.call(http.MethodPost, "/body-door", uploader, "").problem(http.StatusForbidden, "forbidden")
	f.call(http.MethodPost, "/body-door", reader, "").problem(http.StatusForbidden, "forbidden")
	_, other := f.issue("user:kim", monitoring.ImageUpload("factory-b"))
	require.Equal(t, http.StatusOK, f.call(http.MethodPost, "/body-door", other, "").Status)
}

func TestTheOwnerOfTheTokenIsThePrincipal(t *testing.T) {
	f := newFixture(t, doors)
	_, plaintext := f.issue("app:shop", monitoring.ScopeRead)
	var who struct{ Owner string }
	a := f.call(http.MethodGet, "/door", plaintext, "")
	a.decode(&who)
	require.Equal(t, "app:shop", who.Owner)
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
}

func TestOperationsMustDeclareWhoMayCallThem(t *testing.T) {
	undeclared := func(r *server.Router) {
		server.Handle(r, server.Operation{ID: "open", Method: http.MethodGet, Path: "/open"},
			func(context.Context, *struct{}) (*struct{}, error) { return nil, nil })
	}
	require.Panics(t, func() { _, _ = server.New(server.Config{}, undeclared) })
}

func TestBudgetsAreExactAcrossTwoInstances(t *testing.T) {
	store, calls := newTable(t)
	ring := newRing(t, "k1")
	at := &clock{}
	cfg := server.Config{Now: at.Now, Limits: monitoring.Limits{Read: 30, Write: 7, TokenCreate: 3}}
	instances := []*fixture{start(t, store, calls, ring, cfg, doors), start(t, store, calls, ring, cfg, doors)}
	first := instances[0]
	_, one := first.issue("user:kim", monitoring.ScopeRead, monitoring.ScopeWrite, monitoring.ScopeTokens)
	_, two := first.issue("user:kim", monitoring.ScopeRead)
	_, other := first.issue("user:lee", monitoring.ScopeRead)

	var passed, refused atomic.Int64
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			a := instances[i%2].call(http.MethodGet, "/door", []string{one, two}[i/2%2], "")
			switch a.Status {
			case http.StatusOK:
				passed.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
				if a.Header.Get("Retry-After") != "40" {
					t.Errorf("Retry-After is %q at 20 seconds past the minute", a.Header.Get("Retry-After"))
				}
			}
		})
	}
	wait.Wait()
	require.Equal(t, int64(30), passed.Load(), "all tokens of an owner share its budget")
	require.Equal(t, int64(20), refused.Load())

	first.call(http.MethodGet, "/door", one, "").problem(http.StatusTooManyRequests, "budget-exceeded")
	require.Equal(t, http.StatusOK, first.call(http.MethodGet, "/door", other, "").Status, "another owner's budget")
	require.Equal(t, http.StatusOK, first.call(http.MethodPut, "/door", one, "").Status, "another kind of budget")
	for i := range 4 {
		want := http.StatusCreated
		if i == 3 {
			want = http.StatusTooManyRequests
		}
		require.Equal(t, want, instances[i%2].call(http.MethodPost, "/v1/tokens", one, `{"name":"x","scopes":["read"]}`).Status)
	}
	at.Advance(40 * time.Second)
	require.Equal(t, http.StatusOK, first.call(http.MethodGet, "/door", one, "").Status, "the next minute")
}

func TestAUsedUpBudgetCostsOneReadARequest(t *testing.T) {
	store, calls := newTable(t)
	at := &clock{}
	f := start(t, store, calls, newRing(t, "k1"), server.Config{Now: at.Now, Limits: monitoring.Limits{Read: 1, Write: 1, TokenCreate: 1}}, doors)
	_, plaintext := f.issue("user:kim", monitoring.ScopeRead)
	for range 2 {
		f.call(http.MethodGet, "/door", plaintext, "")
	}
	require.Eventually(t, func() bool { return f.lastUse("user:kim") != nil }, 5*time.Second, 10*time.Millisecond)
	before := calls.total()
	for range 5 {
		f.call(http.MethodGet, "/door", plaintext, "").problem(http.StatusTooManyRequests, "budget-exceeded")
	}
	require.Equal(t, int64(5), calls.total()-before)
}

func TestAnAuthenticatedReadIsALookupAnIncrementAndARead(t *testing.T) {
	f := newFixture(t, doors)
	token, plaintext := f.issue("user:kim", monitoring.ScopeTokens)
	path := "/v1/tokens/" + token.ID
	f.call(http.MethodGet, path, plaintext, "")
	require.Eventually(t, func() bool { return f.lastUse("user:kim") != nil }, 5*time.Second, 10*time.Millisecond)
	gets, total := f.calls.gets.Load(), f.calls.total()
	const requests = 10
	for range requests {
		require.Equal(t, http.StatusOK, f.call(http.MethodGet, path, plaintext, "").Status)
	}
	// A minute may begin meanwhile and bring one more note of the token's use.
	calls := f.calls.total() - total
	require.LessOrEqual(t, calls, int64(3*requests+1))
	require.GreaterOrEqual(t, calls, int64(3*requests))
	require.Equal(t, int64(2*requests), f.calls.gets.Load()-gets)
}

// lastUse is when the owner's first token was last used, as stored.
func (f *fixture) lastUse(owner string) *time.Time {
	f.t.Helper()
	tokens, _, err := f.store.Tokens(f.t.Context(), owner, "", 1)
	require.NoError(f.t, err)
	return tokens[0].LastUsedAt
}

func TestUseIsNotedOnceAMinuteOffTheRequestsPath(t *testing.T) {
	store, calls := newTable(t)
	at := &clock{}
	f := start(t, store, calls, newRing(t, "k1"), server.Config{Now: at.Now}, doors)
	_, plaintext := f.issue("user:kim", monitoring.ScopeRead)
	for range 5 {
		f.call(http.MethodGet, "/door", plaintext, "")
	}
	require.NoError(t, f.server.Close(t.Context()), "what was taken in is done before the end")
	require.Equal(t, clockStart.Truncate(time.Minute), *f.lastUse("user:kim"))
	require.Equal(t, int64(6), calls.updates.Load(), "five budgets and one note")
}

func TestUseSavesACopyUnderTheCurrentKey(t *testing.T) {
	store, calls := newTable(t)
	ring := newRing(t, "k1", "k2")
	older := monitoring.KeyRing{Current: "k1", Keys: ring.Keys}
	lost := newRing(t, "k9")
	f := start(t, store, calls, ring, server.Config{}, doors)
	hashOnly, a := f.issueUnder(monitoring.KeyRing{}, "user:a", monitoring.ScopeRead)
	underOlder, b := f.issueUnder(older, "user:b", monitoring.ScopeRead)
	underLost, c := f.issueUnder(lost, "user:c", monitoring.ScopeRead)
	for _, plaintext := range []string{a, b, c} {
		require.Equal(t, http.StatusOK, f.call(http.MethodGet, "/door", plaintext, "").Status)
	}
	require.NoError(t, f.server.Close(t.Context()))
	for _, c := range []struct {
		token     monitoring.Token
		plaintext string
	}{{hashOnly, a}, {underOlder, b}, {underLost, c}} {
		stored, err := store.Token(t.Context(), c.token.Owner, c.token.ID)
		require.NoError(t, err)
		require.Equal(t, "k2", stored.RecoveryKeyID())
		opened, err := ring.Open(*stored.Recovery, stored.Owner, stored.ID)
		require.NoError(t, err)
		require.Equal(t, c.plaintext, opened.Plaintext())
		grant, _, err := store.Grant(t.Context(), stored.Hash)
		require.NoError(t, err)
		require.Equal(t, "k2", grant.RecoveryKeyID)
	}
}

func TestManyUsesAtOnceSaveOneCopy(t *testing.T) {
	store, calls := newTable(t)
	ring := newRing(t, "k1")
	instances := make([]*fixture, 5)
	for i := range instances {
		instances[i] = start(t, store, calls, ring, server.Config{}, doors)
	}
	token, plaintext := instances[0].issueUnder(monitoring.KeyRing{}, "user:kim", monitoring.ScopeRead)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() { instances[i%len(instances)].call(http.MethodGet, "/door", plaintext, "") })
	}
	wait.Wait()
	for _, f := range instances {
		require.NoError(t, f.server.Close(t.Context()))
	}
	stored, err := store.Token(t.Context(), token.Owner, token.ID)
	require.NoError(t, err)
	opened, err := ring.Open(*stored.Recovery, token.Owner, token.ID)
	require.NoError(t, err)
	require.Equal(t, plaintext, opened.Plaintext())
	var lookup map[string]any
	found, err := store.Table.Get(t.Context(), table.Key{Partition: "KEY#" + token.Hash, Sort: "TOKEN"}, &lookup)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "k1", lookup["recovery_key_id"])
}

func TestDeletionDuringUseNeverBringsTheTokenBack(t *testing.T) {
	f := newFixture(t, doors)
	for i := range 5 {
		owner := "user:" + strconv.Itoa(i)
		token, plaintext := f.issueUnder(monitoring.KeyRing{}, owner, monitoring.ScopeRead)
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() { f.call(http.MethodGet, "/door", plaintext, "") })
		}
		wait.Go(func() {
			if err := f.store.DeleteToken(context.Background(), owner, token.ID); err != nil {
				t.Error(err)
			}
		})
		wait.Wait()
		f.call(http.MethodGet, "/door", plaintext, "").problem(http.StatusUnauthorized, "unauthenticated")
	}
	require.NoError(t, f.server.Close(t.Context()))
	for i := range 5 {
		tokens, _, err := f.store.Tokens(t.Context(), "user:"+strconv.Itoa(i), "", 10)
		require.NoError(t, err)
		require.Empty(t, tokens)
	}
}

func FuzzAuthorizationHeaders(f *testing.F) {
	for _, seed := range []string{"", "Bearer ", "bearer mr_", "Bearer mr_" + strings.Repeat("A", 43), "Bearer mr_" + strings.Repeat("A", 43) + " x"} {
		f.Add(seed)
	}
	s, err := server.New(server.Config{Tokens: noTokens{}}, doors)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header string) {
		status, challenge := probe(s, header)
		if status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Bearer ") {
			t.Fatalf("answered %d with challenge %q", status, challenge)
		}
	})
}
