package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/storage/table"
)

// RunOwner says whose a run is that something outside answers by its id alone:
// item RUN#{run_id}/RUN of the governance table.
type RunOwner struct {
	PK            string    `json:"PK"`
	SK            string    `json:"SK"`
	Entity        string    `json:"entity"`
	RunID         string    `json:"run_id"`
	ArtifactID    string    `json:"artifact_id"`
	Version       int       `json:"version"`
	WorkflowID    string    `json:"workflow_id"`
	FactoryID     string    `json:"factory_id"`
	SchemaVersion int       `json:"schema_version"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

func runOwnerKey(runID string) table.Key {
	return table.Key{Partition: "RUN#" + runID, Sort: "RUN"}
}

// same tells whether two owners are one, whenever they were written.
func (o RunOwner) same(other RunOwner) bool {
	return o.RunID == other.RunID && o.ArtifactID == other.ArtifactID && o.Version == other.Version &&
		o.WorkflowID == other.WorkflowID && o.FactoryID == other.FactoryID
}

// ClaimRunOwner writes down whose a run is. Doing it again changes nothing;
// another owner's run is ErrConflict.
func (s Store) ClaimRunOwner(ctx context.Context, o RunOwner, now time.Time) error {
	k := runOwnerKey(o.RunID)
	o.PK, o.SK, o.Entity, o.SchemaVersion, o.CreatedAt, o.UpdatedAt = k.Partition, k.Sort, "run_owner", schemaVersion, now, now
	absent := s.Table.Absent()
	err := s.Table.Put(ctx, o, &absent)
	refused, ok := errors.AsType[*table.ConflictError](err)
	if !ok {
		return err
	}
	var holder RunOwner
	if err := table.Decode(refused.Current, &holder); err != nil {
		return fmt.Errorf("owner of run %s: %w", o.RunID, err)
	}
	if !holder.same(o) {
		return fmt.Errorf("run %s is %s's: %w", o.RunID, holder.WorkflowID, ErrConflict)
	}
	return nil
}

// RunOwner reads whose a run is, and tells whether anybody's.
func (s Store) RunOwner(ctx context.Context, runID string) (RunOwner, bool, error) {
	var o RunOwner
	found, err := s.Table.Get(ctx, runOwnerKey(runID), &o)
	return o, found, err
}
