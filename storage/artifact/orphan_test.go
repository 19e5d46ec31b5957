package artifact_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// orphans are the keys of those that were written before a time.
func (w *world) orphans(before time.Time) []string {
	w.t.Helper()
	var keys []string
	for o, err := range w.store.Orphans(w.t.Context(), before) {
		require.NoError(w.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func (w *world) put(key string) {
	w.t.Helper()
	_, err := w.store.Put(w.t.Context(), key, "text/plain", strings.NewReader(key))
	require.NoError(w.t, err)
}

func TestOrphansAreWhatNoItemNames(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	require.NoError(t, w.store.WriteMetadata(ctx, "fix", 1))
	draft := w.create(2)
	draft.State = artifact.Draft
	require.NoError(t, w.store.Create(ctx, draft))
	for _, key := range []string{
		"artifacts/fix/v1/spec.json", "artifacts/fix/v1/left.sh", "artifacts/fix/v2/earlier.sh", "artifacts/fix/v3/run.sh", "artifacts/other/v1/run.sh",
		"artifacts/README", "artifacts/fix/v01/run.sh", "artifacts/fix/vx/run.sh", "artifacts/fix/v1/a/b", "artifacts/comp-fix-v1/v1/run.sh", "executions/x/stdout.log",
	} {
		w.put(key)
	}
	later := time.Now().Add(time.Minute)
	require.Equal(t, []string{"artifacts/fix/v1/left.sh", "artifacts/fix/v3/run.sh", "artifacts/other/v1/run.sh"}, w.orphans(later),
		"not what a draft may need, nor what is not of the protocol's form")
	require.Empty(t, w.orphans(time.Now().Add(-time.Hour)), "a fresh upload is none")

	removed, err := w.store.RemoveOrphan(ctx, storage.Orphan{Key: "artifacts/fix/v1/left.sh", ArtifactID: "fix", Version: 1, Name: "left.sh"})
	require.NoError(t, err)
	require.True(t, removed)
	removed, err = w.store.RemoveOrphan(ctx, storage.Orphan{Key: "artifacts/fix/v1/run.sh", ArtifactID: "fix", Version: 1, Name: "run.sh"})
	require.NoError(t, err)
	require.False(t, removed, "an item names it by now")
	require.Equal(t, []string{"artifacts/fix/v3/run.sh", "artifacts/other/v1/run.sh"}, w.orphans(later))
}

func TestManyOrphansAreReadInFewRequests(t *testing.T) {
	w := newWorld(t)
	for n := range 150 {
		w.put(fmt.Sprintf("artifacts/lost/v%d/run.sh", n+1))
	}
	require.Len(t, w.orphans(time.Now().Add(time.Minute)), 150)
	var first string
	for o, err := range w.store.Orphans(t.Context(), time.Now().Add(time.Minute)) {
		require.NoError(t, err)
		first = o.Key
		break
	}
	require.Equal(t, "artifacts/lost/v1/run.sh", first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range w.store.Orphans(ctx, time.Now()) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// copies keeps the copies that are asked for.
type copies struct {
	storage.Bucket
	asked []*s3.CopyObjectInput
}

// CopyObject keeps the request.
func (c *copies) CopyObject(ctx context.Context, in *s3.CopyObjectInput, options ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	c.asked = append(c.asked, in)
	return c.Bucket.CopyObject(ctx, in, options...)
}

// TestCopiesAskForTheirClassAndChecksum looks at the requests: the local S3 has
// no storage classes.
func TestCopiesAskForTheirClassAndChecksum(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	seen := &copies{Bucket: w.store.Client}
	store := w.store
	store.Client = seen
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	v, err := store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	require.NoError(t, store.CopyToArchive(ctx, v, "archive/2026/05/fix/v1/"))
	require.Len(t, seen.asked, 2)
	for i, in := range seen.asked {
		require.Equal(t, types.StorageClassGlacier, in.StorageClass)
		require.Equal(t, types.ChecksumAlgorithmSha256, in.ChecksumAlgorithm)
		require.Contains(t, *in.CopySource, "?versionId=", "what was approved, not what lies there now")
		require.Equal(t, "archive/2026/05/fix/v1/"+v.Files[i].File().StoredName(), *in.Key)
	}

	seen.asked = nil
	file, err := store.Put(ctx, storage.RunKey("r1", storage.StdoutFile), "text/plain", strings.NewReader("out"))
	require.NoError(t, err)
	run := storage.Run{RunID: "r1", ContentHashes: map[string]string{storage.StdoutFile: file.ContentHash, storage.StderrFile: artifact.HashOf(nil)}}
	require.NoError(t, store.Cool(ctx, run))
	require.Len(t, seen.asked, 1, "what is gone is left alone")
	in := seen.asked[0]
	require.Equal(t, types.StorageClassStandardIa, in.StorageClass)
	require.Equal(t, types.ChecksumAlgorithmSha256, in.ChecksumAlgorithm)
	require.Equal(t, file.Key, *in.Key)
	require.Equal(t, file.ContentHash, in.Metadata["sha256"], "its hash stays with it")
	cooled, err := store.Stat(ctx, file.Key, "")
	require.NoError(t, err)
	require.Equal(t, file.ContentHash, cooled.ContentHash)

	already := &classed{Bucket: seen, class: types.StorageClassStandardIa}
	store.Client = already
	seen.asked = nil
	require.NoError(t, store.Cool(ctx, run))
	require.Empty(t, seen.asked, "what has the class is not copied again")
}

// classed tells a storage class of every object.
type classed struct {
	storage.Bucket
	class types.StorageClass
}

// HeadObject tells the class.
func (c *classed) HeadObject(ctx context.Context, in *s3.HeadObjectInput, options ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	out, err := c.Bucket.HeadObject(ctx, in, options...)
	if out != nil {
		out.StorageClass = c.class
	}
	return out, err
}

// TestACopyWithAnotherChecksumIsNotBelieved is S3 answering with a checksum that
// is not the content's, or with none.
func TestACopyWithAnotherChecksumIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.store.Create(t.Context(), w.create(1)))
	v, err := w.store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	for _, sum := range []*string{nil, aws.String("AAAA")} {
		store := w.store
		store.Client = lying{Bucket: w.store.Client, sum: sum}
		require.True(t, storage.IsIntegrity(store.CopyToArchive(t.Context(), v, "archive/2026/05/fix/v1/")))
	}
}

type lying struct {
	storage.Bucket
	sum *string
}

// CopyObject copies and lies about it.
func (l lying) CopyObject(ctx context.Context, in *s3.CopyObjectInput, options ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	out, err := l.Bucket.CopyObject(ctx, in, options...)
	if err == nil {
		out.CopyObjectResult.ChecksumSHA256 = l.sum
	}
	return out, err
}
