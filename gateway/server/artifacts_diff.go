package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
)

// ArtifactDiff is what a version changes against the last executed one.
type ArtifactDiff struct {
	Against int    `json:"against" doc:"The version compared with; 0 when none was executed."`
	Diff    string `json:"diff" doc:"Unified difference; empty when nothing differs. What can't be compared is told in a sentence."`
}

type diffOutput struct{ Body ArtifactDiff }

type diffInput struct {
	ArtifactPath

	Role string `query:"role" enum:"primary,rollback,spec" default:"primary" doc:"The file; spec compares how it runs and who must approve."`
}

// diff compares a file with that of the newest older version that was executed.
func (a artifactRoutes) diff(ctx context.Context, in *diffInput) (*diffOutput, error) {
	v, err := a.version(ctx, &in.ArtifactPath)
	if err != nil {
		return nil, err
	}
	before, err := a.lastExecuted(ctx, v)
	if err != nil {
		return nil, err
	}
	result := ArtifactDiff{Against: before.Version}
	for _, side := range []storage.Artifact{before, v} {
		if side.State == artifact.Archived && in.Role != "spec" {
			result.Diff = fmt.Sprintf("version %d is archived: its content must be restored before it can be compared\n", side.Version)
			return &diffOutput{Body: result}, nil
		}
	}
	old, err := a.readFile(ctx, before, in.Role)
	if err != nil {
		return nil, err
	}
	current, err := a.readFile(ctx, v, in.Role)
	if err != nil {
		return nil, err
	}
	result.Diff, err = artifact.Diff(fmt.Sprintf("v%d", before.Version), fmt.Sprintf("v%d", v.Version), old, current)
	return &diffOutput{Body: result}, err
}

// lastExecuted is the newest older version whose run succeeded and was not
// undone, archived since or not; the zero value for none.
func (a artifactRoutes) lastExecuted(ctx context.Context, v storage.Artifact) (storage.Artifact, error) {
	versions, err := a.Store.Versions(ctx, v.ArtifactID)
	if err != nil {
		return storage.Artifact{}, err
	}
	for _, old := range versions {
		switch {
		case old.Version >= v.Version:
		case old.State == artifact.Executed:
			return old, nil
		case old.State == artifact.Archived:
			transitions, err := a.Store.Transitions(ctx, v.ArtifactID, old.Version)
			if err != nil {
				return storage.Artifact{}, err
			}
			if n := len(transitions); n > 0 && transitions[n-1].From == artifact.Executed {
				return old, nil
			}
		}
	}
	return storage.Artifact{}, nil
}

// readFile reads a file of a version, checked; nothing where there is none. One
// longer than can be compared is cut just beyond the bound.
func (a artifactRoutes) readFile(ctx context.Context, v storage.Artifact, role string) ([]byte, error) {
	if role == "spec" {
		return specText(v)
	}
	f, found := fileOf(v, role)
	if !found {
		return nil, nil
	}
	body, err := a.Store.ReadAll(ctx, f, artifact.MaxDiff)
	if errors.Is(err, objects.ErrTooLarge) {
		return make([]byte, artifact.MaxDiff+1), nil
	}
	return body, artifactProblem("", err)
}

func fileOf(v storage.Artifact, role string) (storage.StoredFile, bool) {
	for _, f := range v.Files {
		if string(f.Role) == role {
			return f, true
		}
	}
	return storage.StoredFile{}, false
}

// specText is spec.json with a field a line.
func specText(v storage.Artifact) ([]byte, error) {
	if v.Version == 0 {
		return nil, nil
	}
	body, err := artifact.Canonical(v.Spec)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return nil, fmt.Errorf("show spec: %w", err)
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}
