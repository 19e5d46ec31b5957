package factory

import (
	"bytes"
	"context"
	"fmt"

	"millrace/domain/factory"
)

// The steps of an aggregation, in order.
const (
	StepGraph   Step = "aggregate written"
	StepArchive Step = "aggregate archived"
)

// write stores an aggregate and its archive and returns the one that stands.
func (a Aggregator) write(ctx context.Context, graph factory.Graph) (factory.Graph, error) {
	if a.expired(graph) {
		// The item may be gone by now; then only the archive tells of a fuller one.
		archived, err := a.Store.Archive(ctx, graph.FactoryID, graph.BucketStart)
		if err != nil {
			return factory.Graph{}, err
		}
		if !graph.Replaces(archived) {
			return *archived, nil
		}
	}
	standing, err := a.Store.PutGraph(ctx, graph)
	if err != nil {
		return factory.Graph{}, err
	}
	if err := a.at(StepGraph); err != nil {
		return factory.Graph{}, err
	}
	return a.archive(ctx, standing)
}

func (a Aggregator) expired(graph factory.Graph) bool {
	return a.Now().Sub(graph.BucketStart) >= a.Rules.Keep
}

// archive writes the long-lived copy of the item, until the item is still what
// was copied: another run may have written a fuller one in between, and have
// copied it before we did.
func (a Aggregator) archive(ctx context.Context, standing factory.Graph) (factory.Graph, error) {
	for range maxConflicts {
		if err := a.Store.PutArchive(ctx, standing); err != nil {
			return factory.Graph{}, err
		}
		if err := a.at(StepArchive); err != nil {
			return factory.Graph{}, err
		}
		current, err := a.Store.Graph(ctx, standing.FactoryID, standing.BucketStart)
		if err != nil {
			return factory.Graph{}, err
		}
		if current == nil || same(*current, standing) {
			return standing, nil
		}
		standing = *current
	}
	return factory.Graph{}, fmt.Errorf("archive aggregate: %w", errContended)
}

func same(a, b factory.Graph) bool {
	first, errFirst := factory.EncodeJSON(a)
	second, errSecond := factory.EncodeJSON(b)
	return errFirst == nil && errSecond == nil && bytes.Equal(first, second)
}

func (a Aggregator) at(step Step) error {
	if a.At == nil {
		return nil
	}
	return a.At(step)
}
