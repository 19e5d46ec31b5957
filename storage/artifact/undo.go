package artifact

import (
	"context"

	"millrace/domain/artifact"
)

// undoState is the state of the artifact that stands for an undo.
var undoState = map[CompensationState]artifact.State{
	CompensationRunning: artifact.Executing, CompensationDone: artifact.Executed, CompensationFailed: artifact.Failed,
}

// undoWrites adds the compensation and the artifact that stands for it, whose
// content is the original's rollback file.
func (s Store) undoWrites(ctx context.Context, b *batch, step Step) error {
	original, err := s.Version(ctx, step.ArtifactID, step.Version)
	if err != nil {
		return err
	}
	compensation, stand := undoItems(original, step)
	b.putIf(s.Table, compensation, nil)
	b.putIf(s.Table, stand, nil)
	return nil
}

// undoItems are the compensation and what stands for it.
func undoItems(original Artifact, step Step) (Compensation, Artifact) {
	id := artifact.CompensationID(step.ArtifactID, step.Version)
	undo, started := *step.Undo, step.Undo.StartedAt
	compensation := Compensation{
		common: newCommon("compensation", step.ArtifactID, step.Version, started, keys{
			SK: "COMP#" + id, GSI1PK: "COMP_STATE#" + string(undo.State), GSI1SK: indexSort(started, step.ArtifactID),
		}),
		CompArtifactID: id, State: undo.State, RunID: undo.RunID, Attempts: undo.Attempts, Detail: undo.Detail,
	}
	compensation.UpdatedAt = step.Record.At
	state := undoState[undo.State]
	stand := Artifact{
		common: newCommon("artifact", id, 1, started, keys{
			SK: "V#1", GSI1PK: "STATE#" + string(state), GSI1SK: indexSort(started, id),
		}),
		Kind: original.Kind, Author: artifact.System, State: state, StateSince: step.Record.At, Spec: original.Spec,
		BundleHash: original.BundleHash, Compensates: partition(step.ArtifactID) + "/" + versionKey(step.ArtifactID, step.Version).Sort,
	}
	for _, f := range original.Files {
		if f.Role == artifact.Rollback {
			stand.Files = append(stand.Files, f)
		}
	}
	stand.UpdatedAt = step.Record.At
	return compensation, stand
}
