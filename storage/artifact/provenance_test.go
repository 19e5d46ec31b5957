package artifact_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// document reads the provenance document by the hash in HEAD.
func (w *world) document() storage.Document {
	w.t.Helper()
	h, err := w.store.Head(w.t.Context(), "fix")
	require.NoError(w.t, err)
	body, err := w.store.ReadAll(w.t.Context(), storage.StoredFile{Key: storage.ProvenanceKey("fix"), ContentHash: h.ProvenanceHash}, 8<<20)
	require.NoError(w.t, err, "HEAD has the hash of the document that is there")
	var d storage.Document
	require.NoError(w.t, json.Unmarshal(body, &d))
	require.Equal(w.t, d.Revision, h.ProvenanceRevision)
	return d
}

// whole asserts that a document has the complete chains of versions 1 to n.
func (w *world) whole(d storage.Document, n int) {
	w.t.Helper()
	require.Len(w.t, d.Versions, n)
	for i, v := range d.Versions {
		require.Equal(w.t, i+1, v.Artifact.Version)
		end, err := artifact.VerifyChain(i+1, v.Records)
		require.NoError(w.t, err)
		require.Equal(w.t, v.Artifact.ChainLast, end.Last)
	}
}

func TestVersionsThatEndAtOnceLoseNothing(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const versions = 6
	var steps []storage.Step
	for version := 1; version <= versions; version++ {
		require.NoError(t, w.store.Create(ctx, w.create(version)))
	}
	for version := 1; version <= versions; version++ {
		steps = append(steps, w.step(version, artifact.InReview, artifact.Withdrawn, nil))
	}
	var wait sync.WaitGroup
	errs := make([]error, versions)
	for i, step := range steps {
		wait.Go(func() {
			if errs[i] = w.store.Commit(ctx, step); errs[i] == nil {
				errs[i] = w.store.WriteProvenance(ctx, "fix")
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	d := w.document()
	w.whole(d, versions)
	require.Equal(t, versions, d.Revision, "each writer wrote once")
	for _, v := range d.Versions {
		require.Equal(t, artifact.Withdrawn, v.Artifact.State)
		require.Len(t, v.Records, 2)
	}
}

// between runs something once, right before the first write of a document.
type between struct {
	storage.Bucket
	once sync.Once
	do   func()
	puts []*s3.PutObjectInput
}

// PutObject lets the other writer go first.
func (b *between) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	b.once.Do(b.do)
	b.puts = append(b.puts, in)
	return b.Bucket.PutObject(ctx, in, options...)
}

func TestAnOvertakenDocumentIsBuiltAnew(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	second := w.create(2)
	for _, first := range []bool{true, false} {
		slow := &between{Bucket: w.store.Client}
		slow.do = func() {
			if first {
				require.NoError(t, w.store.Create(ctx, second))
			} else {
				require.NoError(t, w.store.Commit(ctx, w.step(2, artifact.InReview, artifact.Withdrawn, nil)))
			}
			require.NoError(t, w.store.WriteProvenance(ctx, "fix"))
		}
		store := w.store
		store.Client = slow
		require.NoError(t, store.WriteProvenance(ctx, "fix"))
		w.whole(w.document(), 2)
		require.Len(t, slow.puts, 2)
		if first {
			require.Equal(t, "*", aws.ToString(slow.puts[0].IfNoneMatch))
		} else {
			require.NotEmpty(t, aws.ToString(slow.puts[0].IfMatch))
		}
		require.NotEmpty(t, aws.ToString(slow.puts[1].IfMatch))
		require.NotEqual(t, slow.puts[0].IfMatch, slow.puts[1].IfMatch)
	}
	require.Equal(t, artifact.Withdrawn, w.document().Versions[1].Artifact.State)
}

func TestAnOlderHashNeverReplacesANewerOne(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	require.NoError(t, w.store.WriteProvenance(ctx, "fix"))
	late := &after{Bucket: w.store.Client, do: func() { require.NoError(t, w.store.WriteProvenance(ctx, "fix")) }}
	store := w.store
	store.Client = late
	require.NoError(t, store.WriteProvenance(ctx, "fix"), "its document was replaced before it reached HEAD")
	require.Equal(t, 3, w.document().Revision)

	// For good, since the local S3 takes a delete marker for an object.
	removeVersions(t, w.store.Client.(*s3.Client), w.store.Bucket)
	require.NoError(t, w.store.WriteProvenance(ctx, "fix"))
	require.Equal(t, 4, w.document().Revision, "a deleted document is written again")
	require.ErrorIs(t, w.store.WriteProvenance(ctx, "none"), storage.ErrNotFound)
}

// after runs something once, right after the first write.
type after struct {
	storage.Bucket
	once sync.Once
	do   func()
}

// PutObject lets the other writer go right after.
func (b *after) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	out, err := b.Bucket.PutObject(ctx, in, options...)
	b.once.Do(b.do)
	return out, err
}

func TestADossierIsAsOfItsItem(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	decide := func(s *storage.Step) {
		s.Decision = &artifact.Decision{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: "x"}, RecordedAt: s.Record.At}
	}
	first := w.step(1, artifact.InReview, artifact.InReview, decide)
	require.NoError(t, w.store.Commit(ctx, first))
	torn := w.store
	torn.Table.Client = &betweenQueries{API: torn.Table.Client, do: func() {
		require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) {
			decide(s)
			s.Earlier = &first.Record.At
		})))
	}}
	dossiers, err := torn.Dossiers(ctx, "fix")
	require.NoError(t, err)
	require.Len(t, dossiers[0].Records, 2)
	require.Len(t, dossiers[0].Approvals, 1)
	require.Nil(t, dossiers[0].Approvals[0].SupersededBy)
	end, err := artifact.VerifyChain(1, dossiers[0].Records)
	require.NoError(t, err)
	require.Equal(t, dossiers[0].Artifact.ChainLast, end.Last)
	now, err := w.store.Dossier(ctx, "fix", 1)
	require.NoError(t, err)
	require.Len(t, now.Records, 3)
	require.NotNil(t, now.Approvals[0].SupersededBy)
}
