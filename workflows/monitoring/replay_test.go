package monitoring

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

// TestRecordedHistoriesReplay guards running workflows against changes of their
// code that they can't follow.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay_*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(RekeyTokens, workflow.RegisterOptions{Name: names.RekeyTokens})
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(nil, file))
		})
	}
}
