package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"

	workflows "millrace/workflows/artifact"
)

func TestAJobThatWasGivenUpIsNeverSent(t *testing.T) {
	d := newDesk(t)
	v := d.submit(deviceJob())
	settled, err := d.SettleRun(t.Context(), workflows.SettleRequest{
		VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: runID(1), Status: workflows.RunWorkerLost,
	})
	require.NoError(t, err)
	require.False(t, settled.Began)
	out := &outlet{}
	_, err = d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
	typed(t, err, workflows.ErrConflict)
	require.Empty(t, out.topics)
}
