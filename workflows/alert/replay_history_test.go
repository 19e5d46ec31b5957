package alert

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

func newReplayer() worker.WorkflowReplayer {
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(RiskAlert, workflow.RegisterOptions{Name: names.RiskAlert})
	return replayer
}

var silent = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// TestRecordedHistoriesReplay runs today's code over histories that yesterday's
// made: what is running must go on after a deployment.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay_*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.NoError(t, newReplayer().ReplayWorkflowHistoryFromJSONFile(silent, file))
		})
	}
}
