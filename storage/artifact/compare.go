package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"millrace/domain/artifact"
	"millrace/storage/objects"
)

// RoleSpec has Compare compare how versions run and who must approve them.
const RoleSpec artifact.Role = "spec"

// LastExecuted is the newest older version whose run succeeded and was not undone,
// archived since or not; the zero value for none.
func (s Store) LastExecuted(ctx context.Context, v Artifact) (Artifact, error) {
	versions, err := s.Versions(ctx, v.ArtifactID)
	if err != nil {
		return Artifact{}, err
	}
	for _, old := range versions {
		switch {
		case old.Version >= v.Version:
		case old.State == artifact.Executed:
			return old, nil
		case old.State == artifact.Archived:
			transitions, err := s.Transitions(ctx, v.ArtifactID, old.Version)
			if err != nil {
				return Artifact{}, err
			}
			if n := len(transitions); n > 0 && transitions[n-1].From == artifact.Executed {
				return old, nil
			}
		}
	}
	return Artifact{}, nil
}

// Compare is the difference of a file, or of the spec, of two versions, as
// reviewers see it. The zero value stands for no version.
func (s Store) Compare(ctx context.Context, before, after Artifact, role artifact.Role) (string, error) {
	for _, side := range []Artifact{before, after} {
		if side.State == artifact.Archived && role != RoleSpec {
			return fmt.Sprintf("version %d is archived: its content must be restored before it can be compared\n", side.Version), nil
		}
	}
	old, err := s.text(ctx, before, role)
	if err != nil {
		return "", err
	}
	current, err := s.text(ctx, after, role)
	if err != nil {
		return "", err
	}
	return artifact.Diff(fmt.Sprintf("v%d", before.Version), fmt.Sprintf("v%d", after.Version), old, current)
}

// text reads a file of a version, checked; nothing where there is none. One longer
// than can be compared is cut just beyond the bound.
func (s Store) text(ctx context.Context, v Artifact, role artifact.Role) ([]byte, error) {
	if role == RoleSpec {
		return v.SpecText()
	}
	for _, f := range v.Files {
		if f.Role != role {
			continue
		}
		body, err := s.ReadAll(ctx, f, artifact.MaxDiff)
		if errors.Is(err, objects.ErrTooLarge) {
			return make([]byte, artifact.MaxDiff+1), nil
		}
		return body, err
	}
	return nil, nil
}

// SpecText is spec.json with a field a line; nothing for no version.
func (a Artifact) SpecText() ([]byte, error) {
	if a.Version == 0 {
		return nil, nil
	}
	body, err := artifact.Canonical(a.Spec)
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
