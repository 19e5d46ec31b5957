package artifact

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
)

func TestStatusTellsWhoseTurnItIs(t *testing.T) {
	s := newStory(t)
	busy := true
	s.commit = func(step Step) error {
		if step.Head == headRun && busy {
			return temporal.NewNonRetryableApplicationError("run r1 of version 1, executing since then: another version runs", ErrBusy, nil)
		}
		return nil
	}
	s.at(time.Minute, func() { s.decide("user:a", artifact.Approve) })
	s.at(2*time.Minute, func() {
		require.Equal(t, "its turn to run after run r1 of version 1, executing since then: another version runs", s.status().WaitingFor)
		busy = false
	})
	require.NoError(t, s.tell(request()))
	require.Contains(t, s.path(), artifact.Executed)
}
