package server

import (
	"context"
	"net/http"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// StatsReader is what the statistics need of the monitoring store.
type StatsReader interface {
	Stats(ctx context.Context, owner string) (monitoringstore.Stats, error)
}

// Stats is how much an owner has.
type Stats struct {
	Tokens int64 `json:"tokens" doc:"Tokens, revoked ones included."`
	Agents int64 `json:"agents" doc:"Sources that are agents."`
}

type statsOutput struct {
	Body Stats
}

// Statistics adds the route of the owner's statistics.
func Statistics(reader StatsReader) Routes {
	return func(r *Router) {
		Handle(r, Operation{
			ID: "get-stats", Method: http.MethodGet, Path: "/v1/stats", Tag: "stats", Scope: monitoring.ScopeRead,
			Summary: "Count what the owner has", Description: "Counted when it is asked for; deleted tokens and sources do not count. Nobody sees another owner's totals.",
		}, func(ctx context.Context, _ *struct{}) (*statsOutput, error) {
			stats, err := reader.Stats(ctx, PrincipalFrom(ctx).Owner)
			if err != nil {
				return nil, err
			}
			return &statsOutput{Body: Stats{Tokens: stats.Tokens, Agents: stats.Agents}}, nil
		})
	}
}
