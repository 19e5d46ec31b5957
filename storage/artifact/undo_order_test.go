package artifact_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// ran has a version approved and run, with a run of its primary file.
func (w *world) ran(version int, run string, end artifact.State, status storage.RunStatus) {
	w.t.Helper()
	ctx := w.t.Context()
	require.NoError(w.t, w.store.Create(ctx, w.create(version)))
	require.NoError(w.t, w.store.Commit(ctx, w.step(version, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
	require.NoError(w.t, w.store.Commit(ctx, w.step(version, artifact.Approved, artifact.Executing, head(storage.HeadRun, run))))
	if status != "" {
		_, err := w.store.Begin(ctx, "fix", version, storage.Run{RunID: run, Role: artifact.Primary, Status: status, StartedAt: w.now})
		require.NoError(w.t, err)
	}
	require.NoError(w.t, w.store.Commit(ctx, w.step(version, artifact.Executing, end, head(storage.HeadRelease, run))))
}

func undoRun(version int) string { return fmt.Sprintf("undo-%d", version) }

// undo tries to begin an undo; one that is refused leaves the chain as it was.
func (w *world) undo(version int, from artifact.State) error {
	chain := w.chains[version]
	err := w.store.Commit(w.t.Context(), w.step(version, from, artifact.Compensating, func(s *storage.Step) {
		s.Head, s.Run, s.Undo = storage.HeadUndo, undoRun(version), &storage.Undo{State: storage.CompensationRunning, StartedAt: w.now}
	}))
	if err != nil {
		w.chains[version] = chain
	}
	return err
}

func (w *world) undone(version int, to artifact.State, state storage.CompensationState) {
	w.t.Helper()
	require.NoError(w.t, w.store.Commit(w.t.Context(), w.step(version, artifact.Compensating, to, func(s *storage.Step) {
		s.Head, s.Run, s.Undo = storage.HeadRelease, undoRun(version), &storage.Undo{State: state, StartedAt: w.now}
	})))
}

func requireNewerRan(t *testing.T, err error, says string) {
	t.Helper()
	var refused *artifact.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, artifact.WhyNewerRan, refused.Why)
	require.Contains(t, refused.Detail, says)
}

func TestAnOlderVersionIsNotUndoneUnderANewerOne(t *testing.T) {
	w := newWorld(t)
	w.ran(1, "r1", artifact.Executed, storage.Succeeded)
	w.ran(2, "r2", artifact.Failed, storage.RunFailed)
	w.ran(3, "r3", artifact.Failed, storage.NeverBegan)
	w.ran(4, "r4", artifact.Failed, "")
	requireNewerRan(t, w.undo(1, artifact.Executed), "version 2 ran after version 1: undo it first")
	require.Empty(t, headOf(w).ExecutingRun)

	require.NoError(t, w.undo(2, artifact.Failed), "what never began changed nothing")
	requireNewerRan(t, w.undo(1, artifact.Executed), "version 2") // it is being undone
	w.undone(2, artifact.CompensationFailed, storage.CompensationFailed)
	requireNewerRan(t, w.undo(1, artifact.Executed), "version 2")
	require.NoError(t, w.undo(2, artifact.CompensationFailed))
	w.undone(2, artifact.Compensated, storage.CompensationDone)
	require.NoError(t, w.undo(1, artifact.Executed), "the newer one was undone first")
	w.undone(1, artifact.Compensated, storage.CompensationDone)
	require.Equal(t, 4, headOf(w).RanVersion)
}

func TestAnUndoThatWasBegunIsBegunAgainWithoutHarm(t *testing.T) {
	w := newWorld(t)
	w.ran(1, "r1", artifact.Executed, storage.Succeeded)
	step := w.step(1, artifact.Executed, artifact.Compensating, func(s *storage.Step) {
		s.Head, s.Run, s.Undo = storage.HeadUndo, "undo", &storage.Undo{State: storage.CompensationRunning, StartedAt: w.now}
	})
	require.NoError(t, w.store.Commit(t.Context(), step))
	require.NoError(t, w.store.Commit(t.Context(), step))
}

func headOf(w *world) storage.Head {
	w.t.Helper()
	h, err := w.store.Head(w.t.Context(), "fix")
	require.NoError(w.t, err)
	return h
}
