package server

import (
	"context"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// ArtifactDiff is what a version changes against the last executed one.
type ArtifactDiff struct {
	Against int    `json:"against" doc:"The version compared with; 0 when none was executed."`
	Diff    string `json:"diff" doc:"Unified difference; empty when nothing differs. What can't be compared is told in a sentence; control and format characters are escaped, and a first line warns of them."`
}

type diffOutput struct{ Body ArtifactDiff }

type diffInput struct {
	ArtifactPath

	Role artifact.Role `query:"role" enum:"primary,rollback,spec" default:"primary" doc:"The file; spec compares how it runs and who must approve."`
}

// diff compares a file with that of the newest older version that was executed.
func (a artifactRoutes) diff(ctx context.Context, in *diffInput) (*diffOutput, error) {
	v, err := a.version(ctx, &in.ArtifactPath)
	if err != nil {
		return nil, err
	}
	before, err := a.Store.LastExecuted(ctx, v)
	if err != nil {
		return nil, err
	}
	difference, err := a.Store.Compare(ctx, before, v, in.Role)
	if err != nil {
		return nil, artifactProblem("", err)
	}
	return &diffOutput{Body: ArtifactDiff{Against: before.Version, Diff: difference}}, nil
}

func fileOf(v storage.Artifact, role string) (storage.StoredFile, bool) {
	for _, f := range v.Files {
		if string(f.Role) == role {
			return f, true
		}
	}
	return storage.StoredFile{}, false
}
