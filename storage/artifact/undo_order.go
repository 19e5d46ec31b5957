package artifact

import (
	"context"
	"fmt"

	"millrace/domain/artifact"
)

// newestToUndo refuses to undo a version under a newer one that ran and was not
// undone itself: its rollback would take away what the newer one stands on. It
// tells the newest version that has run by now, so that the step can make sure
// that no other has since.
func (s Store) newestToUndo(ctx context.Context, step Step) (int, error) {
	head, err := s.Head(ctx, step.ArtifactID)
	if err != nil || head.ExecutingRun == step.Run {
		return max(head.RanVersion, step.Version), err // nothing else ran since it holds HEAD
	}
	newer, err := s.newestStanding(ctx, step.ArtifactID)
	if err == nil && newer > step.Version {
		err = &artifact.RefusedError{Why: artifact.WhyNewerRan, Detail: fmt.Sprintf("version %d ran after version %d: undo it first", newer, step.Version)}
	}
	return max(head.RanVersion, step.Version), err
}

// newestStanding is the newest version of an artifact with a run of its primary
// file that began and was not undone, 0 for none.
func (s Store) newestStanding(ctx context.Context, id string) (int, error) {
	undos, err := s.Compensations(ctx, id)
	if err != nil {
		return 0, err
	}
	undone := map[int]bool{}
	for _, undo := range undos {
		undone[undo.Version] = undo.State == CompensationDone
	}
	runs, err := all[Execution](ctx, s.Table, id, "EXEC#")
	newest := 0
	for _, run := range runs {
		if run.Role == artifact.Primary && run.Status != NeverBegan && !undone[run.Version] {
			newest = max(newest, run.Version)
		}
	}
	return newest, err
}
