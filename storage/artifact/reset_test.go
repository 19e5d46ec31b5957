package artifact_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// TestALifecycleThatIsSetBackDoesNotRunAgain makes steps again that were made
// before, as a workflow does that somebody resets.
func TestALifecycleThatIsSetBackDoesNotRunAgain(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	start := w.chains[1]
	decision := artifact.Decision{Command: artifact.Command{Verb: artifact.Reject, Actor: "user:a", BundleHash: "x"}, RecordedAt: w.now.Add(time.Second)}
	decided := w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) { s.Decision = &decision })
	require.NoError(t, w.store.Commit(ctx, decided))
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
	approved := w.chains[1]
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r1"))))
	executing := w.chains[1]
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Executing, artifact.Executed, head(storage.HeadRelease, "r1"))))

	w.chains[1] = approved
	require.ErrorIs(t, w.store.Commit(ctx, w.step(1, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r2"))), storage.ErrConflict)
	require.Empty(t, headOf(w).ExecutingRun)
	w.chains[1] = executing
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Executing, artifact.Executed, head(storage.HeadRelease, "r1"))), "what ends a run may be told again")

	w.chains[1] = start
	again := decision
	same := w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) { s.Decision = &again })
	same.Record.Actor = decided.Record.Actor
	require.NoError(t, w.store.Commit(ctx, same))
	w.chains[1] = start
	again.Verb = artifact.Approve
	require.ErrorIs(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) { s.Decision = &again })), storage.ErrConflict)
}
