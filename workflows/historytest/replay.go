package historytest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Silent is a logger that says nothing.
var Silent = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// Workflows are workflow functions by their type.
type Workflows map[string]any

func (w Workflows) register(r worker.WorkflowRegistry) {
	for name, run := range w {
		r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
}

// Replayer replays histories of the workflows. It serves one replay after
// another, not several at once.
func (w Workflows) Replayer() worker.WorkflowReplayer {
	replayer := worker.NewWorkflowReplayer()
	w.register(replayer)
	return replayer
}

// ReplayRecorded runs today's code over the histories in testdata, which
// yesterday's made, and fails when there are fewer than atLeast of them.
func (w Workflows) ReplayRecorded(t *testing.T, atLeast int) {
	t.Helper()
	for _, file := range Recorded(t, atLeast) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, w.Replayer().ReplayWorkflowHistoryFromJSONFile(Silent, file))
		})
	}
}

// Recorded are the paths of the histories in testdata, at least so many.
func Recorded(t testing.TB, atLeast int) []string {
	t.Helper()
	files, err := filepath.Glob(path("*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), atLeast, "recorded histories")
	return files
}

func path(name string) string { return filepath.Join("testdata", "replay_"+name+".json") }
