package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

func runKey(id, runID string) table.Key {
	return table.Key{Partition: partition(id), Sort: "EXEC#" + runID}
}

// Begin claims a run: only the first call with its id succeeds, and tells so.
func (s Store) Begin(ctx context.Context, id string, version int, run Run) (bool, error) {
	at := run.StartedAt
	item := Execution{
		common: newCommon("execution", id, version, at, keys{
			SK: "EXEC#" + run.RunID, GSI1PK: "RUN#" + artifact.Date(at), GSI1SK: indexSort(at, id),
		}),
		Run: run,
	}
	absent := s.Table.Absent()
	err := s.Table.Put(ctx, item, &absent)
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return false, nil
	}
	return err == nil, err
}

// Finish records how a run that began ended. The first word is the last: a run
// that was declared lost stays lost. The same again is no error.
func (s Store) Finish(ctx context.Context, id string, run Run) error {
	running := table.Condition{
		Expression: "#status = :running", Names: map[string]string{"#status": "status"},
		Values: table.Item{":running": table.String(string(Running))},
	}
	set := map[string]any{
		"status": run.Status, "exit_code": run.ExitCode, "detail": run.Detail, "duration_ms": run.DurationMS, "truncated": run.Truncated,
	}
	if len(run.ContentHashes) > 0 {
		set["content_hashes"] = run.ContentHashes
	}
	if run.FinishedAt != nil {
		set["finished_at"], set["updated_at"] = *run.FinishedAt, *run.FinishedAt
	}
	err := s.Table.Update(ctx, table.Change{Key: runKey(id, run.RunID), Set: set, Condition: &running}, nil)
	refused, ok := errors.AsType[*table.ConflictError](err)
	if !ok {
		return err
	}
	var current Execution
	if err := table.Decode(refused.Current, &current); err != nil {
		return fmt.Errorf("run %s: %w", run.RunID, err)
	}
	if current.Status == run.Status && run.FinishedAt != nil && current.FinishedAt != nil && current.FinishedAt.Equal(*run.FinishedAt) {
		return nil // an answer was lost on the way
	}
	return fmt.Errorf("run %s is not running: %w", run.RunID, ErrConflict)
}

// NoteOutput records, once, what a run left that has ended. One that was settled
// without stays so: what is known of it has been summed up.
func (s Store) NoteOutput(ctx context.Context, id string, run Run) error {
	err := s.noteOutput(ctx, id, run.RunID, run.Status, run.ContentHashes)
	refused, ok := errors.AsType[*table.ConflictError](err)
	if !ok {
		return err
	}
	var current Execution
	if err := table.Decode(refused.Current, &current); err != nil {
		return fmt.Errorf("run %s: %w", run.RunID, err)
	}
	if current.Status == run.Status && maps.Equal(current.ContentHashes, run.ContentHashes) {
		return nil // an answer was lost on the way
	}
	return fmt.Errorf("run %s has been settled: %w", run.RunID, ErrConflict)
}

func (s Store) noteOutput(ctx context.Context, id, runID string, status RunStatus, hashes map[string]string) error {
	once := table.Condition{
		Expression: "#status = :status AND attribute_not_exists(#hashes)",
		Names:      map[string]string{"#status": "status", "#hashes": "content_hashes"}, Values: table.Item{":status": table.String(string(status))},
	}
	return s.Table.Update(ctx, table.Change{Key: runKey(id, runID), Set: map[string]any{"content_hashes": hashes}, Condition: &once}, nil)
}

// Run reads one run.
func (s Store) Run(ctx context.Context, id, runID string) (Execution, error) {
	var item Execution
	found, err := s.Table.Get(ctx, runKey(id, runID), &item)
	if err == nil && !found {
		err = fmt.Errorf("run %s of %s: %w", runID, id, ErrNotFound)
	}
	return item, err
}

// Lose records how a run ended whose executor gave no answer, unless it ended
// some other way; it gives the run as it stands then, and false when no such run
// ever began. What a run has not told of its output by then is never told.
func (s Store) Lose(ctx context.Context, id, runID string, status RunStatus, detail string, now time.Time) (Execution, bool, error) {
	err := s.Finish(ctx, id, Run{RunID: runID, Status: status, ExitCode: -1, Detail: detail, FinishedAt: &now})
	if err != nil && !errors.Is(err, ErrConflict) {
		return Execution{}, false, err
	}
	run, err := s.Run(ctx, id, runID)
	if errors.Is(err, ErrNotFound) || run.Status == NeverBegan {
		return Execution{}, false, nil
	}
	if err != nil || run.Status == WorkerLost || len(run.ContentHashes) > 0 {
		return run, err == nil, err
	}
	err = s.noteOutput(ctx, id, runID, run.Status, map[string]string{})
	if _, refused := errors.AsType[*table.ConflictError](err); refused { // by its executor just now, or here before
		run, err = s.Run(ctx, id, runID)
	}
	return run, err == nil, err
}

// Forbid takes the place of a run that has not begun, so that an executor that
// was given up can't begin it later; false when it began meanwhile.
func (s Store) Forbid(ctx context.Context, id string, version int, runID, detail string, now time.Time) (bool, error) {
	return s.Begin(ctx, id, version, Run{RunID: runID, Status: NeverBegan, ExitCode: -1, Detail: detail, StartedAt: now, FinishedAt: &now})
}
