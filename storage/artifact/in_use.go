package artifact

import (
	"context"
	"errors"

	"millrace/domain/artifact"
)

// ErrInUse marks a version whose content factories still run.
var ErrInUse = errors.New("factories run it until a newer version is executed there or it is undone")

// InUse tells whether a factory runs a version: its job began there, whatever came
// of it and of the version, it was not undone there, and no newer version took its
// place there. Its content must be at hand, for a factory that comes back, and for
// its rollback.
func (s Store) InUse(ctx context.Context, a Artifact) (bool, error) {
	if a.Kind != artifact.IoTJob || a.Compensates != "" {
		return false, nil
	}
	runs, err := all[Execution](ctx, s.Table, a.ArtifactID, "EXEC#")
	if err != nil {
		return false, err
	}
	type change struct {
		factoryID string
		version   int
	}
	undone, replaced := map[change]bool{}, map[string]bool{}
	for _, run := range runs {
		if run.Role == artifact.Rollback && run.Status == Succeeded {
			undone[change{run.FactoryID, run.Version}] = true
		}
	}
	for _, run := range runs {
		if run.Role == artifact.Primary && run.Status == Succeeded && run.Version > a.Version && !undone[change{run.FactoryID, run.Version}] {
			replaced[run.FactoryID] = true
		}
	}
	for _, run := range runs {
		if run.Role == artifact.Primary && run.Status != NeverBegan && run.Version == a.Version &&
			!undone[change{run.FactoryID, run.Version}] && !replaced[run.FactoryID] {
			return true, nil
		}
	}
	return false, nil
}
