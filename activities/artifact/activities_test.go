package artifact

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/table"
	workflows "millrace/workflows/artifact"
)

func newSigner(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func approve(v storage.Artifact, actor string, at time.Time) artifact.Command {
	return artifact.Command{Verb: artifact.Approve, Actor: actor, BundleHash: v.BundleHash, At: at}
}

func sign(t *testing.T, signer ssh.Signer, c artifact.Command, version int) artifact.Command {
	t.Helper()
	var err error
	c.Signature, err = artifact.Sign(signer, c, "fix", version)
	require.NoError(t, err)
	return c
}

func TestASubmissionIsStoredHashedAndFrozen(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.Store.AddMember(t.Context(), "ops", "user:c", d.now))
	v := d.submit(script("#!/bin/sh\n", func(r *artifact.Request) { r.Spec.Policy.Approvers = []string{"group:ops"} }))
	require.Equal(t, map[string][]string{"ops": {"user:c"}}, v.Spec.Policy.Groups)
	require.Equal(t, artifact.HashOf([]byte("#!/bin/sh\n")), v.Files[0].ContentHash)
	require.Equal(t, "artifacts/fix/v1/rollback-run.sh", v.Files[1].Key)
	require.NoError(t, d.Store.VerifyStored(t.Context(), v))
	_, err := d.Prepare(t.Context(), script("#!/bin/sh\nother\n"))
	typed(t, err, workflows.ErrTaken)
	require.NoError(t, d.Store.VerifyStored(t.Context(), v), "a second submission writes nothing over it")
}

func TestASubmissionThatBreaksARuleIsRefused(t *testing.T) {
	d := newDesk(t)
	d.Floors = map[artifact.Kind]artifact.Floor{artifact.Script: {Required: 2}}
	for want, change := range map[string]func(*artifact.Request){
		"policy.required must be at least 2": func(r *artifact.Request) { r.Spec.Policy.Required = 1 },
		"has no members":                     func(r *artifact.Request) { r.Spec.Policy.Approvers = []string{"group:none"} },
		"no uploaded object": func(r *artifact.Request) {
			r.Files[0] = artifact.File{Role: artifact.Primary, Filename: "gone.sh", ContentHash: artifact.HashOf(nil)}
		},
		"base64": func(r *artifact.Request) { r.Files[0].ContentBase64 = "*" },
	} {
		_, err := d.Prepare(t.Context(), script("#!/bin/sh\n", change))
		typed(t, err, workflows.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	_, err := d.Prepare(t.Context(), script("#!/bin/sh\n", func(r *artifact.Request) { r.Files[0].ContentHash = artifact.HashOf(nil) }))
	typed(t, err, workflows.ErrIntegrity)
	d.Vouchers.AllowUnverified = false
	_, err = d.Prepare(t.Context(), script("#!/bin/sh\n"))
	typed(t, err, workflows.ErrRefused)
}

func TestTheGatewayVouchesForAuthors(t *testing.T) {
	d := newDesk(t)
	gateway, public := newSigner(t)
	d.Vouchers.AllowUnverified, d.Vouchers.GatewayKeys = false, []string{public}
	r := script("#!/bin/sh\n")
	hash, err := r.Hash()
	require.NoError(t, err)
	r.Claim = sign(t, gateway, artifact.Command{Verb: artifact.Create, Actor: r.Author, BundleHash: hash, At: d.now}, 1)
	p, err := d.Prepare(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, artifact.Gateway, p.Assurance)
	r.Author = "user:boss"
	_, err = d.Prepare(t.Context(), r)
	typed(t, err, workflows.ErrRefused)
	r.Claim.Actor = "user:boss"
	_, err = d.Prepare(t.Context(), r)
	typed(t, err, workflows.ErrRefused)
}

func TestWhoVouchesForADecision(t *testing.T) {
	d := newDesk(t)
	gateway, gatewayKey := newSigner(t)
	own, ownKey := newSigner(t)
	stranger, _ := newSigner(t)
	d.Vouchers.AllowUnverified, d.Vouchers.GatewayKeys = false, []string{gatewayKey}
	key, err := d.Store.AddKey(t.Context(), "user:a", ownKey, d.now)
	require.NoError(t, err)
	v := storage.Artifact{BundleHash: artifact.HashOf(nil)}
	at := d.now
	check := func(c artifact.Command, policy artifact.Policy) (workflows.CheckResult, error) {
		return d.Check(t.Context(), workflows.CheckRequest{ArtifactID: "fix", Version: 1, Command: c, Policy: policy})
	}
	strict := artifact.Policy{SignedDecisions: true}
	result, err := check(sign(t, own, approve(v, "user:a", at), 1), strict)
	require.NoError(t, err)
	require.Equal(t, workflows.CheckResult{Assurance: artifact.Signed, Key: key.Fingerprint}, result)
	result, err = check(sign(t, gateway, approve(v, "user:a", at), 1), artifact.Policy{})
	require.NoError(t, err)
	require.Equal(t, artifact.Gateway, result.Assurance)
	for name, c := range map[string]artifact.Command{
		"nobody vouches":      approve(v, "user:a", at),
		"another's key":       sign(t, own, approve(v, "user:b", at), 1),
		"an unknown key":      sign(t, stranger, approve(v, "user:a", at), 1),
		"of another version":  sign(t, own, approve(v, "user:a", at), 2),
		"the gateway's alone": sign(t, gateway, approve(v, "user:a", at), 1),
	} {
		_, err := check(c, strict)
		require.Error(t, err, name)
		typed(t, err, workflows.ErrRefused)
	}
	forged := sign(t, own, approve(v, "user:a", at), 1)
	forged.Verb = artifact.Reject
	_, err = check(forged, strict)
	typed(t, err, workflows.ErrRefused)
	require.NoError(t, d.Store.RevokeKey(t.Context(), "user:a", key.Fingerprint, at.Add(time.Hour)))
	for _, said := range []time.Time{at, at.Add(2 * time.Hour)} {
		_, err = check(sign(t, own, approve(v, "user:a", said), 1), strict)
		typed(t, err, workflows.ErrRefused)
		require.ErrorContains(t, err, "was revoked", "whoever stole the key says any time")
	}
}

func TestARevokedKeyCountsForWhatWasRecordedBefore(t *testing.T) {
	d := newDesk(t)
	own, ownKey := newSigner(t)
	key, err := d.Store.AddKey(t.Context(), "user:a", ownKey, d.now)
	require.NoError(t, err)
	v := d.submit(script("#!/bin/sh\n"))
	verify := workflows.VerifyRequest{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, BundleHash: v.BundleHash, Decisions: true}
	require.NoError(t, d.decide(v, sign(t, own, approve(v, "user:a", d.tick()), 1)))
	recorded := d.now
	for _, later := range []bool{true, false} {
		revoked := recorded.Add(time.Nanosecond)
		if !later {
			revoked = recorded
		}
		change := table.Change{
			Key: table.Key{Partition: "APPROVER#user:a", Sort: "KEY#" + key.Fingerprint}, Set: map[string]any{"revoked_at": revoked},
		}
		require.NoError(t, d.Store.Table.Update(t.Context(), change, nil))
		if later {
			require.NoError(t, d.Verify(t.Context(), verify))
		} else {
			typed(t, d.Verify(t.Context(), verify), workflows.ErrForbidden)
		}
	}
}

func TestBeforeARunEverythingIsReadAgain(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	verify := workflows.VerifyRequest{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, BundleHash: v.BundleHash, Decisions: true}
	err := d.Verify(t.Context(), verify)
	typed(t, err, workflows.ErrForbidden)
	require.ErrorContains(t, err, "0 of 1 approvals")
	require.NoError(t, d.decide(v, approve(v, "user:a", d.tick())))
	require.NoError(t, d.Verify(t.Context(), verify))

	strict := d.Activities
	strict.Vouchers.AllowUnverified = false
	typed(t, strict.Verify(t.Context(), verify), workflows.ErrForbidden)
	other := verify
	other.BundleHash = artifact.HashOf(nil)
	typed(t, d.Verify(t.Context(), other), workflows.ErrForbidden)

	undo := verify
	undo.Decisions = false
	require.NoError(t, d.Verify(t.Context(), undo))
}

// TestContentThatWasWrittenOverIsNoticed holds although the bucket keeps the
// version that was approved.
func TestContentThatWasWrittenOverIsNoticed(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	require.NotEmpty(t, v.Files[0].S3VersionID)
	require.NoError(t, d.decide(v, approve(v, "user:a", d.tick())))
	verify := workflows.VerifyRequest{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, BundleHash: v.BundleHash, Decisions: true}
	for _, key := range []string{v.Files[0].Key, v.Files[1].Key, storage.ContentKey("fix", 1, artifact.SpecFile)} {
		stored, err := d.Store.Stat(t.Context(), key, "")
		require.NoError(t, err)
		body, err := d.Store.ReadAll(t.Context(), stored, 1<<20)
		require.NoError(t, err)
		put := func(content string) {
			_, err := d.Store.Put(t.Context(), key, "text/plain", strings.NewReader(content))
			require.NoError(t, err)
		}
		put("#!/bin/sh\nevil\n")
		typed(t, d.Verify(t.Context(), verify), workflows.ErrIntegrity)
		put(string(body))
		require.NoError(t, d.Verify(t.Context(), verify), "the same content once more is no change")
	}
	require.NoError(t, d.Store.RemoveOriginals(t.Context(), v))
	typed(t, d.Verify(t.Context(), verify), workflows.ErrIntegrity)
}

func TestOlderVersionsAreTold(t *testing.T) {
	d := newDesk(t)
	d.submit(script("#!/bin/sh\n"))
	d.submit(script("#!/bin/sh\n", func(r *artifact.Request) { r.Version = 2 }))
	d.submit(script("#!/bin/sh\n", func(r *artifact.Request) { r.Version = 3 }))
	require.NoError(t, d.Supersede(t.Context(), workflows.VersionRef{ArtifactID: "fix", Version: 2}))
	require.Equal(t, []string{"artifact/fix/v1 superseded"}, d.signals)
	head, err := d.Head(t.Context(), workflows.VersionRef{ArtifactID: "fix"})
	require.NoError(t, err)
	require.Equal(t, 3, head.LatestVersion)
}

func TestSnapshotsAndTheArchive(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	ref := workflows.VersionRef{ArtifactID: "fix", Version: 1}
	require.NoError(t, d.Publish(t.Context(), workflows.PublishRequest{VersionRef: ref, Provenance: true}))
	typed(t, d.Clear(t.Context(), ref), workflows.ErrConflict)
	archived, err := d.Archive(t.Context(), workflows.ArchiveRequest{VersionRef: ref, SettledAt: time.Date(2026, 5, 31, 23, 59, 59, 0, time.UTC)})
	require.NoError(t, err)
	require.Equal(t, "archive/2026/05/fix/v1/", archived.Prefix)
	for _, step := range []workflows.Step{{From: artifact.InReview, To: artifact.Withdrawn}, {From: artifact.Withdrawn, To: artifact.Archived, ArchivePrefix: archived.Prefix}} {
		step.ArtifactID, step.Version = "fix", 1
		step.Record = d.record(1, string(step.To), "system", artifact.Event{From: step.From, To: step.To, BundleHash: v.BundleHash})
		require.NoError(t, d.Commit(t.Context(), step))
		require.NoError(t, d.Commit(t.Context(), step), "a step again is no error")
	}
	require.NoError(t, d.Clear(t.Context(), ref))
	_, err = d.Store.Stat(t.Context(), v.Files[0].Key, "")
	require.Error(t, err)
}

func TestAlertsHaveTheScopeOfArtifacts(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.Alert(t.Context(), workflows.AlertRequest{
		VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, Reason: "execution_failed", Danger: true, State: artifact.Failed, Summary: "x", At: d.now,
	}))
	require.Len(t, d.alerts, 1)
	require.NoError(t, d.alerts[0].Check())
	d.Alerts = nil
	require.NoError(t, d.Alert(t.Context(), workflows.AlertRequest{Reason: "x"}))
	require.Len(t, d.All(), 18)
}

func TestAnUnansweredRunIsSettled(t *testing.T) {
	d := newDesk(t)
	settle := func(n int) workflows.SettleResult {
		settled, err := d.SettleRun(t.Context(), workflows.SettleRequest{
			VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: runID(n), Status: workflows.RunWorkerLost, Detail: "x",
		})
		require.NoError(t, err)
		return settled
	}
	begin := func(n int) bool {
		began, err := d.Store.Begin(t.Context(), "fix", 1, storage.Run{RunID: runID(n), Status: storage.Running, StartedAt: d.now})
		require.NoError(t, err)
		return began
	}
	require.True(t, begin(1))
	want := workflows.SettleResult{Began: true, Result: workflows.RunResult{Status: workflows.RunWorkerLost, ExitCode: -1, Detail: "x"}}
	require.Equal(t, want, settle(1))
	require.Equal(t, want, settle(1))
	require.False(t, settle(2).Began)
	require.False(t, settle(2).Began, "asked again, the answer is the same")
	require.False(t, begin(2), "who was given up can't begin it any more")
}

func TestARunThatWasGivenUpNeverBegins(t *testing.T) {
	d := newDesk(t)
	mark := filepath.Join(t.TempDir(), "ran")
	v := d.submit(script("#!/bin/sh\necho x >> " + mark + "\n"))
	_, err := d.SettleRun(t.Context(), workflows.SettleRequest{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: runID(1), Status: workflows.RunWorkerLost})
	require.NoError(t, err)
	_, err = d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	typed(t, err, workflows.ErrConflict)
	require.NoFileExists(t, mark)
}

func TestARunIsHeldFromItsFirstByte(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	e := d.executor(Scripts{})
	e.Every = time.Millisecond
	e.Heartbeat = func(context.Context) error { return ErrCancelled }
	slow := d.Store
	slow.Client = slowly{Bucket: slow.Client}
	e.Store = slow
	_, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.ErrorIs(t, err, context.Canceled, "content that is long to fetch is given up with its run")
	_, err = d.Store.Run(t.Context(), "fix", runID(1))
	require.ErrorIs(t, err, storage.ErrNotFound)
}

// slowly is a bucket that takes as long as it is let.
type slowly struct{ storage.Bucket }

// GetObject waits for the end of the request.
func (slowly) GetObject(ctx context.Context, _ *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
