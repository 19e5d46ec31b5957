package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	factorystore "millrace/storage/factory"
	"millrace/storage/storagetest"
)

// TestTheExamplesOfTheAPIDocumentationWork runs every command of docs/api.md, in
// order and in one folder, and compares the answers with those printed.
func TestTheExamplesOfTheAPIDocumentationWork(t *testing.T) {
	document, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	status := storagetest.Table(t, storagetest.Factory)
	now := time.Now()
	before := latest("factory-a", now.Add(-time.Minute), "96.5").History(time.Hour)
	current := latest("factory-a", now, "97.5")
	for _, row := range []any{before, current.History(time.Hour), current} {
		require.NoError(t, status.Put(t.Context(), row, nil))
	}
	f := newFixture(t, server.Factories(factorystore.Store{Table: status}, []string{"factory-a"}, time.Now))
	_, token := f.issue("user:kim", monitoring.AllScopes("factory-a")...)

	folder := t.TempDir()
	examples := example.FindAllStringSubmatch(string(document), -1)
	require.GreaterOrEqual(t, len(examples), 9)
	for _, e := range examples {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", e[1]) //nolint:gosec // our own documentation
		command.Dir = folder
		command.Env = append(os.Environ(), "MILLRACE_URL="+f.url, "MILLRACE_TOKEN="+token)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", e[1], output)
		if e[2] == "" {
			continue
		}
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(e[2]), &want), e[2])
		require.NoError(t, json.Unmarshal(output, &got), "%s\n%s", e[1], output)
		require.Equal(t, withoutIDs(timeless(want)), withoutIDs(timeless(got)), e[1])
	}
}

// withoutIDs is a value without the id of its token, which differs each time.
func withoutIDs(value any) any {
	if object, ok := value.(map[string]any); ok && object["id"] != nil {
		object["id"] = ""
	}
	return value
}
