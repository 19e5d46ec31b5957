package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
)

// made is what creation and revelation answer.
type made struct {
	Token    string          `json:"token"`
	Metadata monitoring.View `json:"metadata"`
}

func (f *fixture) create(token, body string) made {
	f.t.Helper()
	a := f.call(http.MethodPost, "/v1/tokens", token, body)
	require.Equal(f.t, http.StatusCreated, a.Status, string(a.Body))
	var m made
	a.decode(&m)
	require.Equal(f.t, "/v1/tokens/"+m.Metadata.ID, a.Header.Get("Location"))
	stored, err := f.store.Token(f.t.Context(), "user:kim", m.Metadata.ID)
	require.NoError(f.t, err)
	hideToken(stored, m.Token)
	return m
}

func TestTokenLifeOverHTTP(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens, monitoring.ScopeRead)

	m := f.create(caller, `{"name":"grafana","scopes":["read"]}`)
	require.Regexp(t, `^mr_[A-Za-z0-9_-]{43}$`, m.Token)
	require.True(t, m.Metadata.CanReveal)
	path := "/v1/tokens/" + m.Metadata.ID

	var view monitoring.View
	f.call(http.MethodGet, path, caller, "").decode(&view)
	require.Equal(t, "grafana", view.Name)
	require.Equal(t, monitoring.Scopes{monitoring.ScopeRead}, view.Scopes)

	var revealed made
	f.call(http.MethodPost, path+"/reveal", caller, "").decode(&revealed)
	require.Equal(t, m.Token, revealed.Token)

	f.call(http.MethodGet, "/v1/tokens", m.Token, "").problem(http.StatusForbidden, "forbidden")

	f.call(http.MethodPost, path+"/revoke", caller, "").decode(&view)
	require.NotNil(t, view.RevokedAt)
	require.False(t, view.CanReveal)
	again := view
	f.call(http.MethodPost, path+"/revoke", caller, "").decode(&again)
	require.Equal(t, view, again, "revoking again changes nothing")
	f.call(http.MethodGet, "/v1/tokens", m.Token, "").problem(http.StatusUnauthorized, "unauthenticated")
	f.call(http.MethodPost, path+"/reveal", caller, "").problem(http.StatusConflict, "not-revealable")

	require.Equal(t, http.StatusNoContent, f.call(http.MethodDelete, path, caller, "").Status)
	f.call(http.MethodDelete, path, caller, "").problem(http.StatusNotFound, "not-found")
	f.call(http.MethodGet, path, caller, "").problem(http.StatusNotFound, "not-found")
	f.call(http.MethodPost, path+"/revoke", caller, "").problem(http.StatusNotFound, "not-found")
	f.call(http.MethodPost, path+"/reveal", caller, "").problem(http.StatusNotFound, "not-found")
}

func TestMetadataHasExactlyThePublicFields(t *testing.T) {
	f := newFixture(t)
	token, caller := f.issue("user:kim", monitoring.ScopeTokens)
	var view map[string]any
	require.Eventually(t, func() bool {
		f.call(http.MethodGet, "/v1/tokens/"+token.ID, caller, "").decode(&view)
		return view["lastUsedAt"] != nil
	}, 5*time.Second, 20*time.Millisecond, "the use of the token is noted")
	require.ElementsMatch(t, []string{"id", "name", "scopes", "createdAt", "lastUsedAt", "canReveal"}, keysOf(view))
}

func keysOf(m map[string]any) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

func TestListPagesThroughTheOwnersTokensOnly(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens, monitoring.ScopeRead)
	other, _ := f.issue("user:lee", monitoring.ScopeRead)
	for i := range 4 {
		f.create(caller, fmt.Sprintf(`{"name":"t%d","scopes":["read"]}`, i))
	}
	var names []string
	cursor := ""
	for range 3 {
		var page server.TokenList
		f.call(http.MethodGet, "/v1/tokens?limit=2&cursor="+cursor, caller, "").decode(&page)
		for _, view := range page.Tokens {
			names = append(names, view.Name)
			require.NotEqual(t, other.ID, view.ID)
		}
		cursor = page.NextCursor
	}
	require.Empty(t, cursor)
	require.Len(t, names, 5)
	require.Equal(t, []string{"t3", "t2", "t1", "t0"}, names[:4], "newest first")

	f.call(http.MethodGet, "/v1/tokens/"+other.ID, caller, "").problem(http.StatusNotFound, "not-found")
	f.call(http.MethodDelete, "/v1/tokens/"+other.ID, caller, "").problem(http.StatusNotFound, "not-found")
	p := f.call(http.MethodGet, "/v1/tokens?cursor=bm9uZQ", caller, "").problem(http.StatusBadRequest, "invalid-input")
	require.Equal(t, "query.cursor", p.Errors[0].Field)
}

func TestNoTokenMakesOneStrongerThanItself(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		held  []monitoring.Scope
		asked string
		want  int
	}{
		"a subset":                {[]monitoring.Scope{"tokens", "read"}, `"read"`, http.StatusCreated},
		"itself":                  {[]monitoring.Scope{"tokens", "read"}, `"read","tokens"`, http.StatusCreated},
		"one scope more":          {[]monitoring.Scope{"tokens", "read"}, `"read","write"`, http.StatusForbidden},
		"admin from tokens":       {[]monitoring.Scope{"tokens"}, `"admin"`, http.StatusForbidden},
		"admin from admin":        {[]monitoring.Scope{"tokens", "admin"}, `"admin"`, http.StatusCreated},
		"read from admin":         {[]monitoring.Scope{"tokens", "admin"}, `"read"`, http.StatusForbidden},
		"uploads of the factory":  {[]monitoring.Scope{"tokens", "image:upload/factory-a"}, `"image:upload/factory-a"`, http.StatusCreated},
		"uploads of another":      {[]monitoring.Scope{"tokens", "image:upload/factory-a"}, `"image:upload/factory-b"`, http.StatusForbidden},
		"uploads of a similar id": {[]monitoring.Scope{"tokens", "image:upload/factory-a"}, `"image:upload/factory-ab"`, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			_, caller := f.issue("user:"+strings.ReplaceAll(name, " ", "-"), c.held...)
			a := f.call(http.MethodPost, "/v1/tokens", caller, `{"name":"x","scopes":[`+c.asked+`]}`)
			require.Equal(t, c.want, a.Status, string(a.Body))
			if c.want == http.StatusForbidden {
				a.problem(http.StatusForbidden, "forbidden")
			}
		})
	}
}

func TestNoTokenRevealsOneStrongerThanItself(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens, monitoring.ScopeRead, monitoring.ScopeAdmin)
	stronger, _ := f.issue("user:kim", monitoring.ScopeRead, monitoring.ScopeWrite)
	f.call(http.MethodPost, "/v1/tokens/"+stronger.ID+"/reveal", caller, "").problem(http.StatusForbidden, "forbidden")
	admin, _ := f.issue("user:kim", monitoring.ScopeAdmin)
	f.call(http.MethodPost, "/v1/tokens/"+admin.ID+"/reveal", caller, "").problem(http.StatusForbidden, "never-revealed")
	hashOnly, _ := f.issueUnder(monitoring.KeyRing{}, "user:kim", monitoring.ScopeRead)
	f.call(http.MethodPost, "/v1/tokens/"+hashOnly.ID+"/reveal", caller, "").problem(http.StatusConflict, "not-revealable")
	foreign, _ := f.issueUnder(newRing(t, "elsewhere"), "user:kim", monitoring.ScopeRead)
	f.call(http.MethodPost, "/v1/tokens/"+foreign.ID+"/reveal", caller, "").problem(http.StatusConflict, "not-revealable")
}

func TestCreateTokenRefusesBadBodies(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens, monitoring.ScopeRead)
	for name, c := range map[string]struct{ body, field string }{
		"unknown field":     {`{"name":"x","scopes":["read"],"owner":"user:lee"}`, "body.owner"},
		"no name":           {`{"scopes":["read"]}`, "body"},
		"empty name":        {`{"name":"","scopes":["read"]}`, "body.name"},
		"long name":         {`{"name":"` + strings.Repeat("x", 101) + `","scopes":["read"]}`, "body.name"},
		"control character": {`{"name":"a\u0000b","scopes":["read"]}`, "body.name"},
		"field's case":      {`{"Name":"x","scopes":["read"]}`, "body"},
		"field twice":       {`{"name":"x","scopes":["read"],"name":"y"}`, "body"},
		"no scopes":         {`{"name":"x","scopes":[]}`, "body.scopes"},
		"null scopes":       {`{"name":"x","scopes":null}`, "body.scopes"},
		"unknown scope":     {`{"name":"x","scopes":["root"]}`, "body.scopes"},
		"number for name":   {`{"name":1,"scopes":["read"]}`, "body.name"},
		"no JSON":           {`{"name"`, "body"},
		"no object":         {`[]`, "body"},
		"two documents":     {`{"name":"x","scopes":["read"]}{}`, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, f.store, f.calls, f.ring, server.Config{Limits: monitoring.Limits{Read: 100, Write: 100, TokenCreate: 100}})
			p := f.call(http.MethodPost, "/v1/tokens", caller, c.body).problem(http.StatusBadRequest, "invalid-input")
			require.NotEmpty(t, p.Errors)
			require.Equal(t, c.field, p.Errors[0].Field)
		})
	}
}

func TestCreateTokenLimitsAndTypesItsBody(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens)
	large := `{"name":"` + strings.Repeat("x", 9<<10) + `"}`
	f.call(http.MethodPost, "/v1/tokens", caller, large).problem(http.StatusRequestEntityTooLarge, "body-too-large")
	f.call(http.MethodPost, "/v1/tokens", caller, "name=x", "Content-Type", "application/x-www-form-urlencoded").
		problem(http.StatusUnsupportedMediaType, "unsupported-media-type")
	f.call(http.MethodPost, "/v1/tokens", caller, "").problem(http.StatusBadRequest, "invalid-input")
}

func TestTokenIDsCanNotEscapeTheirSegment(t *testing.T) {
	f := newFixture(t)
	_, caller := f.issue("user:kim", monitoring.ScopeTokens)
	for _, id := range []string{"..", "%2e%2e", "a%2Fb", "tok_%23", "TOKEN", strings.Repeat("a", 1000), "tok_" + strings.Repeat("0", 31) + "%00"} {
		a := f.call(http.MethodGet, "/v1/tokens/"+id, caller, "")
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, a.Status, id)
		require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	}
}
