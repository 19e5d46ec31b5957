package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/platform/logging"
)

// wired is the gateway as main wires it, without anything behind it.
func wired(t *testing.T) *server.Server {
	t.Helper()
	registry := prometheus.NewRegistry()
	logger := logging.New(os.Stderr, "test", settings{}.Logging)
	b := backends{tables: tableClient(aws.Config{}, registry), reports: reports(settings{}, aws.Config{})}
	s, err := newServer(settings{}, monitoring.KeyRing{}, b, registry, logger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

type route struct{ method, path string }

func routes(document *huma.OpenAPI) map[route]*huma.Operation {
	all := map[route]*huma.Operation{}
	for path, item := range document.Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodDelete: item.Delete,
			http.MethodPatch: item.Patch, http.MethodHead: item.Head, http.MethodOptions: item.Options, http.MethodTrace: item.Trace,
		} {
			if op != nil {
				all[route{method, path}] = op
			}
		}
	}
	return all
}

// public are the only operations without a token; /openapi.json is no operation.
var public = []route{{http.MethodGet, "/healthz"}, {http.MethodGet, "/readyz"}}

// scopeOf is the scope by the table of the design.
func scopeOf(r route) monitoring.Scope {
	switch {
	case strings.HasPrefix(r.path, "/v1/tokens"):
		return monitoring.ScopeTokens
	case strings.HasPrefix(r.path, "/v1/alerts/silences"), strings.HasPrefix(r.path, "/v1/approvers"), strings.HasPrefix(r.path, "/v1/groups"):
		return monitoring.ScopeAdmin
	case r.method == http.MethodGet:
		return monitoring.ScopeRead
	case strings.HasSuffix(r.path, "/presign"):
		return "image:upload/{factory_id}"
	case r.path == "/v1/signals", r.path == "/v1/traces":
		return monitoring.ScopeSignalsWrite
	case strings.HasPrefix(r.path, "/v1/sources"), strings.HasPrefix(r.path, "/v1/memory"):
		return monitoring.ScopeWrite
	}
	return doorScopes[r.path[strings.LastIndexByte(r.path, '/')+1:]] // alert rules have no scope here
}

// doorScopes are those of the artifact routes that change something.
var doorScopes = map[string]monitoring.Scope{
	"artifacts": monitoring.ScopeArtifactSubmit, "content": monitoring.ScopeArtifactSubmit, "submit": monitoring.ScopeArtifactSubmit,
	"withdraw": monitoring.ScopeArtifactSubmit, "decision": monitoring.ScopeArtifactApprove, "execute": monitoring.ScopeArtifactExecute,
	"compensate": monitoring.ScopeArtifactExecute, "archive": monitoring.ScopeArtifactExecute,
}

func TestEveryRouteHasTheScopeOfTheDesign(t *testing.T) {
	all := routes(wired(t).OpenAPI())
	require.Greater(t, len(all), 10)
	known := append(slices.Clone(monitoring.AllScopes()), "image:upload/{factory_id}")
	for r, op := range all {
		if slices.Contains(public, r) {
			require.Empty(t, op.Security, "%v is public", r)
			continue
		}
		require.Len(t, op.Security, 1, "%v has no scope", r)
		scopes := op.Security[0]["bearer"]
		require.Len(t, scopes, 1, "%v", r)
		require.Contains(t, known, monitoring.Scope(scopes[0]), "%v", r)
		if want := scopeOf(r); want != "" {
			require.Equal(t, string(want), scopes[0], "%v", r)
		}
		for _, status := range []string{"401", "403", "429"} {
			require.Contains(t, op.Responses, status, "%v", r)
		}
		require.NotEmpty(t, op.Summary, "%v", r)
	}
}

var parameter = regexp.MustCompile(`\{[a-z_]+\}`)

func TestNoRouteAnswersWithoutAToken(t *testing.T) {
	s := wired(t)
	for r := range routes(s.OpenAPI()) {
		if slices.Contains(public, r) {
			continue
		}
		request := httptest.NewRequest(r.method, parameter.ReplaceAllString(r.path, "x"), http.NoBody)
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		require.Equal(t, http.StatusUnauthorized, recorder.Code, "%v", r)
	}
}

func TestTheContractIsServedAndResolves(t *testing.T) {
	recorder := httptest.NewRecorder()
	wired(t).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody))
	require.Equal(t, http.StatusOK, recorder.Code)
	var document map[string]any
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &document))
	require.Equal(t, "3.1.0", document["openapi"])
	for _, reference := range regexp.MustCompile(`"\$ref":"#/([^"]+)"`).FindAllStringSubmatch(recorder.Body.String(), -1) {
		var at any = document
		for part := range strings.SplitSeq(reference[1], "/") {
			object, ok := at.(map[string]any)
			require.True(t, ok, reference[1])
			at = object[part]
		}
		require.NotNil(t, at, "%s leads nowhere", reference[1])
	}
}

// TestTheDocumentationListsEveryRoute holds the table of docs/api.md against the
// contract: both have the same routes with the same scopes.
func TestTheDocumentationListsEveryRoute(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+) (/[^`]*)` \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]+" "+row[2]] = strings.Trim(row[3], "` ")
	}
	contract := map[string]string{"GET /openapi.json": "none"}
	for r, op := range routes(wired(t).OpenAPI()) {
		scope := "none"
		if len(op.Security) > 0 {
			scope = op.Security[0]["bearer"][0]
		}
		contract[fmt.Sprintf("%s %s", r.method, r.path)] = scope
	}
	require.Equal(t, slices.Sorted(maps.Keys(contract)), slices.Sorted(maps.Keys(documented)))
	require.Equal(t, contract, documented)
}
