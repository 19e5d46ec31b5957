package factory

import (
	"context"
	"log/slog"
	"time"

	"millrace/platform/queue"
	workflows "millrace/workflows/factory"
)

// Drains are the activities that take messages from queues.
type Drains struct {
	Telemetry  queue.Queue
	RuleErrors queue.Queue
	Ingester   Ingester
	Observer   Observer
	// Watched are the factories that are refreshed and aggregated; messages of
	// others are taken too, with a warning.
	Watched  []string
	Metrics  *Metrics
	Settings queue.Settings
	// Stretch is how long one activity drains; workflows.DrainStretch in
	// production.
	Stretch time.Duration
	Logger  *slog.Logger
}

// DrainTelemetry takes telemetry messages into the read models for one stretch.
func (d Drains) DrainTelemetry(ctx context.Context, req workflows.DrainRequest) (workflows.DrainResult, error) {
	logger := d.Logger.With("consumer", req.Consumer)
	handler := newTelemetryHandler(d, logger)
	result := d.drain(ctx, d.Telemetry, handler, logger)
	result.Outcomes = handler.totals()
	return result, nil
}

// drain runs for one stretch.
func (d Drains) drain(ctx context.Context, from queue.Queue, handler queue.Handler, logger *slog.Logger) workflows.DrainResult {
	drainer := &queue.Drainer{Queue: from, Handler: handler, Settings: d.Settings, Logger: logger}
	counts := drainer.RunActivity(ctx, d.Stretch)
	return workflows.DrainResult{
		Received: counts.Received, Deleted: counts.Deleted, Abandoned: counts.Abandoned, Outages: counts.Outages,
	}
}
