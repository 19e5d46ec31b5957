package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	"millrace/platform/mqtt"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

const jobContent = `{"operation":"adjust","temperature_offset_c":"12.5"}`

// deviceJob is a version for two factories.
func deviceJob(change ...func(*artifact.Request)) artifact.Request {
	r := artifact.Request{
		ArtifactID: "fix", Version: 1, Author: "user:author",
		Spec: artifact.Spec{
			Kind: artifact.IoTJob, Args: json.RawMessage(`{"targets":["factory-a","factory-b"],"waves":["rest"]}`),
			Limits: artifact.Limits{Timeout: artifact.Duration(90 * time.Second)},
			Policy: artifact.Policy{Approvers: []string{"user:a", "user:b"}},
		},
		Files: []artifact.File{
			{Role: artifact.Primary, Filename: "job.json", ContentBase64: encode(jobContent)},
			{Role: artifact.Rollback, Filename: "job.json", ContentBase64: encode(`{"operation":"reset"}`)},
		},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func jobRequest(v storage.Artifact, n int) workflows.JobRequest {
	return workflows.JobRequest{
		VersionRef: workflows.VersionRef{ArtifactID: v.ArtifactID, Version: v.Version}, RunID: runID(n), Role: artifact.Primary,
		BundleHash: v.BundleHash, WorkflowID: "artifact/fix/v1", FactoryID: "factory-a",
	}
}

// outlet keeps what is published.
type outlet struct {
	err    error
	topics []string
	jobs   []artifact.JobDocument
}

func (o *outlet) Publish(_ context.Context, topic string, body []byte) error {
	if o.err != nil {
		return o.err
	}
	job, err := artifact.ParseJobDocument(topic, body)
	o.topics, o.jobs = append(o.topics, topic), append(o.jobs, job)
	return err
}

func (d *desk) jobs(to JobPublisher) Jobs {
	return Jobs{Store: d.Store, Publisher: to, Now: func() time.Time { return d.now }}
}

func TestAJobIsWrittenDownAndPublished(t *testing.T) {
	d, out := newDesk(t), &outlet{}
	v := d.submit(deviceJob())
	sent, err := d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
	require.NoError(t, err)
	require.Equal(t, d.now, sent.SentAt)
	require.Equal(t, []string{"aegis/factory-a/jobs/" + runID(1)}, out.topics)
	job := out.jobs[0]
	content, err := job.Content()
	require.NoError(t, err)
	require.Equal(t, jobContent, string(content))
	job.ContentBase64 = ""
	require.Equal(t, artifact.JobDocument{
		RunID: runID(1), ArtifactID: "fix", Version: 1, Role: artifact.Primary, FactoryID: "factory-a", Filename: "job.json",
		ContentHash: artifact.HashOf([]byte(jobContent)), TimeoutSeconds: 90, IssuedAt: d.now,
	}, job)

	owner, found, err := d.Store.RunOwner(t.Context(), runID(1))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "artifact/fix/v1", owner.WorkflowID)
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.Equal(t, storage.Running, run.Status)
	require.Equal(t, "factory-a", run.FactoryID)
	require.Equal(t, artifact.IoTJob, run.Kind)
}

func TestTheSameRequestPublishesAgain(t *testing.T) {
	d, out := newDesk(t), &outlet{err: errors.New("no route to the broker")}
	v := d.submit(deviceJob())
	_, err := d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
	require.ErrorContains(t, err, "no route")
	var typed *temporal.ApplicationError
	require.False(t, errors.As(err, &typed), "it is tried again")
	out.err = nil
	for range 2 {
		d.tick()
		sent, err := d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
		require.NoError(t, err)
		require.Equal(t, d.now, sent.SentAt)
	}
	require.Len(t, out.jobs, 2)
	runs, err := d.Store.Runs(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

func TestARunThatEndedIsNotSentAgain(t *testing.T) {
	for status, refused := range map[storage.RunStatus]bool{
		storage.Succeeded: false, storage.RunFailed: false, storage.TimedOut: true, storage.Cancelled: true, storage.WorkerLost: true,
	} {
		t.Run(string(status), func(t *testing.T) {
			d, out := newDesk(t), &outlet{}
			v := d.submit(deviceJob())
			_, err := d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
			require.NoError(t, err)
			require.NoError(t, d.Store.Finish(t.Context(), "fix", storage.Run{RunID: runID(1), Status: status}))
			_, err = d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
			if refused {
				typed(t, err, workflows.ErrConflict)
			} else {
				require.NoError(t, err)
			}
			require.Len(t, out.jobs, 1)
		})
	}
}

func TestJobsThatAreNeverSent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workflows.JobRequest)
		want   string
	}{
		"another bundle":  {func(r *workflows.JobRequest) { r.BundleHash = artifact.HashOf(nil) }, workflows.ErrForbidden},
		"no target":       {func(r *workflows.JobRequest) { r.FactoryID = "factory-c" }, workflows.ErrForbidden},
		"no such role":    {func(r *workflows.JobRequest) { r.Role = "other" }, workflows.ErrForbidden},
		"no run id":       {func(r *workflows.JobRequest) { r.RunID = "1" }, workflows.ErrInvalid},
		"no such version": {func(r *workflows.JobRequest) { r.Version = 7 }, workflows.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			d, out := newDesk(t), &outlet{}
			r := jobRequest(d.submit(deviceJob()), 1)
			c.change(&r)
			_, err := d.jobs(out).SendJob(t.Context(), r)
			typed(t, err, c.want)
			require.Empty(t, out.jobs)
			runs, err := d.Store.Runs(t.Context(), "fix", 1)
			require.NoError(t, err)
			require.Empty(t, runs)
		})
	}
}

func TestARunOfAnotherWorkflowIsNotSent(t *testing.T) {
	d, out := newDesk(t), &outlet{}
	r := jobRequest(d.submit(deviceJob()), 1)
	_, err := d.jobs(out).SendJob(t.Context(), r)
	require.NoError(t, err)
	r.WorkflowID = "artifact/other/v1"
	_, err = d.jobs(out).SendJob(t.Context(), r)
	typed(t, err, workflows.ErrConflict)
	require.Len(t, out.jobs, 1)
}

func TestChangedContentIsNotSent(t *testing.T) {
	d, out := newDesk(t), &outlet{}
	v := d.submit(deviceJob())
	client := d.Store.Client.(*s3.Client)
	_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &d.Store.Bucket, Key: &v.Files[0].Key, VersionId: &v.Files[0].S3VersionID})
	require.NoError(t, err)
	_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &d.Store.Bucket, Key: &v.Files[0].Key, Body: strings.NewReader("evil")})
	require.NoError(t, err)
	_, err = d.jobs(out).SendJob(t.Context(), jobRequest(v, 1))
	require.Error(t, err)
	require.Empty(t, out.jobs)
}

func TestFaultsOfTheBrokerThatNoRetryMendsAreFinal(t *testing.T) {
	d := newDesk(t)
	v := d.submit(deviceJob())
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("publish: %w", mqtt.ErrForbidden), workflows.ErrForbidden},
		{fmt.Errorf("publish: %w", mqtt.ErrTooLarge), workflows.ErrInvalid},
		{fmt.Errorf("publish: %w", mqtt.ErrTopic), workflows.ErrInvalid},
	} {
		_, err := d.jobs(&outlet{err: c.err}).SendJob(t.Context(), jobRequest(v, 1))
		typed(t, err, c.want)
	}
}

func TestAWorkerWithoutABrokerNamesTheVariable(t *testing.T) {
	_, err := Jobs{}.SendJob(t.Context(), workflows.JobRequest{})
	typed(t, err, workflows.ErrNotConfigured)
	require.ErrorContains(t, err, "MILLRACE_IOT_ENDPOINT")
}
