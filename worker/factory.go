package main

import (
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/factory"
	"millrace/platform/queue"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// registerFactory hosts the factory capability.
func registerFactory(h *host, d dependencies) {
	store := factoryStore(d)
	ingest := factoryIngest(d, store)
	h.on(names.QueueTelemetry, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.TelemetryIngest, workflow.RegisterOptions{Name: names.TelemetryIngest})
		r.RegisterActivityWithOptions(ingest.DrainTelemetry, activity.RegisterOptions{Name: workflows.DrainTelemetryActivity})
	})
}

func factoryStore(d dependencies) storage.Store {
	return storage.Store{
		Table:      storage.StatusTable(d.clients.dynamodb, d.settings.FactoryStatusTable),
		Bucket:     objects.Bucket{Client: d.clients.s3, Name: d.settings.DataBucket},
		HistoryTTL: d.settings.Retention.HistoryTTL,
	}
}

func factoryIngest(d dependencies, store storage.Store) activities.Drains {
	return activities.Drains{
		Telemetry:  queue.Queue{Client: d.clients.sqs, URL: d.settings.TelemetryQueueURL},
		RuleErrors: queue.Queue{Client: d.clients.sqs, URL: d.settings.RuleErrorsQueueURL},
		Ingester:   activities.Ingester{Store: store, Now: time.Now},
		Metrics:    activities.NewMetrics(d.registry),
		Stretch:    workflows.DrainStretch,
		Logger:     d.logger,
	}
}
