package artifactcmd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	storage "millrace/storage/artifact"
)

// TestSubmittingWaitsOnlySoLong has nobody take the lifecycle.
func TestSubmittingWaitsOnlySoLong(t *testing.T) {
	s := newShop(t)
	s.namespace()
	submit := []string{"artifact", "submit", "fix", s.file("fix.sh", "#!/bin/sh\n"), "--reason=stuck", "--approver=user:kim", "--actor=user:lee"}
	require.ErrorContains(t, s.run(append(submit, "--wait=300ms")...), "fix v1 was not written within 300ms")
	require.NoError(t, s.run(append(submit, "--version=2", "--wait=0s")...))
}

func TestACommandWaitsForWhatWasJustSubmitted(t *testing.T) {
	s := newShop(t)
	began := time.Now()
	_, err := Target{ID: "none"}.present(t.Context(), s.store, 500*time.Millisecond)
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	_, err = Target{ID: "../x"}.present(t.Context(), s.store, time.Hour)
	require.ErrorContains(t, err, "artifact_id")
}
