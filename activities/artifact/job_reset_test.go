package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
)

// TestALifecycleThatIsSetBackSendsNoJobAgain has another run id for what was sent
// already.
func TestALifecycleThatIsSetBackSendsNoJobAgain(t *testing.T) {
	d, out := newDesk(t), &outlet{}
	v := d.submit(deviceJob())
	jobs := d.jobs(out)
	_, err := jobs.SendJob(t.Context(), jobRequest(v, 1))
	require.NoError(t, err)
	_, err = jobs.SendJob(t.Context(), jobRequest(v, 2))
	typed(t, err, workflows.ErrSentBefore)
	other := jobRequest(v, 3)
	other.FactoryID = "factory-b"
	_, err = jobs.SendJob(t.Context(), other)
	require.NoError(t, err)
	undo := jobRequest(v, 4)
	undo.Role = artifact.Rollback
	_, err = jobs.SendJob(t.Context(), undo)
	require.NoError(t, err)
	require.Len(t, out.jobs, 3)

	for _, state := range []artifact.State{artifact.Executed, artifact.Failed, artifact.Compensating} {
		over := v
		over.State = state
		typed(t, failure(jobs.first(t.Context(), over, jobRequest(v, 1))), workflows.ErrConflict)
	}
}
