package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// maxArtifactBody bounds a JSON body with its content in base64.
const maxArtifactBody = 16 << 20

// maxNumbers is how many numbers in a row are tried for a submission that names
// none.
const maxNumbers = 20

// ArtifactSubmission asks for a new version. There is no field for the author:
// that is the token's owner.
type ArtifactSubmission struct {
	ArtifactID string          `json:"artifact_id" maxLength:"64" example:"fix-line"`
	Version    int             `json:"version,omitempty" minimum:"0" maximum:"9999" doc:"Number of the version; without one the next is taken, and a repeated submission makes another version."`
	Draft      bool            `json:"draft,omitempty" doc:"Keep it as a draft, whose files may still be replaced."`
	Reason     string          `json:"reason,omitempty" doc:"Why it is needed; approvers see it."`
	Spec       artifact.Spec   `json:"spec"`
	Files      []SubmittedFile `json:"files,omitempty" nullable:"false"`
}

func (s *ArtifactSubmission) said() []SubmittedFile { return s.Files }

// SubmittedFile is a file of a submission. In a form, where content has a part of
// its own, it only says what the part must be.
type SubmittedFile struct {
	Role          artifact.Role `json:"role" enum:"primary,rollback"`
	Filename      string        `json:"filename,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9_-][A-Za-z0-9._-]*$"`
	ContentHash   string        `json:"content_hash,omitempty" pattern:"^sha256:[0-9a-f]{64}$" doc:"Checked against the content where it is given."`
	ContentBase64 string        `json:"content_base64,omitempty" doc:"The content, in standard base64."`
	Size          *int64        `json:"size,omitempty" minimum:"0" doc:"Checked against the content where it is given."`
}

// ArtifactSubmitted tells which version was made.
type ArtifactSubmitted struct {
	ArtifactID string `json:"artifact_id"`
	Version    int    `json:"version"`
	WorkflowID string `json:"workflow_id"`
}

type submittedOutput struct{ Body ArtifactSubmitted }

type submitInput struct{ UploadBody }

// submit takes a new version in: the whole content is received first, then it
// gets its number, then it is stored, and only then its lifecycle is started.
func (a artifactRoutes) submit(ctx context.Context, in *submitInput) (*submittedOutput, error) {
	var s ArtifactSubmission
	var request artifact.Request
	f, err := a.forms.read(ctx, in.UploadBody, &s, func() (err error) {
		request, err = a.judge(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	request.Files = f.described()
	if _, err := withVersion(request, 1).Check(); err != nil {
		return nil, artifactProblem("body", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if request.Version != 0 {
		return a.make(ctx, request, f)
	}
	return a.makeNext(ctx, request, f)
}

func withVersion(r artifact.Request, version int) artifact.Request {
	if r.Version == 0 {
		r.Version = version
	}
	return r
}

// judge refuses a submission that no content could mend, before the content is
// received. What the floors of the worker refuse is told by the lifecycle.
func (a artifactRoutes) judge(ctx context.Context, s ArtifactSubmission) (artifact.Request, error) {
	r := artifact.Request{
		ArtifactID: s.ArtifactID, Version: s.Version, Draft: s.Draft, Reason: s.Reason, Spec: s.Spec, Author: PrincipalFrom(ctx).Owner,
	}
	probe := withVersion(r, 1)
	probe.Files = []artifact.File{{Role: artifact.Primary, Filename: "probe"}}
	if _, err := probe.Check(); err != nil {
		return r, artifactProblem("body", err)
	}
	if err := r.CheckWords(); err != nil {
		return r, artifactProblem("body", err)
	}
	members := map[string][]string{}
	for _, group := range r.Spec.Policy.GroupNames() {
		if artifact.CheckGroup(group) != nil {
			continue // Complete says so
		}
		actors, err := a.Store.Members(ctx, group)
		if err != nil {
			return r, err
		}
		members[group] = actors
	}
	_, err := r.Spec.Policy.Complete(r.Author, members, false)
	return r, artifactProblem("body.spec", err)
}

// make makes the version that the submission names. The same submission again is
// answered the same; another one under its number is refused.
func (a artifactRoutes) make(ctx context.Context, r artifact.Request, f *form) (*submittedOutput, error) {
	fingerprint, err := r.Hash()
	if err != nil {
		return nil, err
	}
	exists, err := a.exists(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return nil, err
	}
	if exists {
		return a.repeated(ctx, r, fingerprint)
	}
	if err := a.Store.CheckNext(ctx, r.ArtifactID, r.Version); err != nil {
		return nil, artifactProblem("body", err)
	}
	return a.makeReserved(ctx, r, f, fingerprint)
}

// makeNext makes the next version whose number is free: one that follows the
// newest version, or, where refused submissions have all of those, one that
// follows every number that was ever reserved.
func (a artifactRoutes) makeNext(ctx context.Context, r artifact.Request, f *form) (*submittedOutput, error) {
	head, err := a.Store.Head(ctx, r.ArtifactID)
	if err != nil {
		return nil, err
	}
	out, err := a.makeAfter(ctx, r, f, head.LatestVersion)
	if !isTaken(err) {
		return out, err
	}
	reserved, err := a.Store.HighestReserved(ctx, r.ArtifactID)
	if err != nil {
		return nil, err
	}
	return a.makeAfter(ctx, r, f, max(reserved, head.LatestVersion+maxNumbers))
}

func isTaken(err error) bool {
	problem, ok := errors.AsType[*Problem](err)
	return ok && problem.Type == problemType+takenCode
}

// makeAfter makes the version of the first free number after one.
func (a artifactRoutes) makeAfter(ctx context.Context, r artifact.Request, f *form, after int) (*submittedOutput, error) {
	for number := after + 1; number <= after+maxNumbers; number++ {
		if err := artifact.CheckVersion(number); err != nil {
			return nil, artifactProblem("body", err)
		}
		numbered := withVersion(r, number)
		fingerprint, err := numbered.Hash()
		if err != nil {
			return nil, err
		}
		exists, err := a.exists(ctx, r.ArtifactID, number)
		if err != nil {
			return nil, err
		}
		if exists {
			continue
		}
		out, err := a.makeReserved(ctx, numbered, f, fingerprint)
		if !isTaken(err) {
			return out, err
		}
	}
	return nil, versionTaken("the next numbers are all taken: try again")
}

// exists tells whether a number has a version or a lifecycle.
func (a artifactRoutes) exists(ctx context.Context, id string, version int) (bool, error) {
	head, err := a.Store.Head(ctx, id)
	if err != nil || head.LatestVersion >= version {
		return err == nil, err
	}
	_, err = a.Workflows.DescribeWorkflow(ctx, names.ArtifactLifecycleID(id, version), "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return false, nil
	}
	return err == nil, temporalProblem(err)
}

// repeated answers a submission of a number that exists.
func (a artifactRoutes) repeated(ctx context.Context, r artifact.Request, fingerprint string) (*submittedOutput, error) {
	held, found, err := a.Store.Reservation(ctx, r.ArtifactID, r.Version)
	if err != nil {
		return nil, err
	}
	if !found || held.Fingerprint != fingerprint {
		return nil, versionTaken("this number has another request or other content, or lies below the newest version")
	}
	return submitted(r), nil
}

func submitted(r artifact.Request) *submittedOutput {
	return &submittedOutput{Body: ArtifactSubmitted{
		ArtifactID: r.ArtifactID, Version: r.Version, WorkflowID: names.ArtifactLifecycleID(r.ArtifactID, r.Version),
	}}
}

// makeReserved claims the number, stores the content and starts the lifecycle.
func (a artifactRoutes) makeReserved(ctx context.Context, r artifact.Request, f *form, fingerprint string) (*submittedOutput, error) {
	claim := storage.NewReservation(r, fingerprint, rand.Text(), a.Now().UTC())
	overtook, err := a.Store.Reserve(ctx, claim)
	if err != nil {
		return nil, artifactProblem("", err)
	}
	err = a.begin(ctx, r, f)
	if _, started := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); started && (overtook || a.overtaken(ctx, claim)) {
		return submitted(r), nil // an earlier attempt of the same submission got so far
	}
	if err != nil {
		a.giveUp(ctx, claim, err)
		return nil, startProblem(err)
	}
	return submitted(r), nil
}

// overtaken tells whether the same submission was made once more meanwhile.
func (a artifactRoutes) overtaken(ctx context.Context, claim storage.Reservation) bool {
	held, found, err := a.Store.Reservation(ctx, claim.ArtifactID, claim.Version)
	return err == nil && found && held.Holder != claim.Holder && held.Fingerprint == claim.Fingerprint
}

// giveUp frees the number, unless the lifecycle may have been started after all.
func (a artifactRoutes) giveUp(ctx context.Context, claim storage.Reservation, cause error) {
	if _, unsure := errors.AsType[*startError](cause); unsure {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_ = a.Store.Release(ctx, claim) // its time ends anyway
}

const releaseTime = 5 * time.Second

// startError is a failure to start a lifecycle; it may run all the same.
type startError struct{ cause error }

// Error is the cause's.
func (e *startError) Error() string { return "start lifecycle: " + e.cause.Error() }

// Unwrap is the cause.
func (e *startError) Unwrap() error { return e.cause }

func startProblem(err error) error {
	if failed, ok := errors.AsType[*startError](err); ok {
		return temporalProblem(failed.cause)
	}
	return err
}

func (a artifactRoutes) begin(ctx context.Context, r artifact.Request, f *form) error {
	var err error
	if r.Files, err = a.store(ctx, r.ArtifactID, r.Version, f); err != nil {
		return err
	}
	if r, err = r.Check(); err != nil {
		return artifactProblem("body", err)
	}
	if r, err = a.claim(r); err != nil {
		return err
	}
	_, err = a.Workflows.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: names.ArtifactLifecycleID(r.ArtifactID, r.Version), TaskQueue: names.QueueArtifacts,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("%s v%d by %s", r.ArtifactID, r.Version, r.Author),
	}, names.ArtifactLifecycle, workflows.Input{Request: r})
	if err != nil {
		return &startError{err}
	}
	return nil
}

// store puts what was received at its keys and names it by its objects.
func (a artifactRoutes) store(ctx context.Context, id string, version int, f *form) ([]artifact.File, error) {
	var files []artifact.File
	for _, received := range f.files {
		file := received.file()
		if _, err := received.content.Seek(0, 0); err != nil {
			return nil, fmt.Errorf("read upload again: %w", err)
		}
		stored, err := a.Store.Put(ctx, storage.ContentKey(id, version, file.StoredName()), "application/octet-stream", received.content)
		if err != nil {
			return nil, err
		}
		if stored.ContentHash != file.ContentHash {
			return nil, fmt.Errorf("upload of %s changed on its way to the store", stored.Key)
		}
		file.S3VersionID = stored.S3VersionID
		files = append(files, file)
	}
	return files, nil
}

// claim vouches for the author of a request.
func (a artifactRoutes) claim(r artifact.Request) (artifact.Request, error) {
	hash, err := r.Hash()
	if err != nil {
		return r, err
	}
	r.Claim, err = a.sign(artifact.Command{Verb: artifact.Create, Actor: r.Author, At: a.Now().UTC(), BundleHash: hash}, r.ArtifactID, r.Version)
	return r, err
}

func (a artifactRoutes) sign(c artifact.Command, id string, version int) (artifact.Command, error) {
	if a.Signer == nil {
		return c, nil
	}
	var err error
	c.Signature, err = artifact.Sign(a.Signer, c, id, version)
	return c, err
}

const takenCode = "version-taken"

func versionTaken(detail string) *Problem { return NewProblem(http.StatusConflict, takenCode, detail) }
