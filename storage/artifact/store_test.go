package artifact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

var noon = time.Date(2026, 5, 31, 12, 0, 0, 123, time.UTC)

// world is a store of its own with the chains of its versions.
type world struct {
	t      *testing.T
	store  storage.Store
	calls  *storagetest.Calls
	chains map[int]artifact.Chain
	now    time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	calls := &storagetest.Calls{}
	client := s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle = true })
	_, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket.Name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	require.NoError(t, err)
	t.Cleanup(func() { removeVersions(t, client, bucket.Name) })
	return &world{t: t, store: storage.New(tab.Client, tab.Name, client, bucket.Name), calls: calls, chains: map[int]artifact.Chain{}, now: noon}
}

func removeVersions(t *testing.T, client *s3.Client, bucket string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	require.NoError(t, err)
	for _, v := range out.Versions {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: v.Key, VersionId: v.VersionId})
		require.NoError(t, err)
	}
	for _, v := range out.DeleteMarkers {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: v.Key, VersionId: v.VersionId})
		require.NoError(t, err)
	}
}

func (w *world) record(version int, name string) artifact.Record {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	r, next, err := w.chains[version].Extend(version, name, "user:author", w.now, "x", artifact.Event{Reason: name})
	require.NoError(w.t, err)
	w.chains[version] = next
	return r
}

func (w *world) create(version int) storage.Creation {
	w.t.Helper()
	policy, err := artifact.Policy{Approvers: []string{"user:a"}}.Complete("user:author", nil, true)
	require.NoError(w.t, err)
	spec := artifact.Spec{Kind: artifact.Script, Policy: policy}
	var files []storage.StoredFile
	for _, role := range []artifact.Role{artifact.Primary, artifact.Rollback} {
		f := artifact.File{Role: role, Filename: "run.sh"}
		stored, err := w.store.Put(w.t.Context(), storage.ContentKey("fix", version, f.StoredName()), "text/plain", strings.NewReader(string(role)))
		require.NoError(w.t, err)
		stored.Role, stored.Filename = role, f.Filename
		files = append(files, stored)
	}
	_, err = w.store.PutJSON(w.t.Context(), storage.ContentKey("fix", version, artifact.SpecFile), spec)
	require.NoError(w.t, err)
	bundle, err := artifact.BundleHash([]artifact.File{files[0].File(), files[1].File()}, spec)
	require.NoError(w.t, err)
	return storage.Creation{
		Request: artifact.Request{ArtifactID: "fix", Version: version, Author: "user:author", Spec: spec},
		Content: storage.Content{Files: files, BundleHash: bundle}, State: artifact.InReview,
		Record: w.record(version, "submitted"), Submission: artifact.Unverified,
	}
}

func (w *world) step(version int, from, to artifact.State, change func(*storage.Step)) storage.Step {
	name := "decided"
	if from != to {
		name = string(to)
	}
	s := storage.Step{ArtifactID: "fix", Version: version, Record: w.record(version, name), From: from, To: to}
	if change != nil {
		change(&s)
	}
	return s
}

func head(m storage.HeadMove, run string) func(*storage.Step) {
	return func(s *storage.Step) { s.Head, s.Run = m, run }
}

// raw reads an item as it is.
func (w *world) raw(pk, sk string) map[string]any {
	w.t.Helper()
	item := map[string]any{}
	found, err := w.store.Table.Get(w.t.Context(), table.Key{Partition: pk, Sort: sk}, &item)
	require.NoError(w.t, err)
	require.True(w.t, found, "%s %s", pk, sk)
	return item
}

func TestKeysAreThoseOfTheProtocol(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	created, stamp := "2026-05-31T12:00:01.000000123Z", "2026-05-31T12:00:02.000000123Z"
	v := w.raw("ART#fix", "V#1")
	require.Equal(t, "STATE#in_review", v["GSI1PK"])
	require.Equal(t, "#"+created+"#fix", v["GSI1SK"])
	for _, name := range []string{"entity", "version", "schema_version", "created_at", "updated_at"} {
		require.Contains(t, v, name)
	}
	require.NotContains(t, v, "expires_at")
	trans := w.raw("ART#fix", "TRANS#"+created)
	require.Equal(t, "TRANS#2026-05-31", trans["GSI1PK"])
	require.Equal(t, "#"+created+"#fix", trans["GSI1SK"])
	require.Equal(t, "in_review", trans["to"])
	prov := w.raw("ART#fix", "PROV#v0001-0001-submitted")
	require.Equal(t, "PROV#2026-05-31", prov["GSI1PK"])

	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) {
		s.Decision = &artifact.Decision{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: "x"}, RecordedAt: s.Record.At}
	})))
	approval := w.raw("ART#fix", "APPROVAL#"+stamp)
	require.Equal(t, "APPROVER#user:a", approval["GSI1PK"])
	require.Equal(t, "#"+stamp+"#fix", approval["GSI1SK"])

	began, err := w.store.Begin(ctx, "fix", 1, storage.Run{RunID: "r1", Status: storage.Running, StartedAt: noon})
	require.NoError(t, err)
	require.True(t, began)
	exec := w.raw("ART#fix", "EXEC#r1")
	require.Equal(t, "RUN#2026-05-31", exec["GSI1PK"])
	require.Equal(t, "#2026-05-31T12:00:00.000000123Z#fix", exec["GSI1SK"])

	require.Equal(t, "artifacts/fix/v1/rollback-run.sh", storage.ContentKey("fix", 1, artifact.File{Role: artifact.Rollback, Filename: "run.sh"}.StoredName()))
	require.Equal(t, "executions/r1/stdout.log", storage.RunKey("r1", storage.StdoutFile))
	require.Equal(t, "provenance/fix.json", storage.ProvenanceKey("fix"))
	require.Equal(t, "archive/2026/05/fix/v1/", storage.ArchivePrefix("fix", 1, time.Date(2026, 6, 1, 8, 59, 59, 0, time.FixedZone("KST", 9*3600))))
	require.Equal(t, "archive/2026/12/fix/v1/", storage.ArchivePrefix("fix", 1, time.Date(2026, 12, 31, 23, 59, 59, 999, time.UTC)))
}

func TestACompensationStandsBesideItsArtifact(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r1"))))
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Executing, artifact.Failed, nil)))
	started := w.now.Add(time.Second)
	undo := func(state storage.CompensationState, move storage.HeadMove) func(*storage.Step) {
		return func(s *storage.Step) {
			s.Head, s.Run = move, "r1"
			s.Undo = &storage.Undo{State: state, RunID: "r2", Attempts: 1, StartedAt: started}
		}
	}
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Failed, artifact.Compensating, undo(storage.CompensationRunning, storage.HeadUndo))))
	comp := w.raw("ART#fix", "COMP#comp-fix-v1")
	require.Equal(t, "COMP_STATE#running", comp["GSI1PK"])
	stand := w.raw("ART#comp-fix-v1", "V#1")
	require.Equal(t, "STATE#executing", stand["GSI1PK"])
	require.Equal(t, "artifacts/fix/v1/rollback-run.sh", stand["files"].([]any)[0].(map[string]any)["key"])
	require.NoError(t, w.store.Commit(ctx, w.step(1, artifact.Compensating, artifact.Compensated, undo(storage.CompensationDone, storage.HeadRelease))))
	running, _, err := w.store.CompensationsIn(ctx, storage.CompensationRunning, storage.Page{})
	require.NoError(t, err)
	require.Empty(t, running)
	done, _, err := w.store.CompensationsIn(ctx, storage.CompensationDone, storage.Page{})
	require.NoError(t, err)
	require.Equal(t, "comp-fix-v1", done[0].CompArtifactID)
	h, err := w.store.Head(ctx, "fix")
	require.NoError(t, err)
	require.Empty(t, h.ExecutingRun, "the next version may run")
}

func TestAStepIsMadeOnceHoweverOftenItIsTried(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	creation := w.create(1)
	approve := w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))
	for range 3 {
		require.NoError(t, w.store.Create(ctx, creation))
	}
	for range 3 {
		require.NoError(t, w.store.Commit(ctx, approve))
	}
	require.NoError(t, w.store.Create(ctx, creation), "even after the version went on")
	transitions, err := w.store.Transitions(ctx, "fix", 1)
	require.NoError(t, err)
	require.Len(t, transitions, 2)
	records, err := w.store.Provenance(ctx, "fix", 1)
	require.NoError(t, err)
	end, err := artifact.VerifyChain(1, records)
	require.NoError(t, err)
	v, err := w.store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	require.Equal(t, end, artifact.Chain{Length: v.ChainLength, Last: v.ChainLast})
	require.Equal(t, artifact.Approved, v.State)
}

func TestAForeignOrForbiddenStepIsRefusedAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	var forbidden *artifact.TransitionError
	require.ErrorAs(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.Executed, nil)), &forbidden)
	require.ErrorIs(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.Approved, nil)), storage.ErrConflict, "its chain has a link that was never written")
	v, err := w.store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	require.Equal(t, artifact.InReview, v.State)
	again := w.create(1)
	require.ErrorIs(t, w.store.Create(ctx, again), storage.ErrTaken)
	_, err = w.store.Version(ctx, "fix", 9)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

func TestHeadGuardsVersionsAgainstEachOther(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	require.NoError(t, w.store.Create(ctx, w.create(2)))
	chain := w.chains[1]
	require.NoError(t, w.store.Commit(ctx, w.step(2, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
	require.ErrorIs(t, w.store.Commit(ctx, w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))), storage.ErrSuperseded)
	w.chains[1] = chain
	require.NoError(t, w.store.Commit(ctx, w.step(2, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r2"))))
	require.NoError(t, w.store.Create(ctx, w.create(3)))
	require.NoError(t, w.store.Commit(ctx, w.step(3, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))))
	chain = w.chains[3]
	require.ErrorIs(t, w.store.Commit(ctx, w.step(3, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r3"))), storage.ErrBusy)
	w.chains[3] = chain
	require.NoError(t, w.store.Commit(ctx, w.step(2, artifact.Executing, artifact.Executed, head(storage.HeadRelease, "r2"))))
	require.NoError(t, w.store.Commit(ctx, w.step(3, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r3"))))
	late := w.create(2)
	require.ErrorIs(t, w.store.Create(ctx, late), storage.ErrTaken, "a number below the latest")
}

func TestOfTwoVersionsApprovedAtOnceTheNewerStands(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	require.NoError(t, w.store.Create(ctx, w.create(2)))
	steps := []storage.Step{
		w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, "")),
		w.step(2, artifact.InReview, artifact.Approved, head(storage.HeadApprove, "")),
	}
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for i, step := range steps {
		wait.Go(func() { errs[i] = w.store.Commit(ctx, step) })
	}
	wait.Wait()
	require.NoError(t, errs[1], "nothing can stop the newer one")
	if errs[0] != nil {
		require.ErrorIs(t, errs[0], storage.ErrSuperseded)
	}
	h, err := w.store.Head(ctx, "fix")
	require.NoError(t, err)
	require.Equal(t, 2, h.ApprovedVersion)
}

func TestADecisionReplacesTheActorsEarlierOne(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	decide := func(verb artifact.Verb, earlier *time.Time) time.Time {
		step := w.step(1, artifact.InReview, artifact.InReview, func(s *storage.Step) {
			s.Decision = &artifact.Decision{Command: artifact.Command{Verb: verb, Actor: "user:a", BundleHash: "x"}, RecordedAt: s.Record.At, Assurance: artifact.Gateway}
			s.Earlier = earlier
		})
		require.NoError(t, w.store.Commit(ctx, step))
		return step.Record.At
	}
	first := decide(artifact.Reject, nil)
	second := decide(artifact.Approve, &first)
	approvals, err := w.store.Approvals(ctx, "fix", 1)
	require.NoError(t, err)
	require.Len(t, approvals, 2)
	require.Equal(t, second, *approvals[0].SupersededBy)
	require.Nil(t, approvals[1].SupersededBy)
	require.Equal(t, artifact.Gateway, approvals[1].Assurance)
}

func TestAStepMadeBeforeIsGivenAsItWasMade(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	creation := w.create(1)
	creation.Creator = "workflow-run"
	require.NoError(t, w.store.Create(ctx, creation))
	start := w.chains[1]
	later := func(record artifact.Record, from artifact.Chain, change func(*artifact.Record)) artifact.Record {
		t.Helper()
		name := strings.SplitN(record.Step, "-", 3)[2]
		again, _, err := from.Extend(1, name, record.Actor, record.At.Add(time.Hour), record.Subject, artifact.Event{Reason: "another time"})
		require.NoError(t, err)
		if change != nil {
			change(&again)
		}
		return again
	}
	again := creation
	again.Record = later(creation.Record, artifact.Chain{}, nil)
	written, err := w.store.CreateOnce(ctx, again)
	require.NoError(t, err)
	require.Equal(t, creation.Record, written.Record)
	again.Creator = "another run"
	_, err = w.store.CreateOnce(ctx, again)
	require.ErrorIs(t, err, storage.ErrTaken)

	approved := w.step(1, artifact.InReview, artifact.Approved, head(storage.HeadApprove, ""))
	require.NoError(t, w.store.Commit(ctx, approved))
	runs := w.step(1, artifact.Approved, artifact.Executing, head(storage.HeadRun, "r1"))
	require.NoError(t, w.store.Commit(ctx, runs))
	retried := runs
	retried.Record, retried.Run = later(runs.Record, artifact.Chain{Length: 2, Last: approved.Record.Hash}, nil), "r2"
	written, err = w.store.CommitOnce(ctx, retried)
	require.NoError(t, err)
	require.Equal(t, storage.Written{Record: runs.Record, Run: "r1"}, written)
	retried = approved
	retried.Record = later(approved.Record, start, nil)
	written, err = w.store.CommitOnce(ctx, retried)
	require.NoError(t, err, "also when the version has gone on since")
	require.Equal(t, approved.Record, written.Record)
	for name, change := range map[string]func(*artifact.Record){
		"another actor":   func(r *artifact.Record) { r.Actor = "user:other" },
		"another content": func(r *artifact.Record) { r.Subject = "other" },
		"another past":    func(r *artifact.Record) { r.Prev = "other" },
		"another step":    func(r *artifact.Record) { r.Step = "v0001-0002-rejected" },
	} {
		retried.Record = later(approved.Record, start, change)
		_, err = w.store.CommitOnce(ctx, retried)
		require.ErrorIs(t, err, storage.ErrConflict, name)
	}
	transitions, err := w.store.Transitions(ctx, "fix", 1)
	require.NoError(t, err)
	require.Len(t, transitions, 3, "nothing is written twice")
}

func TestListsPageThroughTheIndex(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for version := 1; version <= 5; version++ {
		require.NoError(t, w.store.Create(ctx, w.create(version)))
	}
	var versions []int
	page := storage.Page{Limit: 2}
	for {
		items, next, err := w.store.InState(ctx, artifact.InReview, page)
		require.NoError(t, err)
		for _, item := range items {
			versions = append(versions, item.Version)
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	require.Equal(t, []int{1, 2, 3, 4, 5}, versions)
	newest, _, err := w.store.InState(ctx, artifact.InReview, storage.Page{Limit: 1, Descending: true})
	require.NoError(t, err)
	require.Equal(t, 5, newest[0].Version)
	day, _, err := w.store.TransitionsOn(ctx, "2026-05-31", storage.Page{})
	require.NoError(t, err)
	require.Len(t, day, 5)
	none, _, err := w.store.ByApprover(ctx, "user:nobody", storage.Page{})
	require.NoError(t, err)
	require.Empty(t, none)
	all, err := w.store.Versions(ctx, "fix")
	require.NoError(t, err)
	require.Equal(t, 5, all[0].Version)
}

func TestARunBeginsOnceAndEndsOnce(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	run := storage.Run{RunID: "r1", Role: artifact.Primary, Status: storage.Running, StartedAt: noon}
	began, err := w.store.Begin(ctx, "fix", 1, run)
	require.NoError(t, err)
	require.True(t, began)
	began, err = w.store.Begin(ctx, "fix", 1, run)
	require.NoError(t, err)
	require.False(t, began, "a second attempt must not run it again")
	lost, found, err := w.store.Lose(ctx, "fix", "r1", storage.WorkerLost, "no heartbeat", noon)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, storage.WorkerLost, lost.Status)
	run.Status = storage.Succeeded
	require.ErrorIs(t, w.store.Finish(ctx, "fix", run), storage.ErrConflict, "the first word is the last")
	_, found, err = w.store.Lose(ctx, "fix", "r2", storage.WorkerLost, "", noon)
	require.NoError(t, err)
	require.False(t, found, "it never began")
	runs, _, err := w.store.RunsOn(ctx, "2026-05-31", storage.Page{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	of, err := w.store.Runs(ctx, "fix", 1)
	require.NoError(t, err)
	require.Len(t, of, 1)
}

func TestContentIsVerifiedWhileItStreams(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	file, err := w.store.Put(ctx, "artifacts/fix/v1/run.sh", "text/plain", bytes.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, artifact.HashOf(body), file.ContentHash)
	require.NotEmpty(t, file.S3VersionID)
	require.NoError(t, w.store.Verify(ctx, file))
	read, err := w.store.ReadAll(ctx, file, 2<<20)
	require.NoError(t, err)
	require.Equal(t, body, read)
	_, err = w.store.ReadAll(ctx, file, 10)
	require.ErrorIs(t, err, objects.ErrTooLarge)

	found, err := w.store.Stat(ctx, file.Key, file.S3VersionID)
	require.NoError(t, err)
	require.Equal(t, file.ContentHash, found.ContentHash)

	_, err = w.store.Put(ctx, file.Key, "text/plain", strings.NewReader("changed"))
	require.NoError(t, err)
	read, err = w.store.ReadAll(ctx, file, 2<<20)
	require.NoError(t, err)
	require.Equal(t, body, read, "reads name the version that was approved")
	require.True(t, storage.IsIntegrity(w.store.Verify(ctx, file)), "and it was written over")
	unversioned := file
	unversioned.S3VersionID = ""
	var broken *objects.IntegrityError
	require.ErrorAs(t, w.store.Verify(ctx, unversioned), &broken)
	require.Equal(t, file.ContentHash, broken.Want)
	stream, err := w.store.Open(ctx, unversioned)
	require.NoError(t, err)
	_, err = io.ReadAll(stream)
	require.True(t, storage.IsIntegrity(err))
	require.NoError(t, stream.Close())
	gone := storage.StoredFile{Key: "artifacts/none", ContentHash: file.ContentHash}
	require.ErrorAs(t, w.store.Verify(ctx, gone), &broken)
	_, err = w.store.Stat(ctx, "artifacts/none", "")
	require.ErrorIs(t, err, objects.ErrNotFound)
}

func TestDocumentsHoldEverythingWithTheirHashes(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	creation := w.create(1)
	require.NoError(t, w.store.Create(ctx, creation))
	require.NoError(t, w.store.WriteMetadata(ctx, "fix", 1))
	require.NoError(t, w.store.WriteProvenance(ctx, "fix"))
	v, err := w.store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	metadata, err := w.store.ReadAll(ctx, storage.StoredFile{Key: storage.ContentKey("fix", 1, artifact.MetadataFile), ContentHash: v.MetadataHash}, 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(metadata), creation.Content.BundleHash)
	h, err := w.store.Head(ctx, "fix")
	require.NoError(t, err)
	body, err := w.store.ReadAll(ctx, storage.StoredFile{Key: storage.ProvenanceKey("fix"), ContentHash: h.ProvenanceHash}, 1<<20)
	require.NoError(t, err)
	var document storage.Document
	require.NoError(t, json.Unmarshal(body, &document))
	_, err = artifact.VerifyChain(1, document.Versions[0].Records)
	require.NoError(t, err)
	require.NoError(t, w.store.VerifyStored(ctx, document.Versions[0].Artifact))
}

func TestArchivingCopiesComparesAndThenDeletes(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.store.Create(ctx, w.create(1)))
	v, err := w.store.Version(ctx, "fix", 1)
	require.NoError(t, err)
	prefix := storage.ArchivePrefix("fix", 1, noon)
	wrong := v
	wrong.Files = append([]storage.StoredFile{}, v.Files...)
	wrong.Files[0].ContentHash = artifact.HashOf([]byte("other"))
	require.True(t, storage.IsIntegrity(w.store.CopyToArchive(ctx, wrong, prefix)))
	require.NoError(t, w.store.VerifyStored(ctx, v), "nothing was deleted")
	for range 2 {
		require.NoError(t, w.store.CopyToArchive(ctx, v, prefix))
	}
	for range 2 {
		require.NoError(t, w.store.RemoveOriginals(ctx, v))
	}
	head, err := w.store.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &w.store.Bucket, Key: aws.String(prefix + "rollback-run.sh")})
	require.NoError(t, err)
	require.Equal(t, int64(len("rollback")), *head.ContentLength)
}

func TestKeysAndGroups(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJVYpbpWzxXzPyZHpnBhzfYzkKDkFyZbWfDLUr1VJ0oP kim@desk"
	key, err := w.store.AddKey(ctx, "user:kim", public, noon)
	require.NoError(t, err)
	require.NotContains(t, key.PublicKey, "kim@desk")
	require.NoError(t, w.store.RevokeKey(ctx, "user:kim", key.Fingerprint, noon))
	again, err := w.store.AddKey(ctx, "user:kim", public, noon.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, noon, *again.RevokedAt, "a revoked key stays revoked")
	_, found, err := w.store.Key(ctx, "user:lee", key.Fingerprint)
	require.NoError(t, err)
	require.False(t, found, "a key is its actor's")
	keys, err := w.store.KeysOf(ctx, "user:kim")
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Error(t, w.store.RevokeKey(ctx, "user:kim", "SHA256:none", noon))
	_, err = w.store.AddKey(ctx, "kim", public, noon)
	require.Error(t, err)

	require.NoError(t, w.store.AddMember(ctx, "ops", "user:b", noon))
	require.NoError(t, w.store.AddMember(ctx, "ops", "user:a", noon))
	members, err := w.store.Members(ctx, "ops")
	require.NoError(t, err)
	require.Equal(t, []string{"user:a", "user:b"}, members)
	require.NoError(t, w.store.RemoveMember(ctx, "ops", "user:b"))
	members, err = w.store.Members(ctx, "ops")
	require.NoError(t, err)
	require.Equal(t, []string{"user:a"}, members)
	require.Error(t, w.store.AddMember(ctx, "Ops!", "user:b", noon))
	require.Error(t, w.store.AddMember(ctx, "ops", "b", noon))
}
