package main

import (
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/factory"
	"millrace/platform/queue"
	"millrace/platform/queueage"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// registerFactory hosts the factory capability.
func registerFactory(h *host, d dependencies) {
	store := factoryStore(d)
	ingest, replayer := factoryIngest(d, store), factoryReplayer(d, store)
	ruleErrors := factoryRuleErrors(d, ingest)
	refresher, aggregator, reconciler := factoryRefresher(d, store), factoryAggregator(d, store), factoryReconciler(d, store)
	h.on(names.QueueTelemetry, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.TelemetryIngest, workflow.RegisterOptions{Name: names.TelemetryIngest})
		r.RegisterWorkflowWithOptions(workflows.RuleErrorDrain, workflow.RegisterOptions{Name: names.RuleErrorDrain})
		r.RegisterWorkflowWithOptions(workflows.RawReplay, workflow.RegisterOptions{Name: names.RawReplay})
		r.RegisterActivityWithOptions(ingest.DrainTelemetry, activity.RegisterOptions{Name: workflows.DrainTelemetryActivity})
		r.RegisterActivityWithOptions(ruleErrors.DrainRuleErrors, activity.RegisterOptions{Name: workflows.DrainRuleErrorsActivity})
		r.RegisterActivityWithOptions(replayer.ReplayRaw, activity.RegisterOptions{Name: workflows.ReplayRawActivity})
		r.RegisterActivityWithOptions(replayer.RestoreLatestState, activity.RegisterOptions{Name: workflows.RestoreLatestStateActivity})
	})
	h.on(names.QueueScheduled, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.FactoryRefresh, workflow.RegisterOptions{Name: names.FactoryRefresh})
		r.RegisterWorkflowWithOptions(workflows.GraphAggregate, workflow.RegisterOptions{Name: names.GraphAggregate})
		r.RegisterActivityWithOptions(refresher.RefreshFactories, activity.RegisterOptions{Name: workflows.RefreshFactoriesActivity})
		r.RegisterWorkflowWithOptions(workflows.RawReconcile, workflow.RegisterOptions{Name: names.RawReconcile})
		r.RegisterActivityWithOptions(aggregator.AggregateGraphs, activity.RegisterOptions{Name: workflows.AggregateGraphsActivity})
		r.RegisterActivityWithOptions(reconciler.PlanReconcile, activity.RegisterOptions{Name: workflows.PlanReconcileActivity})
		r.RegisterActivityWithOptions(reconciler.ReconcileFactory, activity.RegisterOptions{Name: workflows.ReconcileFactoryActivity})
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
		Observer:   d.alerting.observer,
		Watched:    d.settings.FactoryIDs,
		Metrics:    activities.NewMetrics(d.registry),
		Stretch:    workflows.DrainStretch,
		Logger:     d.logger,
	}
}

func factoryRuleErrors(d dependencies, ingest activities.Drains) activities.RuleErrorDrains {
	return activities.RuleErrorDrains{Drains: ingest, JobResults: queue.Queue{Client: d.clients.sqs, URL: d.settings.JobResultsQueueURL}}
}

func factoryReplayer(d dependencies, store storage.Store) activities.Replayer {
	return activities.Replayer{Store: store, Now: time.Now, Logger: d.logger}
}

func factoryReconciler(d dependencies, store storage.Store) activities.Reconciler {
	age := queueage.Source{Client: d.clients.cloudwatch, QueueURL: d.settings.TelemetryQueueURL, Now: time.Now}
	return activities.Reconciler{
		OldestAge: age.Age,
		Store:     store, Telemetry: queue.Queue{Client: d.clients.sqs, URL: d.settings.TelemetryQueueURL},
		FactoryIDs: d.settings.FactoryIDs, Now: time.Now, Logger: d.logger,
	}
}

func factoryRefresher(d dependencies, store storage.Store) activities.Refresher {
	return activities.Refresher{Store: store, Factories: d.settings.FactoryIDs, Observer: d.alerting.observer, Now: time.Now, Logger: d.logger}
}

func factoryAggregator(d dependencies, store storage.Store) activities.Aggregator {
	return activities.Aggregator{
		Store: store, Factories: d.settings.FactoryIDs, Rules: d.settings.Retention.graphRules(), Now: time.Now, Logger: d.logger,
	}
}
