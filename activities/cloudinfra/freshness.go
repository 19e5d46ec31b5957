package cloudinfra

import (
	"context"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeFreshness(ctx context.Context, req workflows.ProbeRequest) (workflows.Found[[]cloudinfra.FactoryState], error) {
	states, err := c.Factories.BatchLatest(ctx, c.FactoryIDs)
	if err != nil {
		return workflows.Found[[]cloudinfra.FactoryState]{}, c.fail(workflows.SourceOf(cloudinfra.ProbeFreshness), err)
	}
	factories := make([]cloudinfra.FactoryState, len(c.FactoryIDs))
	for i, id := range c.FactoryIDs {
		var latest *factory.Latest
		if state, seen := states[id]; seen {
			latest = &state
		}
		factories[i] = cloudinfra.Freshness(id, latest, req.AsOf)
	}
	return found(factories), nil
}
