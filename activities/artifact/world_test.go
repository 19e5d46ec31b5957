package artifact

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
)

func newStore(t *testing.T) storage.Store {
	t.Helper()
	tab, bucket := storagetest.Table(t, storagetest.Monitoring), storagetest.Bucket(t)
	client := s3.NewFromConfig(storagetest.Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	_, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket.Name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		out, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket.Name})
		require.NoError(t, err)
		for _, v := range out.Versions {
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket.Name, Key: v.Key, VersionId: v.VersionId})
			require.NoError(t, err)
		}
		for _, v := range out.DeleteMarkers {
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket.Name, Key: v.Key, VersionId: v.VersionId})
			require.NoError(t, err)
		}
	})
	return storage.New(tab.Client, tab.Name, client, bucket.Name)
}

// desk is the activities over a store of their own, with the chain of one
// version.
type desk struct {
	*testing.T
	Activities
	chain   artifact.Chain
	now     time.Time
	signals []string
	alerts  []alert.Alert
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	store := newStore(t)
	d := &desk{T: t, now: time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)}
	d.Activities = Activities{
		Store: store, Vouchers: Vouchers{Store: store, AllowUnverified: true}, Temporal: d, Alerts: d,
		Now: func() time.Time { return d.now }, Logger: slog.New(slog.DiscardHandler),
	}
	return d
}

func (d *desk) SignalWorkflow(_ context.Context, workflowID, _, name string, _ any) error {
	d.signals = append(d.signals, workflowID+" "+name)
	return nil
}

func (d *desk) Signal(_ context.Context, scope string, decision alert.Decision) error {
	d.alerts = append(d.alerts, decision.Alerts...)
	if scope != alert.ScopeArtifacts {
		return errors.New("wrong scope")
	}
	return nil
}

func (d *desk) tick() time.Time {
	d.now = d.now.Add(time.Second)
	return d.now
}

func script(content string, change ...func(*artifact.Request)) artifact.Request {
	r := artifact.Request{
		ArtifactID: "fix", Version: 1, Author: "user:author",
		Spec: artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:a", "user:b"}}},
		Files: []artifact.File{
			{Role: artifact.Primary, Filename: "run.sh", ContentBase64: encode(content)},
			{Role: artifact.Rollback, Filename: "run.sh", ContentBase64: encode("#!/bin/sh\necho undone\n")},
		},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// Commit makes a step of which the test knows the record.
func (d *desk) Commit(ctx context.Context, step workflows.Step) error {
	_, err := d.Activities.Commit(ctx, step)
	return err
}

// submit prepares and creates a version, and gives it as it is stored.
func (d *desk) submit(r artifact.Request) storage.Artifact {
	d.Helper()
	p, err := d.Prepare(d.Context(), r)
	require.NoError(d, err)
	r.Spec, r.Files = p.Spec, p.Files
	d.chain = artifact.Chain{}
	record := d.record(r.Version, "submitted", r.Author, artifact.Event{To: artifact.InReview, BundleHash: p.BundleHash})
	create := workflows.CreateRequest{Request: r, BundleHash: p.BundleHash, State: artifact.InReview, Record: record, Assurance: p.Assurance}
	_, err = d.Create(d.Context(), create)
	require.NoError(d, err)
	v, err := d.Store.Version(d.Context(), r.ArtifactID, r.Version)
	require.NoError(d, err)
	return v
}

func (d *desk) record(version int, name, actor string, event artifact.Event) artifact.Record {
	d.Helper()
	record, next, err := d.chain.Extend(version, name, actor, d.tick(), event.BundleHash, event)
	require.NoError(d, err)
	d.chain = next
	return record
}

// decide records a decision as the workflow does.
func (d *desk) decide(v storage.Artifact, c artifact.Command) error {
	d.Helper()
	by, err := d.Check(d.Context(), workflows.CheckRequest{ArtifactID: v.ArtifactID, Version: v.Version, Command: c, Policy: v.Spec.Policy})
	if err != nil {
		return err
	}
	decision := artifact.Decision{Command: c, Assurance: by.Assurance, Key: by.Key}
	before := d.chain
	event := artifact.Event{From: artifact.InReview, To: artifact.InReview, BundleHash: v.BundleHash, Decision: &decision}
	record := d.record(v.Version, "decided", c.Actor, event)
	decision.RecordedAt = record.At
	record, d.chain, err = before.Extend(v.Version, "decided", c.Actor, record.At, v.BundleHash, event)
	require.NoError(d, err)
	return d.Commit(d.Context(), workflows.Step{
		ArtifactID: v.ArtifactID, Version: v.Version, Record: record, From: artifact.InReview, To: artifact.InReview, Decision: &decision,
	})
}

// typed asserts the type of an activity's error, which must be final.
func typed(t *testing.T, err error, want string) {
	t.Helper()
	var e *temporal.ApplicationError
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Type(), e.Message())
	require.True(t, e.NonRetryable())
}

// executor runs things of the desk's store; its heartbeats are acknowledged.
func (d *desk) executor(r Runner) Executor {
	var beats atomic.Int64
	return Executor{
		Store: d.Store, Runner: r, Every: 20 * time.Millisecond, Now: time.Now, Logger: d.Logger,
		Heartbeat: func(context.Context) error { beats.Add(1); return nil },
	}
}

func (d *desk) read(runID, name string) string {
	d.Helper()
	run, err := d.Store.Run(d.Context(), "fix", runID)
	require.NoError(d, err)
	body, err := d.Store.ReadAll(d.Context(), storage.StoredFile{Key: storage.RunKey(runID, name), ContentHash: run.ContentHashes[name]}, 64<<20)
	require.NoError(d, err)
	return strings.TrimSpace(string(body))
}
