package artifact_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// did records a run of a version at a factory.
func (w *world) did(version int, role artifact.Role, factoryID string, status storage.RunStatus) {
	w.t.Helper()
	run := storage.Run{
		RunID: fmt.Sprintf("%s-%d-%s", role, version, factoryID), Role: role, Kind: artifact.IoTJob, FactoryID: factoryID, Status: status, StartedAt: w.now,
	}
	began, err := w.store.Begin(w.t.Context(), "fix", version, run)
	require.NoError(w.t, err)
	require.True(w.t, began)
}

func TestAVersionIsInUseWhereverItWasNotReplacedOrUndone(t *testing.T) {
	w := newWorld(t)
	inUse := func(version int, state artifact.State) bool {
		v := storage.Artifact{Kind: artifact.IoTJob, State: state}
		v.ArtifactID, v.Version = "fix", version
		used, err := w.store.InUse(t.Context(), v)
		require.NoError(t, err)
		return used
	}
	require.False(t, inUse(1, artifact.Rejected), "it never ran")
	w.did(1, artifact.Primary, "factory-a", storage.Succeeded)
	w.did(1, artifact.Primary, "factory-b", storage.Succeeded)
	require.True(t, inUse(1, artifact.Executed))
	w.did(2, artifact.Primary, "factory-a", storage.Succeeded)
	require.True(t, inUse(1, artifact.Executed), "factory-b runs it still")
	require.True(t, inUse(2, artifact.Failed), "a failed rollout that was kept is run all the same")
	w.did(3, artifact.Primary, "factory-b", storage.TimedOut)
	require.True(t, inUse(1, artifact.Executed), "nobody knows whether the newer one took its place")
	require.True(t, inUse(3, artifact.CompensationFailed))
	w.did(3, artifact.Rollback, "factory-b", storage.Succeeded)
	require.False(t, inUse(3, artifact.Compensated))
	w.did(4, artifact.Primary, "factory-b", storage.Succeeded)
	require.False(t, inUse(1, artifact.Executed), "newer ones took its place everywhere")
	w.did(4, artifact.Rollback, "factory-b", storage.Succeeded)
	require.True(t, inUse(1, artifact.Executed), "the newer one was undone")
	w.did(5, artifact.Primary, "factory-c", storage.NeverBegan)
	require.False(t, inUse(5, artifact.Failed))
}

func TestContentThatIsGoneCanNotBeArchived(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	v, err := w.store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	f := v.Files[0]
	_, err = w.store.Client.(*s3.Client).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &w.store.Bucket, Key: &f.Key, VersionId: &f.S3VersionID})
	require.NoError(t, err)
	err = w.store.CopyToArchive(ctx, v, "archive/2026/05/fix/v1/")
	require.True(t, storage.IsIntegrity(err), "%v", err)
	v.Files[0].S3VersionID = ""
	err = w.store.CopyToArchive(ctx, v, "archive/2026/05/fix/v1/")
	require.True(t, storage.IsIntegrity(err), "%v", err)
	lost := w.store
	lost.Bucket = "no-such-bucket"
	err = lost.CopyToArchive(ctx, v, "archive/2026/05/fix/v1/")
	require.Error(t, err)
	require.False(t, storage.IsIntegrity(err), "a bucket may come back")
}
