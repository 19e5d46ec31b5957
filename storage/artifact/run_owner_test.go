package artifact_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	storage "millrace/storage/artifact"
)

func TestARunHasOneOwner(t *testing.T) {
	w := newWorld(t)
	owner := storage.RunOwner{RunID: "r1", ArtifactID: "fix", Version: 2, WorkflowID: "artifact/fix/v2", FactoryID: "factory-a"}
	_, found, err := w.store.RunOwner(t.Context(), "r1")
	require.NoError(t, err)
	require.False(t, found)

	require.NoError(t, w.store.ClaimRunOwner(t.Context(), owner, noon))
	require.NoError(t, w.store.ClaimRunOwner(t.Context(), owner, noon.Add(time.Hour)), "the same again")
	for name, change := range map[string]func(*storage.RunOwner){
		"artifact": func(o *storage.RunOwner) { o.ArtifactID = "other" },
		"version":  func(o *storage.RunOwner) { o.Version = 3 },
		"workflow": func(o *storage.RunOwner) { o.WorkflowID = "artifact/fix/v3" },
		"factory":  func(o *storage.RunOwner) { o.FactoryID = "factory-b" },
	} {
		other := owner
		change(&other)
		require.ErrorIs(t, w.store.ClaimRunOwner(t.Context(), other, noon), storage.ErrConflict, name)
	}
	got, found, err := w.store.RunOwner(t.Context(), "r1")
	require.NoError(t, err)
	require.True(t, found)
	owner.PK, owner.SK, owner.Entity, owner.SchemaVersion, owner.CreatedAt, owner.UpdatedAt = "RUN#r1", "RUN", "run_owner", 1, noon, noon
	require.Equal(t, owner, got)
}
