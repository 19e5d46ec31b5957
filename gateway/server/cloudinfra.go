package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/monitoring"
)

// CloudInfraReader is what the cloud infrastructure's routes need of its store.
type CloudInfraReader interface {
	Latest(ctx context.Context) (*cloudinfra.Latest, error)
	History(ctx context.Context, track cloudinfra.Track, from, to time.Time, limit int) ([]cloudinfra.History, error)
}

type cloudInfraOutput struct {
	Body cloudinfra.View
}

type cloudInfraHistoryInput struct {
	Window string           `query:"window" enum:"1h,6h,24h" default:"1h" doc:"How far back to look. The fast track is kept for 6 hours, the slow one for 24."`
	Track  cloudinfra.Track `query:"track" enum:"fast,slow" default:"fast" doc:"Which half."`
	Limit  int              `query:"limit" minimum:"1" maximum:"2000" default:"500" doc:"Greatest number of elements, the newest."`
}

type cloudInfraHistoryOutput struct {
	Body []cloudinfra.History
}

type cloudInfraRoutes struct {
	reader CloudInfraReader
	now    func() time.Time
}

// CloudInfra adds the reads of the cloud infrastructure.
func CloudInfra(reader CloudInfraReader, now func() time.Time) Routes {
	c := cloudInfraRoutes{reader: reader, now: now}
	return func(r *Router) {
		Handle(r, Operation{
			ID: "get-cloud-infra", Method: http.MethodGet, Path: "/v1/cloud-infra", Tag: "cloud-infra", Scope: monitoring.ScopeRead,
			Summary: "Read the state of the cloud infrastructure",
			Description: "Whether a half is stale is decided now: a stale one is unknown in all its sections. " +
				"Before any collector ran the answer says available: false.",
		}, c.get)
		Handle(r, Operation{
			ID: "get-cloud-infra-history", Method: http.MethodGet, Path: "/v1/cloud-infra/history", Tag: "cloud-infra", Scope: monitoring.ScopeRead,
			Summary: "Read the history of the cloud infrastructure", Description: "The stored items of one half as they are, oldest first.",
		}, c.history)
	}
}

func (c cloudInfraRoutes) get(ctx context.Context, _ *struct{}) (*cloudInfraOutput, error) {
	latest, err := c.reader.Latest(ctx)
	if err != nil {
		return nil, err
	}
	return &cloudInfraOutput{Body: cloudinfra.ViewOf(latest, c.now())}, nil
}

func (c cloudInfraRoutes) history(ctx context.Context, in *cloudInfraHistoryInput) (*cloudInfraHistoryOutput, error) {
	window, err := time.ParseDuration(in.Window)
	if err != nil {
		return nil, invalidInput("query.window", "must be 1h, 6h or 24h")
	}
	now := c.now()
	items, err := c.reader.History(ctx, in.Track, now.Add(-window), now.Add(clockAhead), in.Limit)
	if err != nil {
		return nil, err
	}
	return &cloudInfraHistoryOutput{Body: items}, nil
}

// clockAhead is how far a collector's clock may run ahead of the gateway's.
const clockAhead = time.Minute
