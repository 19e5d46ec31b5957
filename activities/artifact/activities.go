// Package artifact has the activities of artifacts: they store content, check
// who vouches for a command, write steps, verify what was approved and run it.
package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// Alerter hands alerts to the entity of their scope.
type Alerter interface {
	Signal(ctx context.Context, scope string, d alert.Decision) error
}

// Signaller is the part of the Temporal client that is needed.
type Signaller interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
}

// Activities are those of ArtifactLifecycle but for the runs and the jobs.
type Activities struct {
	Store storage.Store
	// Vouchers tells who vouches for commands.
	Vouchers Vouchers
	// Floors are the least that policies must ask for, by kind.
	Floors   map[artifact.Kind]artifact.Floor
	Settings workflows.Settings
	// Factories tells how factories are, for the gates of rollouts.
	Factories FactoryReader
	Temporal  Signaller
	// Alerts may be nil: then alerts are logged only.
	Alerts Alerter
	Now    func() time.Time
	Logger *slog.Logger
}

// All are the activities by name.
func (a Activities) All() map[string]any {
	return map[string]any{
		workflows.PrepareActivity: a.Prepare, workflows.ContentActivity: a.Content, workflows.CreateActivity: a.Create,
		workflows.CheckActivity: a.Check, workflows.CommitActivity: a.Commit, workflows.HeadActivity: a.Head,
		workflows.SettleRunActivity: a.SettleRun, workflows.PublishActivity: a.Publish, workflows.VerifyActivity: a.Verify,
		workflows.SupersedeActivity: a.Supersede, workflows.AlertActivity: a.Alert,
		workflows.ArchiveActivity: a.Archive, workflows.ClearActivity: a.Clear, workflows.SumRunsActivity: a.SumRuns,
		workflows.LockActivity: a.Lock, workflows.UnlockActivity: a.Unlock, workflows.HealthActivity: a.Health,
		workflows.ReadRunActivity: a.ReadRun,
	}
}

// Prepare checks who vouches for the author, raises the policy to the floor of
// its kind, freezes its groups, and stores the content.
func (a Activities) Prepare(ctx context.Context, r artifact.Request) (workflows.Prepared, error) {
	defer beat(ctx)()
	r, err := r.Check()
	if err != nil {
		return workflows.Prepared{}, failure(err)
	}
	assurance, err := a.Vouchers.author(ctx, r)
	if err != nil {
		return workflows.Prepared{}, failure(err)
	}
	if r.Spec.Policy, err = r.Spec.Policy.Raise(a.Floors[r.Spec.Kind]); err != nil {
		return workflows.Prepared{}, failure(err)
	}
	members := map[string][]string{}
	for _, group := range r.Spec.Policy.GroupNames() {
		if members[group], err = a.Store.Members(ctx, group); err != nil {
			return workflows.Prepared{}, failure(err)
		}
	}
	if r.Spec.Policy, err = r.CompletePolicy(members); err != nil {
		return workflows.Prepared{}, failure(err)
	}
	p, err := a.store(ctx, r.ArtifactID, r.Version, r.Spec, r.Files)
	if err != nil {
		return workflows.Prepared{}, failure(err)
	}
	p.Assurance, p.Settings = assurance, a.Settings
	p.Settings.Provenance = workflows.WholeProvenance
	return p, nil
}

// Content stores the new content of a draft.
func (a Activities) Content(ctx context.Context, r workflows.ContentRequest) (workflows.Prepared, error) {
	defer beat(ctx)()
	p, err := a.store(ctx, r.ArtifactID, r.Version, r.Spec, r.Files)
	return p, failure(err)
}

func (a Activities) store(ctx context.Context, id string, version int, spec artifact.Spec, files []artifact.File) (workflows.Prepared, error) {
	if err := artifact.CheckFiles(files); err != nil {
		return workflows.Prepared{}, err
	}
	// Content that may have been approved is never written over. Create, not this
	// look, decides who has the number.
	current, err := a.Store.Version(ctx, id, version)
	switch {
	case err == nil && current.State != artifact.Draft:
		return workflows.Prepared{}, fmt.Errorf("version %d of %s: %w", version, id, storage.ErrTaken)
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return workflows.Prepared{}, err
	}
	p := workflows.Prepared{Spec: spec}
	for _, f := range files {
		stored, err := a.storeFile(ctx, storage.ContentKey(id, version, f.StoredName()), f)
		if err != nil {
			return workflows.Prepared{}, err
		}
		if f.ContentHash != "" && f.ContentHash != stored.ContentHash {
			return workflows.Prepared{}, &objects.IntegrityError{Bucket: a.Store.Bucket, Key: stored.Key, Want: f.ContentHash, Got: stored.ContentHash}
		}
		p.Files = append(p.Files, artifact.File{
			Role: f.Role, Filename: f.Filename, ContentHash: stored.ContentHash, S3VersionID: stored.S3VersionID, Size: stored.Size,
		})
	}
	if err := spec.CheckContent(p.Files); err != nil {
		return workflows.Prepared{}, err
	}
	if _, err := a.Store.PutJSON(ctx, storage.ContentKey(id, version, artifact.SpecFile), spec); err != nil {
		return workflows.Prepared{}, err
	}
	p.BundleHash, err = artifact.BundleHash(p.Files, spec)
	return p, err
}

// storeFile stores content that the request carries, or looks at what was
// uploaded before.
func (a Activities) storeFile(ctx context.Context, key string, f artifact.File) (storage.StoredFile, error) {
	if f.ContentBase64 == "" && f.ContentHash != "" {
		stored, err := a.Store.Stat(ctx, key, f.S3VersionID)
		if errors.Is(err, objects.ErrNotFound) {
			return stored, &artifact.InvalidError{Field: "files.s3_version_id", Rule: "names no uploaded object at " + key}
		}
		return stored, err
	}
	body, err := f.Content()
	if err != nil {
		return storage.StoredFile{}, err
	}
	return a.Store.Put(ctx, key, "application/octet-stream", bytes.NewReader(body))
}

// Create writes a new version.
func (a Activities) Create(ctx context.Context, r workflows.CreateRequest) (workflows.Written, error) {
	written, err := a.Store.CreateOnce(ctx, storage.Creation{
		Request: r.Request, State: r.State, Record: r.Record, Submission: r.Assurance, Creator: r.Creator,
		Content: storage.Content{Files: storage.Placed(r.Request.ArtifactID, r.Request.Version, r.Request.Files), BundleHash: r.BundleHash},
	})
	return told(written), failure(err)
}

// told is a step as the lifecycle wants to know it: it knows the event.
func told(w storage.Written) workflows.Written {
	w.Record.Event = nil
	return workflows.Written(w)
}

// SumRuns sums up all runs of a version, for the chain to tell of them.
func (a Activities) SumRuns(ctx context.Context, r workflows.VersionRef) (artifact.RunsMark, error) {
	runs, err := a.Store.Runs(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return artifact.RunsMark{}, failure(err)
	}
	mark, err := storage.SumRuns(runs)
	return mark, failure(err)
}

// Check tells who vouches for a command, and refuses what is not enough.
func (a Activities) Check(ctx context.Context, r workflows.CheckRequest) (workflows.CheckResult, error) {
	result, err := a.Vouchers.check(ctx, r.Command, r.ArtifactID, r.Version, time.Time{})
	if err == nil {
		err = r.Policy.Accepts(r.Command.Verb, result.Assurance, a.Vouchers.AllowUnverified)
	}
	return result, failure(err)
}

// Commit writes a step.
func (a Activities) Commit(ctx context.Context, s workflows.Step) (workflows.Written, error) {
	step := storage.Step{
		ArtifactID: s.ArtifactID, Version: s.Version, Record: s.Record, From: s.From, To: s.To, Reason: s.Reason,
		Decision: s.Decision, Earlier: s.Earlier, Head: storage.HeadMove(s.Head), Run: s.Run, ArchivePrefix: s.ArchivePrefix,
	}
	if s.BundleHash != "" {
		step.Content = &storage.Content{Files: storage.Placed(s.ArtifactID, s.Version, s.Files), BundleHash: s.BundleHash, Spec: s.Spec}
	}
	if s.Undo != nil {
		step.Undo = &storage.Undo{
			State: storage.CompensationState(s.Undo.State), RunID: s.Undo.RunID, Attempts: s.Undo.Attempts,
			Detail: s.Undo.Detail, StartedAt: s.Undo.StartedAt,
		}
	}
	written, err := a.Store.CommitOnce(ctx, step)
	return told(written), failure(err)
}

// Head reads what guards an artifact's versions against each other.
func (a Activities) Head(ctx context.Context, r workflows.VersionRef) (workflows.Head, error) {
	head, err := a.Store.Head(ctx, r.ArtifactID)
	return workflows.Head{LatestVersion: head.LatestVersion, ApprovedVersion: head.ApprovedVersion, ExecutingRun: head.ExecutingRun}, failure(err)
}

// SettleRun finds out what became of a run that gave no answer. One that has not
// begun never will: the executor that was given up may still be there.
func (a Activities) SettleRun(ctx context.Context, r workflows.SettleRequest) (workflows.SettleResult, error) {
	now := a.Now()
	run, began, err := a.Store.Lose(ctx, r.ArtifactID, r.RunID, storage.RunStatus(r.Status), r.Detail, now)
	if err == nil && !began {
		var forbidden bool
		if forbidden, err = a.Store.Forbid(ctx, r.ArtifactID, r.Version, r.RunID, r.Detail, now); err == nil && !forbidden {
			run, began, err = a.Store.Lose(ctx, r.ArtifactID, r.RunID, storage.RunStatus(r.Status), r.Detail, now)
		}
	}
	if err != nil || !began {
		return workflows.SettleResult{}, failure(err)
	}
	return workflows.SettleResult{Began: true, Result: resultOf(run.Run)}, nil
}

// Publish writes the snapshots of a version.
func (a Activities) Publish(ctx context.Context, r workflows.PublishRequest) error {
	defer beat(ctx)()
	if err := a.Store.WriteMetadata(ctx, r.ArtifactID, r.Version); err != nil {
		return retryable(err)
	}
	if !r.Provenance {
		return nil
	}
	return retryable(a.Store.WriteProvenance(ctx, r.ArtifactID))
}

// Supersede tells older versions that are not decided that a newer one was
// approved. Those that have ended are left alone.
func (a Activities) Supersede(ctx context.Context, r workflows.VersionRef) error {
	versions, err := a.Store.Versions(ctx, r.ArtifactID)
	if err != nil {
		return failure(err)
	}
	for _, v := range versions {
		if v.Version >= r.Version || (v.State != artifact.InReview && v.State != artifact.Approved) {
			continue
		}
		id := names.ArtifactLifecycleID(r.ArtifactID, v.Version)
		if err := a.Temporal.SignalWorkflow(ctx, id, "", workflows.SupersededSignal, nil); err != nil && !isNotFound(err) {
			return fmt.Errorf("signal %s: %w", id, err)
		}
	}
	return nil
}

// Archive copies the content to the archive, unless factories still run it.
func (a Activities) Archive(ctx context.Context, r workflows.ArchiveRequest) (workflows.ArchiveResult, error) {
	defer beat(ctx)()
	v, err := a.Store.Version(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return workflows.ArchiveResult{}, failure(err)
	}
	inUse, err := a.Store.InUse(ctx, v)
	if err == nil && inUse {
		err = fmt.Errorf("version %d of %s: %w", r.Version, r.ArtifactID, storage.ErrInUse)
	}
	if err != nil {
		return workflows.ArchiveResult{}, failure(err)
	}
	prefix := storage.ArchivePrefix(r.ArtifactID, r.Version, r.SettledAt)
	return workflows.ArchiveResult{Prefix: prefix}, failure(a.Store.CopyToArchive(ctx, v, prefix))
}

// Clear deletes the originals of an archived version.
func (a Activities) Clear(ctx context.Context, r workflows.VersionRef) error {
	v, err := a.Store.Version(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return failure(err)
	}
	if v.State != artifact.Archived || v.ArchivePrefix == "" {
		return temporal.NewNonRetryableApplicationError("the version is not archived: its originals stay", workflows.ErrConflict, nil)
	}
	return failure(a.Store.RemoveOriginals(ctx, v))
}

// beat heartbeats until its result is called: content may take minutes.
func beat(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return cancel
}

// failure gives errors their types; all that no retry can mend are final.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if name := typeOf(err); name != "" {
		return temporal.NewNonRetryableApplicationError(err.Error(), name, nil)
	}
	return err
}

// retryable is failure for snapshots, where a conflict only means that the
// version went on meanwhile.
func retryable(err error) error {
	if errors.Is(err, storage.ErrConflict) {
		return temporal.NewApplicationErrorWithOptions(err.Error(), workflows.ErrConflict, temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	}
	return failure(err)
}

func typeOf(err error) string {
	for name, is := range map[string]bool{
		workflows.ErrTaken:      errors.Is(err, storage.ErrTaken),
		workflows.ErrConflict:   errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound),
		workflows.ErrSuperseded: errors.Is(err, storage.ErrSuperseded),
		workflows.ErrBusy:       errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrInUse),
		workflows.ErrIntegrity:  storage.IsIntegrity(err),
		workflows.ErrForbidden:  errors.Is(err, errForbidden),
	} {
		if is {
			return name
		}
	}
	if _, ok := errors.AsType[*artifact.RefusedError](err); ok {
		return workflows.ErrRefused
	}
	if _, ok := errors.AsType[*artifact.InvalidError](err); ok || awsconf.IsRequestFault(err) || errors.Is(err, objects.ErrTooLarge) {
		return workflows.ErrInvalid
	}
	if _, ok := errors.AsType[*artifact.TransitionError](err); ok {
		return workflows.ErrConflict
	}
	return ""
}
