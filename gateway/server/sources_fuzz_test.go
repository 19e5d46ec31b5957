package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	monitoringstore "millrace/storage/monitoring"
)

// oneSource is a store of one source, for requests whose decoding is tested. It
// lets any token in.
type oneSource struct {
	server.SourceStore
	server.TokenStore
	latest *monitoring.Source
}

func (o *oneSource) Grant(_ context.Context, hash string) (monitoring.Grant, bool, error) {
	return monitoring.Grant{Hash: hash, Owner: "user:kim", TokenID: "t", Scopes: monitoring.Scopes{monitoring.ScopeWrite}}, true, nil
}

func (o *oneSource) Spend(context.Context, string, monitoring.BudgetKind, int64, time.Time) error {
	return nil
}

func (o *oneSource) RecordUse(context.Context, string, string, time.Time) (bool, error) {
	return false, nil
}

func (o *oneSource) SaveRecovery(context.Context, monitoring.Grant, *monitoring.Envelope) error {
	return nil
}

func (o *oneSource) Ingest(_ context.Context, _, id string, observation monitoring.Observation, now time.Time) (monitoringstore.Ingested, error) {
	arrival := monitoring.Arrival{SourceID: id, Observation: observation, ReceivedAt: now, Life: "x"}
	decision, err := arrival.Decide(nil, nil)
	return monitoringstore.Ingested{Decision: decision}, err
}

func (o *oneSource) Configure(_ context.Context, _, _ string, edit func(monitoring.Source) (monitoring.Configuration, error)) (monitoring.Source, error) {
	edited := *o.latest
	var err error
	edited.Configuration, err = edit(edited)
	return edited, err
}

func decodingAPI(f testing.TB) http.Handler {
	f.Helper()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store := &oneSource{latest: &monitoring.Source{ID: "a", Life: "x", Observation: monitoring.Observation{
		Identity:    monitoring.Identity{Kind: monitoring.Resource, ResourceType: "oven"},
		Definitions: []monitoring.Definition{{Key: "temperature", Unit: "celsius", Kind: monitoring.Gauge}}, ObservedAt: at,
	}}}
	clock := func() time.Time { return at }
	registry := prometheus.NewRegistry()
	s, err := server.New(server.Config{Tokens: store, Registry: registry, Now: clock}, server.Sources(store, registry, clock))
	require.NoError(f, err)
	return s
}

// answers sends a body and requires an expected status: a body is good or bad,
// never a failure of the server.
func answers(t *testing.T, api http.Handler, method, path, body, ifMatch string, statuses ...int) {
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer mr_"+strings.Repeat("A", 43))
	r.Header.Set("Content-Type", "application/json")
	r.Header["If-Match"] = []string{ifMatch}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	require.True(t, slices.Contains(statuses, w.Code), "%d %s", w.Code, w.Body)
}

func FuzzPutSource(f *testing.F) {
	f.Add(agentBody("2026-11-30T12:00:00Z", `"requests":1,"errors":null`))
	f.Add(ovenBody("2026-11-30T12:00:00+09:00", "celsius", "1e14"))
	f.Add(`{"kind":"agent","provider":"a","account":"b","observedAt":"2026-11-30T12:00:00Z","heartbeat":true}`)
	api := decodingAPI(f)
	f.Fuzz(func(t *testing.T, body string) {
		answers(t, api, "PUT", "/v1/sources/a", body, "", 201, 400, 404, 413)
	})
}

func FuzzPatchConfiguration(f *testing.F) {
	f.Add(`{"displayName":"x","metricOrder":null,"staleAfterSeconds":60}`, `"x.0"`)
	f.Add(`{"metricDefinitions":[{"key":"temperature","unit":"kelvin","kind":"gauge"}],"metricOrder":["temperature"]}`, `W/"x", *`)
	api := decodingAPI(f)
	f.Fuzz(func(t *testing.T, body, ifMatch string) {
		answers(t, api, "PATCH", "/v1/sources/a/configuration", body, ifMatch, 200, 400, 412, 413, 428)
	})
}
