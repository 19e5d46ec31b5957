package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
)

// keeper is a store that checks the tokens it is given and keeps none.
type keeper struct {
	server.TokenKeeper
	t *testing.T
}

func (k keeper) CreateToken(_ context.Context, token monitoring.Token) error {
	require.NoError(k.t, monitoring.CheckTokenID(token.ID))
	names := make([]string, len(token.Scopes))
	for i, scope := range token.Scopes {
		names[i] = string(scope)
	}
	_, err := monitoring.ParseScopes(names)
	require.NoError(k.t, err)
	require.NotEmpty(k.t, token.Name)
	return nil
}

func FuzzTokenRequests(f *testing.F) {
	for _, seed := range []string{
		`{"name":"x","scopes":["read"]}`, `{"name":"x","scopes":["image:upload/a"]}`, `{"name":1e999,"scopes":null}`, `[]`, `{`, `{"name":"\ud800","scopes":["read","read"]}`,
		`{"name":"x","scopes":["read"],"scopes":["admin"]}`, "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s, err := server.New(server.Config{Tokens: anyToken{}}, server.Tokens(keeper{t: t}, monitoring.KeyRing{}, time.Now))
		require.NoError(t, err)
		defer s.Close(t.Context()) //nolint:errcheck // nothing is left to do
		request := httptest.NewRequest(http.MethodPost, "/v1/tokens", strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+someToken)
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusCreated && (recorder.Code < 400 || recorder.Code >= 500) {
			t.Fatalf("answered %d: %s", recorder.Code, recorder.Body)
		}
	})
}
