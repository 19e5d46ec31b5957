package artifact

import (
	"context"
	"errors"
	"slices"

	"millrace/domain/artifact"
	"millrace/domain/factory"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// FactoryReader reads the current states of factories; those never seen are left
// out.
type FactoryReader interface {
	BatchLatest(ctx context.Context, factoryIDs []string) (map[string]factory.Latest, error)
}

// Lock takes or renews the locks of factories, always in the same order, so that
// two owners can't wait for each other. It ends at the first that another owner
// has; those before it stay held.
func (a Activities) Lock(ctx context.Context, r workflows.LockRequest) (workflows.LockResult, error) {
	for _, id := range slices.Sorted(slices.Values(r.FactoryIDs)) {
		lock, held, err := a.Store.LockFactory(ctx, id, r.Owner, r.Lease.Of(), a.Now().UTC())
		if err != nil {
			return workflows.LockResult{}, failure(err)
		}
		if !held {
			return workflows.LockResult{FactoryID: id, Owner: lock.Owner, Until: lock.ExpiresAt}, nil
		}
	}
	return workflows.LockResult{}, nil
}

// Unlock gives the locks of factories free that the owner still has.
func (a Activities) Unlock(ctx context.Context, r workflows.UnlockRequest) error {
	for _, id := range r.FactoryIDs {
		if err := a.Store.UnlockFactory(ctx, id, r.Owner); err != nil {
			return failure(err)
		}
	}
	return nil
}

// Health reads how factories are.
func (a Activities) Health(ctx context.Context, r workflows.HealthRequest) (workflows.HealthResult, error) {
	states, err := a.Factories.BatchLatest(ctx, r.FactoryIDs)
	if err != nil {
		return workflows.HealthResult{}, failure(err)
	}
	var result workflows.HealthResult
	for _, id := range r.FactoryIDs {
		result.Factories = append(result.Factories, health(states[id]))
	}
	return result, nil
}

func health(latest factory.Latest) artifact.Health {
	var h artifact.Health
	if latest.Risk != nil {
		h.Score = &latest.Risk.Score
	}
	if latest.FactoryState != nil {
		h.FactoryAt = latest.FactoryState.SourceTimestamp
	}
	if latest.InfraState != nil {
		h.InfraAt = latest.InfraState.SourceTimestamp
	}
	return h
}

// ReadRun reads how a run stands.
func (a Activities) ReadRun(ctx context.Context, r workflows.RunRef) (workflows.RunEnd, error) {
	run, err := a.Store.Run(ctx, r.ArtifactID, r.RunID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && (run.Version != r.Version || run.Status == storage.Running || run.Status == storage.NeverBegan) {
		return workflows.RunEnd{}, nil
	}
	if err != nil {
		return workflows.RunEnd{}, failure(err)
	}
	end := workflows.RunEnd{Ended: true, Result: workflows.RunResult{Status: string(run.Status), ExitCode: run.ExitCode, Detail: run.Detail}}
	if run.FinishedAt != nil {
		end.FinishedAt = artifact.EndOfJob(run.StartedAt, *run.FinishedAt)
	}
	return end, nil
}
