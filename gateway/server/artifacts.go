package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.temporal.io/sdk/client"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	storage "millrace/storage/artifact"
)

// ArtifactWorkflows is the part of the Temporal client that the artifact routes
// need.
type ArtifactWorkflows interface {
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
}

// ArtifactConfig is what the artifact routes are made of.
type ArtifactConfig struct {
	Store     storage.Store
	Workflows ArtifactWorkflows
	// Signer signs what the gateway vouches for; nil vouches for nothing, which
	// only workers take that allow unverified commands.
	Signer ssh.Signer
	Now    func() time.Time
}

type artifactRoutes struct{ ArtifactConfig }

// ArtifactPath names a version.
type ArtifactPath struct {
	ID      string `path:"artifact_id" maxLength:"64" doc:"Id of the artifact."`
	Version int    `path:"version" minimum:"1" maximum:"9999" doc:"Number of the version."`
}

func (p *ArtifactPath) check() error {
	return artifactProblem("path", errors.Join(artifact.CheckID(p.ID), artifact.CheckVersion(p.Version)))
}

const (
	artifactsPath   = "/v1/artifacts"
	artifactPath    = artifactsPath + "/{artifact_id}"
	artifactVersion = artifactPath + "/versions/{version}"
)

// Artifacts adds the routes of artifacts. Who acts is the owner of the token and
// never what a payload says; what may be done is decided by the lifecycle.
func Artifacts(cfg ArtifactConfig) Routes {
	a := artifactRoutes{cfg}
	return func(r *Router) {
		read := func(id, path, summary string) Operation {
			return Operation{ID: id, Method: http.MethodGet, Path: path, Tag: "artifacts", Scope: monitoring.ScopeRead, Summary: summary, Problems: []int{http.StatusNotFound}}
		}
		Handle(r, read("list-artifacts", artifactsPath, "List versions by state, or decisions by approver"), a.list)
		Handle(r, read("get-artifact", artifactPath, "Show all versions of an artifact"), a.versions)
		Handle(r, read("get-artifact-version", artifactVersion, "Show a version, its policy and its tally"), a.get)
		Handle(r, read("list-artifact-transitions", artifactVersion+"/transitions", "List the changes of state"), a.transitions)
		Handle(r, read("list-artifact-approvals", artifactVersion+"/approvals", "List the decisions"), a.approvals)
		Handle(r, read("list-artifact-runs", artifactVersion+"/runs", "List the runs"), a.runs)
		Handle(r, read("get-artifact-provenance", artifactVersion+"/provenance", "Show the provenance chain"), a.provenance)
		content := read("get-artifact-content", artifactVersion+"/content", "Read a file of a version")
		content.Description = "The hash is checked while the content streams: a body shorter than Content-Length means that it did not fit."
		Handle(r, content, a.content)
		Handle(r, read("diff-artifact", artifactVersion+"/diff", "Compare a file with that of the last executed version"), a.diff)
		a.addDoors(r)
	}
}

type artifactOutput struct {
	Body any
}

type listArtifactsInput struct {
	State    string `query:"state" doc:"State of the versions; in_review by default."`
	Approver string `query:"approver" doc:"Lists this actor's decisions instead."`
	Cursor   string `query:"cursor" doc:"nextCursor of the page before."`
	Limit    int32  `query:"limit" minimum:"1" maximum:"100" default:"50"`
}

// ArtifactList is a page of a list.
type ArtifactList struct {
	Items      []any  `json:"items"`
	NextCursor string `json:"nextCursor,omitempty"`
}

func (a artifactRoutes) list(ctx context.Context, in *listArtifactsInput) (*artifactOutput, error) {
	page := storage.Page{Limit: in.Limit, Cursor: in.Cursor, Descending: true}
	if in.Approver != "" {
		if err := artifact.CheckActor("approver", in.Approver); err != nil {
			return nil, artifactProblem("query", err)
		}
		items, next, err := a.Store.ByApprover(ctx, in.Approver, page)
		return listOf(items, next, err)
	}
	state := artifact.State(in.State)
	if state == "" {
		state = artifact.InReview
	}
	if !state.Known() {
		return nil, invalidInput("query.state", "must be a state of an artifact")
	}
	items, next, err := a.Store.InState(ctx, state, page)
	return listOf(items, next, err)
}

func listOf[T any](items []T, next string, err error) (*artifactOutput, error) {
	if err != nil {
		return nil, artifactProblem("", err)
	}
	list := ArtifactList{Items: []any{}, NextCursor: next}
	for _, item := range items {
		list.Items = append(list.Items, shown(item))
	}
	return &artifactOutput{Body: list}, nil
}

// shown is an item without its keys in the table.
func shown(item any) any {
	body, err := json.Marshal(item)
	if err != nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil
	}
	for _, key := range []string{"PK", "SK", "GSI1PK", "GSI1SK", "entity", "schema_version"} {
		delete(fields, key)
	}
	return fields
}

func (a artifactRoutes) versions(ctx context.Context, in *struct {
	ID string `path:"artifact_id" maxLength:"64"`
},
) (*artifactOutput, error) {
	if err := artifact.CheckID(in.ID); err != nil {
		return nil, artifactProblem("path", err)
	}
	items, err := a.Store.Versions(ctx, in.ID)
	if err == nil && len(items) == 0 {
		err = storage.ErrNotFound
	}
	return listOf(items, "", err)
}

// ArtifactView is what reviewers see of a version.
type ArtifactView struct {
	Artifact any            `json:"artifact"`
	Tally    artifact.Tally `json:"tally"`
}

func (a artifactRoutes) get(ctx context.Context, in *ArtifactPath) (*artifactOutput, error) {
	v, err := a.version(ctx, in)
	if err != nil {
		return nil, err
	}
	approvals, err := a.Store.Approvals(ctx, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	var decisions []artifact.Decision
	for _, approval := range approvals {
		decisions = append(decisions, approval.Decision)
	}
	return &artifactOutput{Body: ArtifactView{Artifact: shown(v), Tally: v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions)}}, nil
}

func (a artifactRoutes) version(ctx context.Context, in *ArtifactPath) (storage.Artifact, error) {
	if err := in.check(); err != nil {
		return storage.Artifact{}, err
	}
	v, err := a.Store.Version(ctx, in.ID, in.Version)
	return v, artifactProblem("", err)
}

func (a artifactRoutes) transitions(ctx context.Context, in *ArtifactPath) (*artifactOutput, error) {
	return ofVersion(ctx, in, a.Store.Transitions)
}

func (a artifactRoutes) approvals(ctx context.Context, in *ArtifactPath) (*artifactOutput, error) {
	return ofVersion(ctx, in, a.Store.Approvals)
}

func (a artifactRoutes) runs(ctx context.Context, in *ArtifactPath) (*artifactOutput, error) {
	return ofVersion(ctx, in, a.Store.Runs)
}

func (a artifactRoutes) provenance(ctx context.Context, in *ArtifactPath) (*artifactOutput, error) {
	return ofVersion(ctx, in, a.Store.Provenance)
}

func ofVersion[T any](ctx context.Context, in *ArtifactPath, read func(context.Context, string, int) ([]T, error)) (*artifactOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	items, err := read(ctx, in.ID, in.Version)
	return listOf(items, "", err)
}

type artifactContentInput struct {
	ArtifactPath
	Role string `query:"role" enum:"primary,rollback" default:"primary"`
}

func (a artifactRoutes) content(ctx context.Context, in *artifactContentInput) (*huma.StreamResponse, error) {
	v, err := a.version(ctx, &in.ArtifactPath)
	if err != nil {
		return nil, err
	}
	if v.State == artifact.Archived {
		return nil, NewProblem(http.StatusNotFound, "archived", "the content is archived at "+v.ArchivePrefix+": it must be restored first")
	}
	for _, f := range v.Files {
		if string(f.Role) != in.Role {
			continue
		}
		body, err := a.Store.Open(ctx, f)
		if err != nil {
			return nil, artifactProblem("", err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) { send(ctx, body, f.Size) }}, nil
	}
	return nil, NewProblem(http.StatusNotFound, "not-found", "the version has no such file")
}

// send streams content of a known size, always one piece behind what was read:
// where the hash does not fit, the last piece is never sent, so that nobody takes
// the content for whole.
func send(ctx huma.Context, body io.ReadCloser, size int64) {
	defer body.Close() //nolint:errcheck // only read
	ctx.SetHeader("Content-Type", "application/octet-stream")
	ctx.SetHeader("Content-Length", strconv.FormatInt(size, 10))
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	ctx.SetHeader("Content-Disposition", "attachment")
	ctx.SetStatus(http.StatusOK)
	var held []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := body.Read(piece)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if n > 0 || err != nil {
			if _, writeErr := ctx.BodyWriter().Write(held); writeErr != nil {
				return
			}
			held = append(held[:0], piece[:n]...)
		}
		if err != nil {
			_, _ = ctx.BodyWriter().Write(held) // nobody is left to tell
			return
		}
	}
}
