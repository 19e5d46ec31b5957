package monitoring

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/monitoring"
)

// Bounds of a trend: how many minutes it may read, so a week of 99 sources or an
// hour of 16,000, and from how many sources at once.
const (
	maxTrendMinutes  = 1_000_000
	trendConcurrency = 8
)

// Trend puts the retained minutes of all agents of an owner together, or of those
// of one account. It is computed from the minute rows; nothing is stored. Sources
// whose latest row is deleted are not counted. More minutes than one trend may
// read are a *monitoring.InvalidError.
func (s Store) Trend(ctx context.Context, owner string, account *Account, span monitoring.Span, now time.Time) (*monitoring.Trend, error) {
	agents, err := s.agents(ctx, owner, account)
	if err != nil {
		return nil, err
	}
	if minutes := int(span.To.Sub(span.From) / time.Minute); len(agents)*minutes > maxTrendMinutes {
		return nil, &monitoring.InvalidError{Field: "range", Rule: fmt.Sprintf("must be shorter for %d sources", len(agents))}
	}
	total := monitoring.NewTrend(span)
	var merging sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(trendConcurrency)
	for _, agent := range agents {
		group.Go(func() error {
			one, err := s.trendOf(ctx, owner, agent, span, now)
			if err != nil {
				return err
			}
			merging.Lock()
			defer merging.Unlock()
			total.Merge(one)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	total.Sort(monitoring.AgentMetrics)
	return total, nil
}

func (s Store) trendOf(ctx context.Context, owner string, source monitoring.Source, span monitoring.Span, now time.Time) (*monitoring.Trend, error) {
	trend := monitoring.NewTrend(span)
	r := MinuteRange{Owner: owner, SourceID: source.ID, From: span.From, To: span.To, Now: now}
	for m, err := range s.minutes(ctx, r, 0, false) {
		if err != nil {
			return nil, err
		}
		if view, shown := source.Project(m); shown {
			trend.Add(view)
		}
	}
	return trend, nil
}
