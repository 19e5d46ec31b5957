package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
)

// TestADraftThatWasCompletedIsWhatIsVerified does what a lifecycle does when a
// draft gets a rollback and is submitted.
func TestADraftThatWasCompletedIsWhatIsVerified(t *testing.T) {
	d := newDesk(t)
	r := script("#!/bin/sh\necho\n", func(r *artifact.Request) { r.Draft = true })
	rollback := r.Files[1]
	r.Files = r.Files[:1]
	p, err := d.Prepare(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, p.Spec.Policy.OnFailure, "its files may change")
	r.Spec, r.Files = p.Spec, p.Files
	record := d.record(1, "submitted", r.Author, artifact.Event{To: artifact.Draft, BundleHash: p.BundleHash})
	_, err = d.Create(t.Context(), workflows.CreateRequest{Request: r, BundleHash: p.BundleHash, State: artifact.Draft, Record: record})
	require.NoError(t, err)

	spec := p.Spec
	spec.Policy = spec.Policy.Freeze(append(p.Files, rollback))
	require.Equal(t, artifact.Compensate, spec.Policy.OnFailure)
	done, err := d.Content(t.Context(), workflows.ContentRequest{ArtifactID: r.ArtifactID, Version: 1, Spec: spec, Files: append(p.Files, rollback)})
	require.NoError(t, err)
	require.NotEqual(t, p.BundleHash, done.BundleHash)
	require.NoError(t, d.Commit(t.Context(), workflows.Step{
		ArtifactID: r.ArtifactID, Version: 1, From: artifact.Draft, To: artifact.InReview, Files: done.Files, BundleHash: done.BundleHash, Spec: &spec,
		Record: d.record(1, "in_review", r.Author, artifact.Event{From: artifact.Draft, To: artifact.InReview, BundleHash: done.BundleHash}),
	}))
	v, err := d.Store.Version(t.Context(), r.ArtifactID, 1)
	require.NoError(t, err)
	require.Equal(t, artifact.Compensate, v.Spec.Policy.OnFailure)
	require.NoError(t, d.Verify(t.Context(), workflows.VerifyRequest{VersionRef: workflows.VersionRef{ArtifactID: r.ArtifactID, Version: 1}, BundleHash: done.BundleHash}))
}
