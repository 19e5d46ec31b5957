package artifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

func TestABusyArtifactTellsWhoHasTheTurn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for version := 1; version < 3; version++ {
		require.NoError(t, w.store.Create(ctx, w.create(version)))
		require.NoError(t, w.store.Commit(ctx, w.step(version, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
		if version == 1 {
			require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r1"))))
		}
	}
	chain := w.chains[2]
	err := w.store.Commit(ctx, w.step(2, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r2")))
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorContains(t, err, "run r1 of version 1, executing since ")

	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Executing, artifact.Failed, head(storage.HeadStays, ""))))
	w.chains[2] = chain
	err = w.store.Commit(ctx, w.step(2, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r2")))
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorContains(t, err, "run r1: ")
}
