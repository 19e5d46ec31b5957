package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// ArtifactCommand is what somebody says about a version. Who says it is the
// token's owner; with a signature it is they who vouch for it, not the gateway.
type ArtifactCommand struct {
	BundleHash string    `json:"bundle_hash,omitempty" pattern:"^sha256:[0-9a-f]{64}$" doc:"The content that is meant; needed in a decision."`
	Comment    string    `json:"comment,omitempty" maxLength:"2000"`
	At         time.Time `json:"at,omitzero" doc:"The time that was signed; only with a signature."`
	Signature  string    `json:"signature,omitempty" maxLength:"8192" doc:"Armoured SSHSIG by a registered key of the token's owner."`
}

// ArtifactDecision approves or rejects.
type ArtifactDecision struct {
	ArtifactCommand

	Decision artifact.Verb `json:"decision" enum:"approve,reject"`
}

type doorInput struct {
	ArtifactPath

	Key  string          `header:"Idempotency-Key" maxLength:"64" doc:"A second request with the same key and body has the answer of the first."`
	Body ArtifactCommand `required:"true"`
}

type decisionInput struct {
	ArtifactPath

	Key  string           `header:"Idempotency-Key" maxLength:"64" doc:"A second request with the same key and body has the answer of the first."`
	Body ArtifactDecision `required:"true"`
}

type statusOutput struct{ Body workflows.Status }

var verbOfDoor = map[string]artifact.Verb{
	workflows.DoorSubmit: artifact.Submit, workflows.DoorWithdraw: artifact.Withdraw, workflows.DoorExecute: artifact.Execute,
	workflows.DoorCompensate: artifact.Undo, workflows.DoorArchive: artifact.ArchiveNow, workflows.DoorReplace: artifact.Replace,
}

func (a artifactRoutes) addDoors(r *Router) {
	for _, d := range []struct {
		name, door, summary string
		scope               monitoring.Scope
	}{
		{"submit", workflows.DoorSubmit, "Submit a draft for review", monitoring.ScopeArtifactSubmit},
		{"withdraw", workflows.DoorWithdraw, "Withdraw a version of your own", monitoring.ScopeArtifactSubmit},
		{"execute", workflows.DoorExecute, "Run an approved version", monitoring.ScopeArtifactExecute},
		{"compensate", workflows.DoorCompensate, "Undo a version", monitoring.ScopeArtifactExecute},
		{"archive", workflows.DoorArchive, "Archive a settled version", monitoring.ScopeArtifactExecute},
	} {
		Handle(r, a.doorOperation(d.name, d.scope, d.summary), a.door(d.door))
	}
	Handle(r, a.doorOperation("decision", monitoring.ScopeArtifactApprove, "Approve or reject exactly one content"), a.decide)
}

func (a artifactRoutes) doorOperation(name string, scope monitoring.Scope, summary string) Operation {
	return Operation{
		ID: "artifact-" + name, Method: http.MethodPost, Path: artifactVersion + "/" + name, Tag: "artifacts", Scope: scope, Summary: summary,
		Description: "Who acts is the token's owner. A refusal is 403 when it is about who asks and 409 when it is about the state; reason says which.",
		Problems:    []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
	}
}

// door sends what a body says through a door of the lifecycle, in the name of
// the token's owner.
func (a artifactRoutes) door(door string) func(context.Context, *doorInput) (*statusOutput, error) {
	return func(ctx context.Context, in *doorInput) (*statusOutput, error) {
		return a.speak(ctx, &in.ArtifactPath, door, verbOfDoor[door], in.Body, in.Key)
	}
}

func (a artifactRoutes) decide(ctx context.Context, in *decisionInput) (*statusOutput, error) {
	return a.speak(ctx, &in.ArtifactPath, workflows.DoorDecide, in.Body.Decision, in.Body.ArtifactCommand, in.Key)
}

var idempotencyKey = regexp.MustCompile(`^[A-Za-z0-9._:-]{0,64}$`)

func (a artifactRoutes) speak(ctx context.Context, path *ArtifactPath, door string, verb artifact.Verb, said ArtifactCommand, key string) (*statusOutput, error) {
	if err := path.check(); err != nil {
		return nil, err
	}
	if !idempotencyKey.MatchString(key) {
		return nil, invalidInput("header.Idempotency-Key", "must match [A-Za-z0-9._:-]{1,64}")
	}
	c := artifact.Command{
		Verb: verb, Actor: PrincipalFrom(ctx).Owner, At: said.At.UTC(), BundleHash: said.BundleHash, Comment: said.Comment, Signature: said.Signature,
	}
	if said.Signature == "" && !said.At.IsZero() {
		return nil, invalidInput("body.at", "is for signed commands only")
	}
	if err := cmp.Or(c.Check(), c.CheckWords()); err != nil {
		return nil, artifactProblem("body", err)
	}
	id := ""
	if key != "" {
		id = updateID(key, path, c)
	}
	if c.Signature == "" {
		c.At = a.Now().UTC()
		var err error
		if c, err = a.sign(c, path.ID, path.Version); err != nil {
			return nil, err
		}
	}
	return a.pass(ctx, path, door, workflows.Command{Command: c}, id)
}

// updateID makes Temporal tell a repeated request from a new one: by the owner's
// key and everything that was said.
func updateID(key string, path *ArtifactPath, c artifact.Command) string {
	return artifact.HashOf(append(c.Text(path.ID, path.Version), "comment: "+c.Comment+"\nsignature: "+c.Signature+"\nkey: "+key...))
}

func (a artifactRoutes) pass(ctx context.Context, path *ArtifactPath, door string, c workflows.Command, updateID string) (*statusOutput, error) {
	handle, err := a.Workflows.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: names.ArtifactLifecycleID(path.ID, path.Version), UpdateName: door, UpdateID: updateID,
		WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{c},
	})
	if err != nil {
		return nil, a.unheard(ctx, path, err)
	}
	var status workflows.Status
	if err := handle.Get(ctx, &status); err != nil {
		return nil, a.unheard(ctx, path, err)
	}
	return &statusOutput{Body: status}, nil
}

// unheard is the problem of a command that no lifecycle took: a lifecycle that
// has ended is told from one that never was.
func (a artifactRoutes) unheard(ctx context.Context, path *ArtifactPath, err error) error {
	if _, gone := errors.AsType[*serviceerror.NotFound](err); !gone {
		return temporalProblem(err)
	}
	v, err := a.Store.Version(ctx, path.ID, path.Version)
	if err != nil {
		return artifactProblem("", err)
	}
	return NewProblem(http.StatusConflict, "refused", "the lifecycle of this version has ended: it is "+string(v.State)).WithReason(string(artifact.WhyState))
}

// ArtifactReplacement is the document of new files of a draft.
type ArtifactReplacement struct {
	Comment string          `json:"comment,omitempty" maxLength:"2000"`
	Files   []SubmittedFile `json:"files,omitempty" nullable:"false"`
}

func (r *ArtifactReplacement) said() []SubmittedFile { return r.Files }

type replaceInput struct {
	ArtifactPath
	UploadBody
}

// replace replaces the files of a draft. The same files again change nothing.
func (a artifactRoutes) replace(ctx context.Context, in *replaceInput) (*statusOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	actor := PrincipalFrom(ctx).Owner
	var said ArtifactReplacement
	f, err := a.forms.read(ctx, in.UploadBody, &said, func() error {
		_, err := a.draftOf(ctx, &in.ArtifactPath, actor)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	c := artifact.Command{Verb: artifact.Replace, Actor: actor, At: a.Now().UTC(), Comment: said.Comment}
	if err := cmp.Or(c.Check(), c.CheckWords()); err != nil {
		return nil, artifactProblem("body", err)
	}
	return a.replaceWith(ctx, &in.ArtifactPath, c, f)
}

// replaceWith stores received files and has the lifecycle take them.
func (a artifactRoutes) replaceWith(ctx context.Context, path *ArtifactPath, c artifact.Command, f *form) (*statusOutput, error) {
	// The content took its time: the draft may be none any more.
	v, err := a.draftOf(ctx, path, c.Actor)
	if err != nil {
		return nil, err
	}
	files := f.described()
	if err := errors.Join(artifact.CheckFiles(files), v.Spec.CheckContent(files)); err != nil {
		return nil, artifactProblem("body", err)
	}
	if sameFiles(v, files) {
		return a.ask(ctx, path)
	}
	if files, err = a.store(ctx, path.ID, path.Version, f); err != nil {
		return nil, err
	}
	if c.BundleHash, err = artifact.BundleHash(files, v.Spec); err != nil {
		return nil, err
	}
	if c, err = a.sign(c, path.ID, path.Version); err != nil {
		return nil, err
	}
	return a.pass(ctx, path, workflows.DoorReplace, workflows.Command{Command: c, Files: files}, "")
}

// draftOf refuses what is no draft of the actor: nothing may be written beside
// content that somebody decides about.
func (a artifactRoutes) draftOf(ctx context.Context, path *ArtifactPath, actor string) (storage.Artifact, error) {
	v, err := a.version(ctx, path)
	switch {
	case err != nil:
		return v, err
	case v.Author != actor:
		return v, NewProblem(http.StatusForbidden, "refused", "only the author replaces files").WithReason(string(artifact.WhyNotAuthor))
	case v.State != artifact.Draft:
		return v, NewProblem(http.StatusConflict, "refused", "files are replaced in draft, not in "+string(v.State)).WithReason(string(artifact.WhyState))
	}
	return v, nil
}

func sameFiles(v storage.Artifact, files []artifact.File) bool {
	return len(v.Files) == len(files) && !slices.ContainsFunc(files, func(f artifact.File) bool {
		return !slices.ContainsFunc(v.Files, func(s storage.StoredFile) bool {
			return s.Role == f.Role && s.Filename == f.Filename && s.ContentHash == f.ContentHash
		})
	})
}
