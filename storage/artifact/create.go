package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// Creation is a new version as it is first written.
type Creation struct {
	Request    artifact.Request   `json:"request"`
	Content    Content            `json:"content"`
	State      artifact.State     `json:"state"`
	Record     artifact.Record    `json:"record"`
	Submission artifact.Assurance `json:"submission"`
	// Creator is the run of the workflow that creates the version.
	Creator string `json:"creator,omitempty"`
}

// Create writes a version that does not exist yet, its first transition and the
// beginning of its chain. Doing it again is no error; a number that somebody
// else took, or that is not above all others, is ErrTaken.
func (s Store) Create(ctx context.Context, c Creation) error {
	_, err := s.CreateOnce(ctx, c)
	return err
}

// CreateOnce is Create for a writer that may not know whether it has created the
// version: it gets the first record as it is there.
func (s Store) CreateOnce(ctx context.Context, c Creation) (Written, error) {
	if err := artifact.Transit(artifact.None, c.State); err != nil {
		return Written{}, err
	}
	r, at := c.Request, c.Record.At
	specHash, err := r.Spec.Hash()
	if err != nil {
		return Written{}, err
	}
	item := Artifact{
		common: newCommon("artifact", r.ArtifactID, r.Version, at, keys{
			SK: versionKey(r.ArtifactID, r.Version).Sort, GSI1PK: "STATE#" + string(c.State), GSI1SK: indexSort(at, r.ArtifactID),
		}),
		Kind: r.Spec.Kind, Author: r.Author, Reason: r.Reason, State: c.State, StateSince: at, Spec: r.Spec,
		Files: c.Content.Files, BundleHash: c.Content.BundleHash, SpecHash: specHash, ChainLength: 1, ChainLast: c.Record.Hash,
		Submission: c.Submission, Claim: r.Claim, Creator: c.Creator,
	}
	step := Step{ArtifactID: r.ArtifactID, Version: r.Version, Record: c.Record, From: artifact.None, To: c.State, Reason: r.Reason}
	var b batch
	b.put(s.Table, item)
	b.put(s.Table, provenanceItem(step))
	b.put(s.Table, transitionItem(step))
	b.update(s.Table, latestChange(r.ArtifactID, r.Version, at))
	if b.err != nil {
		return Written{}, b.err
	}
	err = s.Table.TransactRetrying(ctx, b.writes...)
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return s.createdBefore(ctx, step, item)
	}
	return Written{Record: c.Record}, err
}

// createdBefore tells a version that this writer has created from another's.
func (s Store) createdBefore(ctx context.Context, step Step, want Artifact) (Written, error) {
	current, err := s.Version(ctx, step.ArtifactID, step.Version)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return Written{}, err
	case current.ChainLast == step.Record.Hash || current.ChainLength > 1 && current.BundleHash == want.BundleHash && current.CreatedAt.Equal(want.CreatedAt):
		return Written{Record: step.Record}, nil
	case want.Creator != "" && current.Creator == want.Creator && current.BundleHash == want.BundleHash:
		return s.madeBefore(ctx, step)
	}
	return Written{}, fmt.Errorf("version %d of %s: %w", step.Version, step.ArtifactID, ErrTaken)
}

func latestChange(id string, version int, at time.Time) table.Change {
	return table.Change{
		Key: headKey(id),
		Set: map[string]any{"latest_version": version, "updated_at": at},
		SetOnce: map[string]any{
			"entity": "head", "artifact_id": id, "schema_version": schemaVersion, "created_at": at, "version": 0, "approved_version": 0,
		},
		Condition: &table.Condition{
			Expression: "attribute_not_exists(#latest) OR #latest < :version",
			Names:      map[string]string{"#latest": "latest_version"},
			Values:     table.Item{":version": table.Int(int64(version))},
		},
	}
}
