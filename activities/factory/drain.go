package factory

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

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

// heartbeatEvery is how often a drain reports that it lives.
const heartbeatEvery = 15 * time.Second

// finishWithin bounds how long a drain works on what it holds after it stopped
// receiving, so that it ends before its activity's timeout.
const finishWithin = 45 * time.Second

// drain runs for one stretch, or until the activity is cancelled or its worker
// stops; then it receives no more and finishes what it holds.
func (d Drains) drain(ctx context.Context, from queue.Queue, handler queue.Handler, logger *slog.Logger) workflows.DrainResult {
	stop, cancel := context.WithTimeout(ctx, d.Stretch)
	defer cancel()
	work, cancelWork := context.WithTimeout(context.WithoutCancel(ctx), d.Stretch+finishWithin)
	defer cancelWork()
	drainer := &queue.Drainer{Queue: from, Handler: handler, Settings: d.Settings, Logger: logger}
	finished := make(chan struct{})
	go superviseDrain(ctx, cancel, drainer, finished)
	drainer.Run(work, stop)
	close(finished)
	counts := drainer.Counts()
	return workflows.DrainResult{
		Received: counts.Received, Deleted: counts.Deleted, Abandoned: counts.Abandoned, Outages: counts.Outages,
	}
}

// superviseDrain sends heartbeats and passes the worker's stop on.
func superviseDrain(ctx context.Context, stop context.CancelFunc, drainer *queue.Drainer, finished <-chan struct{}) {
	heartbeat := time.NewTicker(heartbeatEvery)
	defer heartbeat.Stop()
	workerStops := activity.GetWorkerStopChannel(ctx)
	for {
		select {
		case <-finished:
			return
		case <-workerStops:
			stop()
			workerStops = nil
		case <-heartbeat.C:
			activity.RecordHeartbeat(ctx, drainer.Counts())
		}
	}
}
