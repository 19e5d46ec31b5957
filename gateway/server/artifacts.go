package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
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
	QueryWorkflow(ctx context.Context, workflowID, runID, queryType string, args ...any) (converter.EncodedValue, error)
	DescribeWorkflow(ctx context.Context, workflowID, runID string) (*client.WorkflowExecutionDescription, error)
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
}

// ArtifactConfig is what the artifact routes are made of.
type ArtifactConfig struct {
	Store     storage.Store
	Workflows ArtifactWorkflows
	// Signer signs what the gateway vouches for; nil vouches for nothing, which
	// only workers take that allow unverified commands.
	Signer ssh.Signer
	// SealingKey signs exported provenance; nil exports it unsigned.
	SealingKey ed25519.PrivateKey
	// UploadFolder is where content lies while it is received; "" stands for the
	// folder of temporary files.
	UploadFolder string
	// UploadIdle is how long a client may send nothing; 0 stands for 10 s.
	UploadIdle time.Duration
	Now        func() time.Time
}

type artifactRoutes struct {
	ArtifactConfig

	forms formReader
}

// ArtifactPath names a version.
type ArtifactPath struct {
	ID      string `path:"artifact_id" maxLength:"75" doc:"Id of the artifact."`
	Version int    `path:"version" minimum:"1" maximum:"9999" doc:"Number of the version."`
}

func (p *ArtifactPath) check() error {
	return artifactProblem("path", errors.Join(artifact.CheckID(p.ID), artifact.CheckVersion(p.Version)))
}

// readable is check for what is only read: compensations can be, too.
func (p *ArtifactPath) readable() error {
	return artifactProblem("path", errors.Join(artifact.CheckReadableID(p.ID), artifact.CheckVersion(p.Version)))
}

const (
	artifactsPath   = "/v1/artifacts"
	artifactPath    = artifactsPath + "/{artifact_id}"
	artifactVersion = artifactPath + "/versions/{version}"
)

// Artifacts adds the routes of artifacts. Who acts is the owner of the token and
// never what a payload says; what may be done is decided by the lifecycle.
func Artifacts(cfg ArtifactConfig) Routes {
	a := artifactRoutes{ArtifactConfig: cfg, forms: formReader{
		folder: cfg.UploadFolder, idle: cmp.Or(cfg.UploadIdle, uploadIdle), places: newUploads(),
	}}
	return func(r *Router) {
		a.addLists(r)
		a.addReads(r)
		a.addFiles(r)
		a.addUploads(r)
		a.addDoors(r)
		a.addPeople(r)
	}
}

// readOperation is a read of one artifact or version.
func readOperation(id, path, summary string) Operation {
	return Operation{ID: id, Method: http.MethodGet, Path: path, Tag: "artifacts", Scope: monitoring.ScopeRead, Summary: summary, Problems: []int{http.StatusNotFound}}
}

func (a artifactRoutes) addReads(r *Router) {
	Handle(r, readOperation("get-artifact", artifactPath, "Show all versions of an artifact, the newest first"), a.versions)
	Handle(r, readOperation("get-artifact-version", artifactVersion, "Show a version, its policy and its tally"), a.get)
	status := readOperation("get-artifact-status", artifactVersion+"/status", "Ask the lifecycle what it waits for, and what it refused")
	status.Problems = append(status.Problems, http.StatusServiceUnavailable)
	Handle(r, status, a.status)
	Handle(r, readOperation("list-artifact-transitions", artifactVersion+"/transitions", "List the changes of state"), ofVersion(a, transitionView, a.Store.Transitions))
	Handle(r, readOperation("list-artifact-approvals", artifactVersion+"/approvals", "List the decisions"), ofVersion(a, approvalView, a.Store.Approvals))
	Handle(r, readOperation("list-artifact-runs", artifactVersion+"/runs", "List the runs"), ofVersion(a, runView, a.Store.Runs))
	Handle(r, readOperation("get-artifact-provenance", artifactVersion+"/provenance", "Show the provenance chain"), ofVersion(a, recordView, a.Store.Provenance))
	Handle(r, readOperation("diff-artifact", artifactVersion+"/diff", "Compare a file with that of the last executed version"), a.diff)
}

func (a artifactRoutes) versions(ctx context.Context, in *struct {
	ID string `path:"artifact_id" maxLength:"75" doc:"Id of the artifact."`
},
) (*pageOutput[ArtifactVersion], error) {
	if err := artifact.CheckReadableID(in.ID); err != nil {
		return nil, artifactProblem("path", err)
	}
	items, err := a.Store.Versions(ctx, in.ID)
	if err == nil && len(items) == 0 {
		err = storage.ErrNotFound
	}
	return listOf(versionView, items, "", err)
}

type reviewOutput struct{ Body ArtifactReview }

func (a artifactRoutes) get(ctx context.Context, in *ArtifactPath) (*reviewOutput, error) {
	v, err := a.version(ctx, in)
	if err != nil {
		return nil, err
	}
	review := ArtifactReview{Artifact: versionView(v)}
	for _, f := range v.Files {
		review.TotalSize += f.Size
	}
	if review.Tally, err = a.tally(ctx, v); err != nil {
		return nil, err
	}
	last, err := a.Store.LastExecuted(ctx, v)
	if err != nil {
		return nil, err
	}
	review.LastExecuted = last.Version
	review.Undo, err = a.undoOf(ctx, v)
	return &reviewOutput{Body: review}, err
}

func (a artifactRoutes) tally(ctx context.Context, v storage.Artifact) (artifact.Tally, error) {
	approvals, err := a.Store.Approvals(ctx, v.ArtifactID, v.Version)
	if err != nil {
		return artifact.Tally{}, err
	}
	var decisions []artifact.Decision
	for _, approval := range approvals {
		decisions = append(decisions, approval.Decision)
	}
	return v.Spec.Policy.Tally(v.Author, v.BundleHash, decisions), nil
}

func (a artifactRoutes) undoOf(ctx context.Context, v storage.Artifact) (*ArtifactCompensation, error) {
	undos, err := a.Store.Compensations(ctx, v.ArtifactID)
	if err != nil {
		return nil, err
	}
	for _, undo := range undos {
		if undo.Version == v.Version {
			return new(undoView(undo)), nil
		}
	}
	return nil, nil //nolint:nilnil // most versions are never undone
}

func (a artifactRoutes) version(ctx context.Context, in *ArtifactPath) (storage.Artifact, error) {
	if err := in.readable(); err != nil {
		return storage.Artifact{}, err
	}
	v, err := a.Store.Version(ctx, in.ID, in.Version)
	return v, artifactProblem("", err)
}

// ofVersion lists what belongs to a version, and tells a version without any
// from none.
func ofVersion[T, V any](a artifactRoutes, view func(T) V, read func(context.Context, string, int) ([]T, error)) func(context.Context, *ArtifactPath) (*pageOutput[V], error) {
	return func(ctx context.Context, in *ArtifactPath) (*pageOutput[V], error) {
		if _, err := a.version(ctx, in); err != nil {
			return nil, err
		}
		items, err := read(ctx, in.ID, in.Version)
		return listOf(view, items, "", err)
	}
}
