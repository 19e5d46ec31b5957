package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
)

// errCrashed is what a process sees that is no more.
var errCrashed = errors.New("the process crashed")

// crash lets a number of requests through and none after: the process died.
type crash struct {
	left atomic.Int64
	made atomic.Int64
}

// watch is a store whose requests go through the crash.
func (c *crash) watch(t *testing.T, of storage.Store) storage.Store {
	t.Helper()
	cfg := storagetest.Config(t)
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("crash", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if c.left.Add(-1) < 0 {
				return middleware.FinalizeOutput{}, middleware.Metadata{}, errCrashed
			}
			c.made.Add(1)
			return next.HandleFinalize(ctx, in)
		}), middleware.Before)
	})
	objects := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	return storage.New(dynamodb.NewFromConfig(cfg), of.Table.Name, objects, of.Bucket)
}

// settle submits version n of its own artifact and withdraws it.
func (d *desk) settle(id string) storage.Artifact {
	d.Helper()
	v := d.submit(script("#!/bin/sh\n", func(r *artifact.Request) { r.ArtifactID = id }))
	step := workflows.Step{
		ArtifactID: id, Version: 1, From: artifact.InReview, To: artifact.Withdrawn,
		Record: d.record(1, "withdrawn", "user:author", artifact.Event{From: artifact.InReview, To: artifact.Withdrawn, BundleHash: v.BundleHash}),
	}
	require.NoError(d, d.Commit(d.Context(), step))
	v, err := d.Store.Version(d.Context(), id, 1)
	require.NoError(d, err)
	return v
}

// copied tells whether every file of a version lies in the archive, whole.
func (d *desk) copied(v storage.Artifact) bool {
	d.Helper()
	prefix := storage.ArchivePrefix(v.ArtifactID, v.Version, *v.SettledAt)
	for _, f := range v.Files {
		found, err := d.Store.Stat(d.Context(), prefix+f.File().StoredName(), "")
		if err != nil || found.ContentHash != f.ContentHash {
			return false
		}
	}
	return true
}

// readable tells whether the originals are what was approved, as they lie there.
func (d *desk) readable(v storage.Artifact) bool {
	d.Helper()
	for _, f := range v.Files {
		found, err := d.Store.Stat(d.Context(), f.Key, "")
		if err != nil || found.ContentHash != f.ContentHash {
			return false
		}
	}
	return true
}

// archivedOnce asserts the final state of a version: all of it, and once.
func (d *desk) archivedOnce(before storage.Artifact) {
	d.Helper()
	ctx, id := d.Context(), before.ArtifactID
	v, err := d.Store.Version(ctx, id, 1)
	require.NoError(d, err)
	require.Equal(d, artifact.Archived, v.State)
	require.True(d, d.copied(before), "the content is in the archive")
	left, err := d.Store.OriginalsLeft(ctx, v)
	require.NoError(d, err)
	require.False(d, left)
	transitions, err := d.Store.Transitions(ctx, id, 1)
	require.NoError(d, err)
	var states []artifact.State
	for _, t := range transitions {
		states = append(states, t.To)
	}
	require.Equal(d, []artifact.State{artifact.InReview, artifact.Withdrawn, artifact.Archived}, states, "no transition twice")
	dossier, err := d.Store.Dossier(ctx, id, 1)
	require.NoError(d, err)
	end, err := artifact.VerifyChain(1, dossier.Records)
	require.NoError(d, err)
	require.Equal(d, artifact.Chain{Length: 3, Last: v.ChainLast}, end)
	published, err := d.Store.Published(ctx, v)
	require.NoError(d, err)
	require.True(d, published, "the snapshots tell of it")
	metadata, err := d.Store.ReadAll(ctx, storage.StoredFile{Key: storage.ContentKey(id, 1, artifact.MetadataFile), ContentHash: v.MetadataHash}, 1<<20)
	require.NoError(d, err)
	require.Contains(d, string(metadata), `"state":"archived"`)
}

// safe asserts what holds at every moment: there is a whole copy of the content
// as long as the version is not marked archived, and after.
func (d *desk) safe(before storage.Artifact, at string) {
	d.Helper()
	v, err := d.Store.Version(d.Context(), before.ArtifactID, 1)
	require.NoError(d, err)
	if v.State == artifact.Archived {
		require.True(d, d.copied(before), at)
		return
	}
	require.True(d, d.readable(before), at)
}

// steps are how many requests a piece of work makes, by doing it once.
func (d *desk) steps(work func(storage.Store) error) int {
	d.Helper()
	var c crash
	c.left.Store(1 << 30)
	require.NoError(d, work(c.watch(d.T, d.Store)))
	return int(c.made.Load())
}

// TestTheDailyJobSurvivesACrashAtEveryRequest crashes the job after its first
// request, after its second and so on, each time with another version, looks,
// and lets a second run finish.
func TestTheDailyJobSurvivesACrashAtEveryRequest(t *testing.T) {
	d := newDesk(t)
	// One version at a time is settled, else a job finds several.
	job := func(s storage.Store) error {
		other := *d
		other.Store = s
		_, err := other.sweep(watcher{err: serviceerror.NewNotFound("")}, false)
		return err
	}
	first := d.settle("fix-all")
	d.now = first.SettledAt.Add(32 * 24 * time.Hour)
	total := d.steps(job)
	d.archivedOnce(first)
	require.Greater(t, total, 20)
	crashed := 0
	for n := range total {
		id := fmt.Sprintf("fix-%d", n)
		v := d.settle(id)
		d.now = d.now.Add(32 * 24 * time.Hour) // the versions before are out of the job's sight
		var c crash
		c.left.Store(int64(n))
		if err := job(c.watch(t, d.Store)); err != nil {
			crashed++
		}
		d.safe(v, fmt.Sprintf("after request %d of %d", n, total))
		require.NoError(t, job(d.Store))
		d.archivedOnce(v)
	}
	require.Greater(t, crashed, total/2)
}

// TestArchivingByItsLifecycleSurvivesACrashAtEveryRequest does the same with the
// activities of the lifecycle, each of which Temporal tries again.
func TestArchivingByItsLifecycleSurvivesACrashAtEveryRequest(t *testing.T) {
	d := newDesk(t)
	life := func(v storage.Artifact, record artifact.Record) func(storage.Store) error {
		return func(s storage.Store) error {
			a := d.Activities
			a.Store = s
			ref := workflows.VersionRef{ArtifactID: v.ArtifactID, Version: 1}
			archived, err := a.Archive(t.Context(), workflows.ArchiveRequest{VersionRef: ref, SettledAt: *v.SettledAt})
			if err != nil {
				return err
			}
			step := workflows.Step{ArtifactID: v.ArtifactID, Version: 1, Record: record, From: artifact.Withdrawn, To: artifact.Archived, ArchivePrefix: archived.Prefix}
			if _, err := a.Commit(t.Context(), step); err != nil {
				return err
			}
			if err := a.Clear(t.Context(), ref); err != nil {
				return err
			}
			return a.Publish(t.Context(), workflows.PublishRequest{VersionRef: ref, Provenance: true})
		}
	}
	prepare := func(id string) (storage.Artifact, func(storage.Store) error) {
		v := d.settle(id)
		return v, life(v, d.record(1, "archived", artifact.System, artifact.Event{From: artifact.Withdrawn, To: artifact.Archived, BundleHash: v.BundleHash}))
	}
	first, work := prepare("fix-all")
	total := d.steps(work)
	d.archivedOnce(first)
	require.Greater(t, total, 10)
	for n := range total {
		v, work := prepare(fmt.Sprintf("fix-%d", n))
		var c crash
		c.left.Store(int64(n))
		require.ErrorIs(t, work(c.watch(t, d.Store)), errCrashed)
		d.safe(v, fmt.Sprintf("after request %d of %d", n, total))
		require.NoError(t, work(d.Store))
		d.archivedOnce(v)
	}
}

func TestOrphansAreSweptAfterADay(t *testing.T) {
	d := newDesk(t)
	d.submit(script("#!/bin/sh\n"))
	d.submit(script("#!/bin/sh\n", func(r *artifact.Request) { r.ArtifactID, r.Draft = "draft", true }))
	put := func(key string) {
		_, err := d.Store.Put(t.Context(), key, "text/plain", strings.NewReader(key))
		require.NoError(t, err)
	}
	put("artifacts/never/v1/run.sh")
	put("artifacts/fix/v1/other.sh")
	gone, begins := watcher{err: serviceerror.NewNotFound("")}, watcher{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
	orphans := func(w watcher, dry bool) workflows.SweepReport {
		report, err := d.sweep(w, dry)
		require.NoError(t, err)
		return report
	}
	d.now = time.Now() // objects have the time of the store
	require.Zero(t, orphans(gone, false).Orphaned, "fresh uploads are left alone")
	d.now = d.now.Add(25 * time.Hour)
	require.Zero(t, orphans(begins, false).Orphaned, "a lifecycle that begins may refer to them")
	_, err := d.sweep(watcher{err: errors.New("no route")}, false)
	require.Error(t, err, "unknown is not ended")
	want := []string{"artifacts/fix/v1/other.sh", "artifacts/never/v1/run.sh"}
	for range 2 {
		report := orphans(gone, true)
		require.Equal(t, want, report.Orphans, "a dry run lists and does nothing")
		require.Equal(t, 2, report.Orphaned)
	}
	require.Equal(t, want, orphans(gone, false).Orphans)
	require.Zero(t, orphans(gone, false).Orphaned)
	v, err := d.Store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.True(t, d.readable(v))
}

func TestTheMonthOfTheOutcomeNamesTheArchive(t *testing.T) {
	d := newDesk(t)
	d.now = time.Date(2026, 12, 31, 23, 59, 56, 0, time.FixedZone("KST", 9*3600)) // 14:59:56 in UTC
	v := d.settle("fix-kst")
	require.Equal(t, "archive/2026/12/fix-kst/v1/", storage.ArchivePrefix("fix-kst", 1, *v.SettledAt))
	d.now = time.Date(2026, 12, 31, 23, 59, 57, 999_999_999, time.UTC)
	last := d.settle("fix-last") // submitted 23:59:58.999999999, settled a second later
	require.Equal(t, time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC), last.SettledAt.UTC())
	next := d.settle("fix-next")
	d.now = next.SettledAt.Add(31 * 24 * time.Hour)
	report, err := d.sweep(watcher{err: serviceerror.NewNotFound("")}, false)
	require.NoError(t, err)
	require.Len(t, report.Archived, 3)
	for id, prefix := range map[string]string{"fix-last": "archive/2026/12/fix-last/v1/", "fix-next": "archive/2027/01/fix-next/v1/"} {
		v, err := d.Store.Version(t.Context(), id, 1)
		require.NoError(t, err)
		require.Equal(t, prefix, v.ArchivePrefix)
	}
}

func TestWhatFactoriesRunIsNotArchived(t *testing.T) {
	d := newDesk(t)
	rollOut := func(version int) storage.Artifact {
		job := script("{}", func(r *artifact.Request) {
			r.Version = version
			r.Spec.Kind, r.Spec.Args = artifact.IoTJob, []byte(`{"targets":["factory-a"],"waves":["rest"]}`)
		})
		v := d.submit(job)
		for _, step := range [][2]artifact.State{{artifact.InReview, artifact.Approved}, {artifact.Approved, artifact.Executing}, {artifact.Executing, artifact.Executed}} {
			require.NoError(t, d.Commit(t.Context(), workflows.Step{
				ArtifactID: "fix", Version: version, From: step[0], To: step[1],
				Record: d.record(version, string(step[1]), artifact.System, artifact.Event{From: step[0], To: step[1], BundleHash: v.BundleHash}),
			}))
		}
		_, err := d.Store.Begin(t.Context(), "fix", version, storage.Run{
			RunID: runID(version), Role: artifact.Primary, Kind: artifact.IoTJob, FactoryID: "factory-a", Status: storage.Succeeded, StartedAt: d.now,
		})
		require.NoError(t, err)
		v, err = d.Store.Version(t.Context(), "fix", version)
		require.NoError(t, err)
		return v
	}
	first := rollOut(1)
	d.now = d.now.Add(32 * 24 * time.Hour)
	gone := watcher{err: serviceerror.NewNotFound("")}
	report, err := d.sweep(gone, false)
	require.NoError(t, err)
	require.Empty(t, report.Archived)
	_, err = d.Archive(t.Context(), workflows.ArchiveRequest{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, SettledAt: *first.SettledAt})
	typed(t, err, workflows.ErrBusy)
	require.True(t, d.readable(first))
	rollOut(2)
	d.now = d.now.Add(32 * 24 * time.Hour)
	report, err = d.sweep(gone, false)
	require.NoError(t, err)
	require.Equal(t, []string{"artifact/fix/v1"}, report.Archived, "the newer one took its place")
}
