package observability

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

// registered are all workflows of the capability by their type.
var registered = map[string]any{names.SignalRollup: SignalRollup, names.SignalReconcile: SignalReconcile}

func register(r worker.WorkflowRegistry) {
	for name, run := range registered {
		r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
}

func newReplayer() worker.WorkflowReplayer {
	replayer := worker.NewWorkflowReplayer()
	register(replayer)
	return replayer
}

// TestRecordedHistoriesReplay runs today's code over histories that yesterday's
// made: what is running must go on after a deployment.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay_*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), len(registered), "one for each workflow at least")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, newReplayer().ReplayWorkflowHistoryFromJSONFile(silent, file))
		})
	}
}
