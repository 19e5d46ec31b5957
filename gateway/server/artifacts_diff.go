package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
)

// ArtifactDiff is what a version changes against the last executed one.
type ArtifactDiff struct {
	// Against is the version compared with; 0 when none was executed.
	Against int    `json:"against"`
	Diff    string `json:"diff"`
}

// diff compares a file with that of the newest older version that was executed
// and whose content is still there.
func (a artifactRoutes) diff(ctx context.Context, in *artifactContentInput) (*artifactOutput, error) {
	v, err := a.version(ctx, &in.ArtifactPath)
	if err != nil {
		return nil, err
	}
	if v.State == artifact.Archived {
		return nil, NewProblem(http.StatusNotFound, "archived", "the content is archived: it must be restored first")
	}
	versions, err := a.Store.Versions(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	result := ArtifactDiff{}
	var before []byte
	for _, old := range versions {
		if old.Version < v.Version && old.State == artifact.Executed {
			result.Against = old.Version
			if before, err = a.readFile(ctx, old, in.Role); err != nil {
				return nil, err
			}
			break
		}
	}
	after, err := a.readFile(ctx, v, in.Role)
	if err != nil {
		return nil, err
	}
	result.Diff, err = artifact.Diff(fmt.Sprintf("v%d", result.Against), fmt.Sprintf("v%d", v.Version), before, after)
	return &artifactOutput{Body: result}, err
}

// readFile reads a file of a version, checked; nothing where there is none. One
// longer than can be compared is cut just beyond the bound.
func (a artifactRoutes) readFile(ctx context.Context, v storage.Artifact, role string) ([]byte, error) {
	for _, f := range v.Files {
		if string(f.Role) != role {
			continue
		}
		body, err := a.Store.ReadAll(ctx, f, artifact.MaxDiff)
		if errors.Is(err, objects.ErrTooLarge) {
			return make([]byte, artifact.MaxDiff+1), nil
		}
		return body, artifactProblem("", err)
	}
	return nil, nil
}
