package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
)

// example is a command of the documentation and the answer that is printed below
// it, if there is one.
var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?")

// TestTheExamplesOfTheMonitoringDocumentationWork runs every command, in order,
// and compares the answers with those printed: all but times and tags is equal.
func TestTheExamplesOfTheMonitoringDocumentationWork(t *testing.T) {
	document, err := os.ReadFile("../../docs/monitoring.md")
	require.NoError(t, err)
	store, calls := newTable(t)
	registry := prometheus.NewRegistry()
	f := start(t, store, calls, newRing(t, "k1"), server.Config{Registry: registry},
		server.Sources(store, registry, time.Now), server.Activities(store, time.Now),
		server.Memories(store, time.Now), server.Statistics(store))
	_, token := f.issue("user:kim", monitoring.ScopeRead, monitoring.ScopeWrite)
	examples := example.FindAllStringSubmatch(string(document), -1)
	require.Greater(t, len(examples), 10)
	for _, e := range examples {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", e[1]) //nolint:gosec // our own documentation
		command.Env = append(os.Environ(), "MILLRACE_URL="+f.url, "MILLRACE_TOKEN="+token)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", e[1], output)
		if e[2] == "" {
			continue
		}
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(e[2]), &want), e[2])
		require.NoError(t, json.Unmarshal(output, &got), string(output))
		require.Equal(t, timeless(want), timeless(got), e[1])
	}
}

// timeless is a value without what differs each time.
func timeless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = timeless(field)
			if slices.Contains([]string{"observedAt", "receivedAt", "createdAt", "updatedAt", "from", "to", "minute", "etag"}, name) {
				v[name] = ""
			}
		}
	case []any:
		for i := range v {
			v[i] = timeless(v[i])
		}
	}
	return value
}
