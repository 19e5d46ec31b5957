package artifact

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	"millrace/platform/mqtt"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// JobPublisher publishes to a topic and returns when the broker has confirmed.
type JobPublisher interface {
	Publish(ctx context.Context, topic string, body []byte) error
}

// Jobs sends jobs to the devices of factories.
type Jobs struct {
	Store storage.Store
	// Publisher is nil where the worker was told no broker.
	Publisher JobPublisher
	Now       func() time.Time
}

// SendJob verifies what was approved, writes down whose run it is and that it
// began, and publishes the job. The same request again publishes the job again,
// which a device does not do twice, unless the run has ended.
func (j Jobs) SendJob(ctx context.Context, r workflows.JobRequest) (workflows.JobSent, error) {
	if j.Publisher == nil {
		return workflows.JobSent{}, temporal.NewNonRetryableApplicationError(
			"this worker can't reach devices: MILLRACE_IOT_ENDPOINT is not set", workflows.ErrNotConfigured, nil)
	}
	sent, err := j.send(ctx, r)
	return sent, failure(publishFault(err))
}

// publishFault makes an error of the broker that retrying can't mend one of ours.
func publishFault(err error) error {
	switch {
	case errors.Is(err, mqtt.ErrForbidden):
		return fmt.Errorf("%w: %w", err, errForbidden)
	case errors.Is(err, artifact.ErrJobTooLarge), errors.Is(err, mqtt.ErrTooLarge), errors.Is(err, mqtt.ErrTopic):
		return &artifact.InvalidError{Field: "job", Rule: "can't be published: " + err.Error()}
	}
	return err
}

func (j Jobs) send(ctx context.Context, r workflows.JobRequest) (workflows.JobSent, error) {
	v, err := j.Store.Version(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return workflows.JobSent{}, err
	}
	job, err := j.document(ctx, v, r)
	if err != nil {
		return workflows.JobSent{}, err
	}
	if err := j.first(ctx, v, r); err != nil {
		return workflows.JobSent{}, err
	}
	running, err := j.claim(ctx, v, r)
	if err != nil {
		return workflows.JobSent{}, err
	}
	sent := workflows.JobSent{SentAt: j.Now().UTC()}
	if !running {
		return sent, nil
	}
	job.IssuedAt = sent.SentAt
	body, err := job.Encode()
	if err != nil {
		return workflows.JobSent{}, err
	}
	if err := j.Publisher.Publish(ctx, artifact.JobTopic(r.FactoryID, r.RunID), body); err != nil {
		return workflows.JobSent{}, err
	}
	return workflows.JobSent{SentAt: j.Now().UTC()}, nil
}

// document is the job of a version that is still what was approved.
func (j Jobs) document(ctx context.Context, v storage.Artifact, r workflows.JobRequest) (artifact.JobDocument, error) {
	if err := errors.Join(artifact.CheckRunID(r.RunID), sameBundle(v, r.BundleHash)); err != nil {
		return artifact.JobDocument{}, err
	}
	args, err := v.Spec.JobArgs()
	if err != nil {
		return artifact.JobDocument{}, err
	}
	if !slices.Contains(args.Targets, r.FactoryID) {
		return artifact.JobDocument{}, fmt.Errorf("factory %s is no target of version %d of %s: %w", r.FactoryID, v.Version, v.ArtifactID, errForbidden)
	}
	i := slices.IndexFunc(v.Files, func(f storage.StoredFile) bool { return f.Role == r.Role })
	if i < 0 {
		return artifact.JobDocument{}, fmt.Errorf("the version has no %s file: %w", r.Role, errForbidden)
	}
	file := v.Files[i]
	content, err := j.Store.ReadAll(ctx, file, artifact.MaxJobContent)
	if err != nil {
		return artifact.JobDocument{}, err
	}
	return artifact.JobDocument{
		RunID: r.RunID, ArtifactID: r.ArtifactID, Version: r.Version, Role: r.Role, FactoryID: r.FactoryID, Filename: file.Filename,
		ContentHash: file.ContentHash, ContentBase64: base64.StdEncoding.EncodeToString(content),
		TimeoutSeconds: int64(v.Spec.Limits.Timeout.Of() / time.Second),
	}, nil
}

// first refuses a job of a lifecycle that was set back: of a version whose run is
// over, and a second one with the primary file for a factory that had one.
func (j Jobs) first(ctx context.Context, v storage.Artifact, r workflows.JobRequest) error {
	if r.Role != artifact.Primary {
		return nil // undoing is done at least once
	}
	if v.State.Settled() || v.State == artifact.Compensating {
		return fmt.Errorf("version %d of %s is %s: %w", v.Version, v.ArtifactID, v.State, storage.ErrConflict)
	}
	runs, err := j.Store.Runs(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.RunID != r.RunID && run.FactoryID == r.FactoryID && run.Role == artifact.Primary && run.Status != storage.NeverBegan {
			return temporal.NewNonRetryableApplicationError("the factory had this job before, as run "+run.RunID, workflows.ErrSentBefore, nil)
		}
	}
	return nil
}

// claim writes down whose run it is and that it runs. It tells whether the run
// still runs: one that the device answered needs no job any more, and one that was
// given up must not begin.
func (j Jobs) claim(ctx context.Context, v storage.Artifact, r workflows.JobRequest) (bool, error) {
	now := j.Now().UTC()
	owner := storage.RunOwner{RunID: r.RunID, ArtifactID: r.ArtifactID, Version: r.Version, WorkflowID: r.WorkflowID, FactoryID: r.FactoryID}
	if err := j.Store.ClaimRunOwner(ctx, owner, now); err != nil {
		return false, err
	}
	began, err := j.Store.Begin(ctx, r.ArtifactID, r.Version, storage.Run{
		RunID: r.RunID, Role: r.Role, Kind: v.Kind, WorkflowID: r.WorkflowID, FactoryID: r.FactoryID, Status: storage.Running, StartedAt: now,
	})
	if err != nil || began {
		return began, err
	}
	run, err := j.Store.Run(ctx, r.ArtifactID, r.RunID)
	if err != nil {
		return false, err
	}
	switch run.Status {
	case storage.Running:
		return true, nil
	case storage.Succeeded, storage.RunFailed:
		return false, nil
	}
	return false, fmt.Errorf("run %s was given up (%s): %w", r.RunID, run.Status, storage.ErrConflict)
}
