package artifactcmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// SubmitCommand starts the lifecycle of a version.
type SubmitCommand struct {
	Stores
	Actor
	RolloutFlags

	ID       string        `arg:"" help:"Id of the artifact."`
	File     string        `arg:"" help:"Primary file." type:"existingfile"`
	Version  int           `help:"Number of the version; by default the next."`
	Rollback string        `help:"File that undoes the primary one." type:"existingfile" placeholder:"FILE"`
	Kind     string        `help:"How it runs." enum:"script,http,iot-job" default:"script"`
	Args     string        `help:"Args of the kind, as JSON." default:"{}"`
	Reason   string        `help:"Why it is needed; approvers see it." required:""`
	Draft    bool          `help:"Keep it as a draft until it is submitted."`
	Approver []string      `help:"Who may approve: actors, and groups as group:NAME."`
	Required int           `help:"How many must approve; without it, as --policy says, or else the least that is allowed."`
	Policy   string        `help:"More of the policy, as JSON; nothing that another flag says otherwise." default:"{}"`
	Timeout  time.Duration `help:"Longest run." default:"10m"`
	Wait     time.Duration `help:"How long to wait until the version is written; 0 does not wait." default:"1m"`
}

// Run stores the content, starts the workflow and waits until the version is
// written, so that it can be approved, or tells why it was refused.
func (c SubmitCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, temporal, err := c.open(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	request, err := c.request(ctx, store)
	if err != nil {
		return err
	}
	id := names.ArtifactLifecycleID(request.ArtifactID, request.Version)
	run, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: names.QueueArtifacts, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true, StaticSummary: fmt.Sprintf("%s v%d by %s", request.ArtifactID, request.Version, request.Author),
	}, names.ArtifactLifecycle, workflows.Input{Request: request})
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	if c.Wait > 0 {
		if err := written(ctx, store, run, Target{ID: request.ArtifactID, Version: request.Version}, c.Wait); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(os.Stdout, "%s started; see it with: starter artifact status %s %d\n", id, request.ArtifactID, request.Version)
	return err
}

// request is what is asked for, with its content uploaded.
func (c SubmitCommand) request(ctx context.Context, store storage.Store) (artifact.Request, error) {
	r := artifact.Request{
		ArtifactID: c.ID, Version: c.Version, Author: c.Actor.Actor, Draft: c.Draft, Reason: c.Reason,
		Spec: artifact.Spec{Kind: artifact.Kind(c.Kind), Limits: artifact.Limits{Timeout: artifact.Duration(c.Timeout)}},
	}
	var err error
	if r.Spec.Args, err = c.args(r.Spec.Kind, c.Args); err != nil {
		return r, err
	}
	if r.Spec.Policy, err = c.policy(); err != nil {
		return r, err
	}
	if r.Version == 0 {
		head, err := store.Head(ctx, c.ID)
		if err != nil {
			return r, err
		}
		r.Version = head.LatestVersion + 1
	}
	r.Files = []artifact.File{{Role: artifact.Primary, Filename: filepath.Base(c.File)}}
	paths := []string{c.File}
	if c.Rollback != "" {
		r.Files = append(r.Files, artifact.File{Role: artifact.Rollback, Filename: filepath.Base(c.Rollback)})
		paths = append(paths, c.Rollback)
	}
	for i, path := range paths {
		if err := hashFile(&r.Files[i], path); err != nil {
			return r, err
		}
	}
	if _, err := r.Check(); err != nil {
		return r, err
	}
	if err := cmp.Or(r.CheckWords(), store.CheckNext(ctx, r.ArtifactID, r.Version)); err != nil {
		return r, err
	}
	if _, err := store.Version(ctx, r.ArtifactID, r.Version); err == nil {
		return r, fmt.Errorf("version %d of %s: %w", r.Version, r.ArtifactID, storage.ErrTaken)
	}
	if err := reserve(ctx, store, r); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, storage.ReservationTime-time.Minute)
	defer cancel()
	for i, path := range paths {
		if err := upload(ctx, store, r, i, path); err != nil {
			return r, err
		}
	}
	return c.claim(r)
}

// policy is that of the flags together. Where two say different things, none of
// them is believed.
func (c SubmitCommand) policy() (artifact.Policy, error) {
	var p artifact.Policy
	if err := artifact.DecodeStrict("--policy", []byte(c.Policy), &p); err != nil {
		return p, err
	}
	switch {
	case len(c.Approver) > 0 && len(p.Approvers) > 0 && !slices.Equal(c.Approver, p.Approvers):
		return p, errors.New("--policy: approvers are others than those of --approver")
	case c.Required != 0 && p.Required != 0 && c.Required != p.Required:
		return p, fmt.Errorf("--policy: required is %d, --required is %d", p.Required, c.Required)
	}
	if len(c.Approver) > 0 {
		p.Approvers = c.Approver
	}
	if c.Required != 0 {
		p.Required = c.Required
	}
	if len(p.Approvers) == 0 {
		return p, errors.New("name who may approve, with --approver or in --policy")
	}
	return p, nil
}

// hashFile says what a file is before it is uploaded.
func hashFile(f *artifact.File, path string) error {
	body, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("open content: %w", err)
	}
	defer body.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if f.Size, err = io.Copy(sum, body); err != nil {
		return fmt.Errorf("read content: %w", err)
	}
	f.ContentHash = artifact.HashString(sum.Sum(nil))
	return nil
}

// reserve claims the number of a version, as the gateway does, so that nobody
// else writes content under it meanwhile.
func reserve(ctx context.Context, store storage.Store, r artifact.Request) error {
	fingerprint, err := r.Hash()
	if err != nil {
		return err
	}
	_, err = store.Reserve(ctx, storage.NewReservation(r, fingerprint, rand.Text(), now()))
	return err
}

func upload(ctx context.Context, store storage.Store, r artifact.Request, i int, path string) error {
	body, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("open content: %w", err)
	}
	defer body.Close() //nolint:errcheck // only read
	f := &r.Files[i]
	hash := f.ContentHash
	stored, err := store.Put(ctx, storage.ContentKey(r.ArtifactID, r.Version, f.StoredName()), "application/octet-stream", body)
	if err != nil {
		return err
	}
	if stored.ContentHash != hash {
		return fmt.Errorf("%s was changed while it was uploaded", path)
	}
	f.S3VersionID = stored.S3VersionID
	return nil
}

// claim signs that the author asks for exactly this.
func (c SubmitCommand) claim(r artifact.Request) (artifact.Request, error) {
	if c.Key == "" {
		return r, nil
	}
	hash, err := r.Hash()
	if err != nil {
		return r, err
	}
	r.Claim, err = c.sign(artifact.Command{Verb: artifact.Create, Actor: r.Author, At: now(), BundleHash: hash}, r.ArtifactID, r.Version)
	return r, err
}
