package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// maxArtifactBody bounds a submission with its content in base64.
const maxArtifactBody = 16 << 20

// ArtifactSubmission asks for a new version. There is no field for the author:
// that is the token's owner.
type ArtifactSubmission struct {
	ArtifactID string          `json:"artifact_id"`
	Version    int             `json:"version,omitempty"`
	Draft      bool            `json:"draft,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Spec       artifact.Spec   `json:"spec"`
	Files      []artifact.File `json:"files"`
}

// ArtifactCommand is what somebody says about a version.
type ArtifactCommand struct {
	Decision   artifact.Verb   `json:"decision,omitempty"`
	BundleHash string          `json:"bundle_hash,omitempty"`
	Comment    string          `json:"comment,omitempty"`
	Files      []artifact.File `json:"files,omitempty"`
}

// rawArtifactInput has the body as it came: it is read strictly here.
type rawArtifactInput struct {
	RawBody []byte `contentType:"application/octet-stream"`
}

type artifactDoorInput struct {
	ArtifactPath
	RawBody []byte `contentType:"application/octet-stream"`
}

func (a artifactRoutes) addDoors(r *Router) {
	problems := []int{http.StatusNotFound, http.StatusConflict}
	Handle(r, Operation{
		ID: "submit-artifact", Method: http.MethodPost, Path: artifactsPath, Tag: "artifacts", Scope: monitoring.ScopeArtifactSubmit,
		Summary: "Submit a new version", Status: http.StatusAccepted, MaxBody: maxArtifactBody, Problems: problems,
		Description: "A JSON object with artifact_id, version (0 takes the next), draft, reason, spec and files with content_base64. The author is the token's owner.",
	}, a.submit)
	for _, d := range []struct {
		name, door, summary string
		scope               monitoring.Scope
	}{
		{"submit", workflows.DoorSubmit, "Submit a draft for review", monitoring.ScopeArtifactSubmit},
		{"withdraw", workflows.DoorWithdraw, "Withdraw a version of your own", monitoring.ScopeArtifactSubmit},
		{"decision", workflows.DoorDecide, "Approve or reject exactly one content", monitoring.ScopeArtifactApprove},
		{"execute", workflows.DoorExecute, "Run an approved version", monitoring.ScopeArtifactExecute},
		{"compensate", workflows.DoorCompensate, "Undo a version", monitoring.ScopeArtifactExecute},
		{"archive", workflows.DoorArchive, "Archive a settled version", monitoring.ScopeArtifactExecute},
	} {
		Handle(r, Operation{
			ID: "artifact-" + d.name, Method: http.MethodPost, Path: artifactVersion + "/" + d.name, Tag: "artifacts", Scope: d.scope,
			Summary: d.summary, Problems: problems,
			Description: "A JSON object with bundle_hash, comment and, for a decision, decision (approve or reject). Who acts is the token's owner.",
		}, a.door(d.door))
	}
	Handle(r, Operation{
		ID: "replace-artifact-content", Method: http.MethodPut, Path: artifactVersion + "/content", Tag: "artifacts", Scope: monitoring.ScopeArtifactSubmit,
		Summary: "Replace the files of a draft", MaxBody: maxArtifactBody, Problems: problems,
	}, a.door(workflows.DoorReplace))
}

// strictly reads a body and names a field that is not known.
func strictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return invalidInput("body", "can't be read: "+withoutValue(err).Error())
	}
	if decoder.More() {
		return invalidInput("body", "must be one JSON object")
	}
	return nil
}

func (a artifactRoutes) submit(ctx context.Context, in *rawArtifactInput) (*artifactOutput, error) {
	var s ArtifactSubmission
	if err := strictly(in.RawBody, &s); err != nil {
		return nil, err
	}
	request := artifact.Request{
		ArtifactID: s.ArtifactID, Version: s.Version, Draft: s.Draft, Reason: s.Reason, Spec: s.Spec, Author: PrincipalFrom(ctx).Owner,
	}
	if err := a.number(ctx, &request); err != nil {
		return nil, err
	}
	files, err := a.upload(ctx, request.ArtifactID, request.Version, s.Files)
	if err != nil {
		return nil, err
	}
	request.Files = files
	if request, err = request.Check(); err != nil {
		return nil, artifactProblem("body", err)
	}
	if request, err = a.claim(request); err != nil {
		return nil, err
	}
	id := names.ArtifactLifecycleID(request.ArtifactID, request.Version)
	_, err = a.Workflows.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: names.QueueArtifacts, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("%s v%d by %s", request.ArtifactID, request.Version, request.Author),
	}, names.ArtifactLifecycle, workflows.Input{Request: request})
	if err != nil {
		return nil, artifactProblem("", err)
	}
	return &artifactOutput{Body: map[string]any{"artifact_id": request.ArtifactID, "version": request.Version, "workflow_id": id}}, nil
}

// number gives a request the next number, and refuses one that is taken before
// anything is written.
func (a artifactRoutes) number(ctx context.Context, r *artifact.Request) error {
	if err := artifact.CheckID(r.ArtifactID); err != nil {
		return artifactProblem("body", err)
	}
	head, err := a.Store.Head(ctx, r.ArtifactID)
	if err != nil {
		return err
	}
	if r.Version == 0 {
		r.Version = head.LatestVersion + 1
	}
	if r.Version <= head.LatestVersion {
		return artifactProblem("", storage.ErrTaken)
	}
	return artifactProblem("body", artifact.CheckVersion(r.Version))
}

// upload stores the content that a body carries and names it by its object.
func (a artifactRoutes) upload(ctx context.Context, id string, version int, files []artifact.File) ([]artifact.File, error) {
	var uploaded []artifact.File
	for _, f := range files {
		if err := artifact.CheckFilename(f.Filename); err != nil {
			return nil, artifactProblem("body.files", err)
		}
		if f.Role != artifact.Primary && f.Role != artifact.Rollback {
			return nil, invalidInput("body.files.role", "must be primary or rollback")
		}
		content, err := f.Content()
		if err != nil {
			return nil, artifactProblem("body", err)
		}
		stored, err := a.Store.Put(ctx, storage.ContentKey(id, version, f.StoredName()), "application/octet-stream", bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		if f.ContentHash != "" && f.ContentHash != stored.ContentHash {
			return nil, invalidInput("body.files.content_hash", "is not the hash of the content")
		}
		uploaded = append(uploaded, artifact.File{
			Role: f.Role, Filename: f.Filename, ContentHash: stored.ContentHash, S3VersionID: stored.S3VersionID, Size: stored.Size,
		})
	}
	return uploaded, nil
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

var verbOfDoor = map[string]artifact.Verb{
	workflows.DoorSubmit: artifact.Submit, workflows.DoorWithdraw: artifact.Withdraw, workflows.DoorExecute: artifact.Execute,
	workflows.DoorCompensate: artifact.Undo, workflows.DoorArchive: artifact.ArchiveNow, workflows.DoorReplace: artifact.Replace,
}

// door sends what a body says through a door of the lifecycle, in the name of
// the token's owner.
func (a artifactRoutes) door(door string) func(context.Context, *artifactDoorInput) (*artifactOutput, error) {
	return func(ctx context.Context, in *artifactDoorInput) (*artifactOutput, error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		var said ArtifactCommand
		if err := strictly(in.RawBody, &said); err != nil {
			return nil, err
		}
		verb := said.Decision
		if door != workflows.DoorDecide {
			if said.Decision != "" {
				return nil, invalidInput("body.decision", "is for decisions only")
			}
			verb = verbOfDoor[door]
		}
		c, err := a.sign(artifact.Command{
			Verb: verb, Actor: PrincipalFrom(ctx).Owner, At: a.Now().UTC(), BundleHash: said.BundleHash, Comment: said.Comment,
		}, in.ID, in.Version)
		if err != nil {
			return nil, err
		}
		command := workflows.Command{Command: c}
		if door == workflows.DoorReplace {
			v, err := a.version(ctx, &in.ArtifactPath)
			if err != nil {
				return nil, err
			}
			if v.State != artifact.Draft || v.Author != c.Actor {
				return nil, NewProblem(http.StatusConflict, "refused", "only the author replaces files, and only of a draft")
			}
			if command.Files, err = a.upload(ctx, in.ID, in.Version, said.Files); err != nil {
				return nil, err
			}
		} else if len(said.Files) > 0 {
			return nil, invalidInput("body.files", "are for drafts only")
		}
		return a.pass(ctx, &in.ArtifactPath, door, command)
	}
}

func (a artifactRoutes) pass(ctx context.Context, path *ArtifactPath, door string, c workflows.Command) (*artifactOutput, error) {
	handle, err := a.Workflows.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: names.ArtifactLifecycleID(path.ID, path.Version), UpdateName: door, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{c},
	})
	if err != nil {
		return nil, artifactProblem("", err)
	}
	var status workflows.Status
	if err := handle.Get(ctx, &status); err != nil {
		return nil, artifactProblem("", err)
	}
	return &artifactOutput{Body: status}, nil
}

// artifactProblem is the problem of an error of the rules, the store or the
// lifecycle.
func artifactProblem(place string, err error) error {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*artifact.InvalidError](err); ok {
		field := invalid.Field
		if place != "" {
			field = place + "." + field
		}
		return invalidInput(field, invalid.Rule)
	}
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return lifecycleProblem(e)
	}
	_, taken := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	switch {
	case taken || errors.Is(err, storage.ErrTaken):
		return NewProblem(http.StatusConflict, "version-taken", "this version exists already")
	case unknown || errors.Is(err, storage.ErrNotFound) || errors.Is(err, objects.ErrNotFound):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such version")
	}
	return err
}

func lifecycleProblem(e *temporal.ApplicationError) *Problem {
	switch e.Type() {
	case workflows.ErrInvalid:
		return NewProblem(http.StatusBadRequest, "invalid-input", e.Message())
	case workflows.ErrRefused, workflows.ErrConflict, workflows.ErrBusy, workflows.ErrSuperseded, workflows.ErrTaken:
		return NewProblem(http.StatusConflict, "refused", e.Message())
	}
	return NewProblem(http.StatusInternalServerError, "internal", "unexpected error").Because(e)
}
