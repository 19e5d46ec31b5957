package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/domain/observability"
	"millrace/gateway/server"
)

// TestTheExamplesOfTheObservabilityDocumentationWork runs every command, in
// order, with the documented price table, and compares the answers with those
// printed.
func TestTheExamplesOfTheObservabilityDocumentationWork(t *testing.T) {
	document, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	table, err := os.ReadFile("../../docs/prices.example.json")
	require.NoError(t, err)
	prices, err := observability.ParsePrices(table)
	require.NoError(t, err)
	store := newSignalStore(t)
	f := newFixture(t, server.Signals(store, prices, prometheus.NewRegistry(), time.Now), server.Aggregates(store, time.Now),
		server.Traces(store, time.Now), server.SignalAlerts(store, time.Now), server.AlertRules(store, time.Now))
	_, token := f.issue("user:kim", monitoring.AllScopes()...)
	examples := example.FindAllStringSubmatch(string(document), -1)
	require.GreaterOrEqual(t, len(examples), 5)
	for _, e := range examples {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", e[1]) //nolint:gosec // our own documentation
		command.Env = append(os.Environ(), "MILLRACE_URL="+f.url, "MILLRACE_TOKEN="+token)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", e[1], output)
		if e[2] == "" {
			continue
		}
		var want, got map[string]any
		require.NoError(t, json.Unmarshal([]byte(e[2]), &want), e[2])
		require.NoError(t, json.Unmarshal(output, &got), "%s\n%s", e[1], output)
		for _, name := range []string{"created_at", "updated_at"} {
			require.Equal(t, want[name] != nil, got[name] != nil)
			delete(want, name)
			delete(got, name)
		}
		require.Equal(t, want, got, e[1])
	}
}
