package main

import (
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	alerts "millrace/activities/alert"
	activities "millrace/activities/observability"
	storage "millrace/storage/observability"
	"millrace/workflows/names"
	workflows "millrace/workflows/observability"
)

// registerObservability hosts the counting of signals, the judging of alert rules
// and the checks.
func registerObservability(h *host, d dependencies) {
	store := storage.New(d.clients.dynamodb, d.settings.GovernanceTable)
	metrics := activities.NewMetrics(d.registry)
	raiser := &alerts.Raiser{Temporal: d.temporal, Now: time.Now}
	drainer := activities.Drainer{Store: store, Raiser: raiser, Metrics: metrics, Now: time.Now, Logger: d.logger}
	evaluator := activities.Evaluator{Store: store, Raiser: raiser, Metrics: metrics, Logger: d.logger}
	reconciler := activities.Reconciler{Store: store, Raiser: raiser, Metrics: metrics, Now: time.Now, Logger: d.logger}
	h.on(names.QueueScheduled, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.SignalRollup, workflow.RegisterOptions{Name: names.SignalRollup})
		r.RegisterWorkflowWithOptions(workflows.SignalReconcile, workflow.RegisterOptions{Name: names.SignalReconcile})
		r.RegisterActivityWithOptions(drainer.FindPendingShards, activity.RegisterOptions{Name: workflows.FindPendingActivity})
		r.RegisterActivityWithOptions(drainer.DrainSignals, activity.RegisterOptions{Name: workflows.DrainSignalsActivity})
		r.RegisterActivityWithOptions(evaluator.EvaluateAlertRules, activity.RegisterOptions{Name: workflows.EvaluateRulesActivity})
		r.RegisterActivityWithOptions(reconciler.ReconcileSignals, activity.RegisterOptions{Name: workflows.ReconcileDayActivity})
	})
}
