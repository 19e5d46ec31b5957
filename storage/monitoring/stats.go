package monitoring

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// Stats is how many tokens, revoked ones included, and agents an owner has.
type Stats struct {
	Tokens int64
	Agents int64
}

// Stats counts the owner's rows as they are now; no counter is kept.
func (s Store) Stats(ctx context.Context, owner string) (Stats, error) {
	var stats Stats
	partition := monitoring.OwnerPK(owner)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		stats.Tokens, err = s.Table.Count(ctx, partition, monitoring.TokenPrefix, nil)
		return err
	})
	group.Go(func() (err error) {
		stats.Agents, err = s.Table.Count(ctx, partition, monitoring.SourcePrefix, isAgent())
		return err
	})
	if err := group.Wait(); err != nil {
		return Stats{}, fmt.Errorf("count rows: %w", err)
	}
	return stats, nil
}

func isAgent() *table.Condition {
	return &table.Condition{
		Expression: "#observation.#kind = :agent",
		Names:      map[string]string{"#observation": "observation", "#kind": "kind"},
		Values:     table.Item{":agent": table.String(monitoring.Agent)},
	}
}
