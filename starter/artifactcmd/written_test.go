package artifactcmd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
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

// TestADraftThatWasCompletedIsInOrder has what the lifecycle adds to a draft
// checked like everything else.
func TestADraftThatWasCompletedIsInOrder(t *testing.T) {
	s := newShop(t)
	s.work()
	key := s.key("user:lee")
	script := s.file("fix.sh", "#!/bin/sh\n")
	require.NoError(t, s.run("artifact", "submit", "fix", script, "--rollback="+script, "--draft", "--reason=stuck", "--approver=user:kim", "--actor=user:lee", "--key="+key))
	target := Target{ID: "fix", Version: 1}
	draft, err := query(t.Context(), s.temporal, target)
	require.NoError(t, err)
	require.Equal(t, artifact.Draft, draft.State)
	c, err := Actor{Actor: "user:lee", Key: key}.sign(artifact.Command{Verb: artifact.Submit, Actor: "user:lee", At: now(), BundleHash: draft.BundleHash}, "fix", 1)
	require.NoError(t, err)
	review, err := send(t.Context(), s.temporal, target, workflows.DoorSubmit, c)
	require.NoError(t, err)
	require.Equal(t, artifact.InReview, review.State)
	require.NotEqual(t, draft.BundleHash, review.BundleHash)
	v, err := s.store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Equal(t, artifact.Compensate, v.Spec.Policy.OnFailure)
	require.NoError(t, s.run("artifact", "verify", "fix"))
}
