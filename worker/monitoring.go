package main

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/monitoring"
	storage "millrace/storage/monitoring"
	workflows "millrace/workflows/monitoring"
	"millrace/workflows/names"
)

// monitoringSettings say how the saved copies of tokens are sealed.
type monitoringSettings struct {
	TokenKeysFile string `help:"Key ring of the saved copies of tokens (JSON); empty reads MILLRACE_TOKEN_KEYS. Re-keying needs it." env:"MILLRACE_TOKEN_KEYS_FILE" placeholder:"FILE"`
}

// registerMonitoring hosts the monitoring capability.
func registerMonitoring(h *host, d dependencies) {
	rekeyer := activities.Rekeyer{Store: storage.New(d.clients.dynamodb, d.settings.MonitoringTable), Ring: d.keys}
	h.on(names.QueueScheduled, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.RekeyTokens, workflow.RegisterOptions{Name: names.RekeyTokens})
		r.RegisterActivityWithOptions(rekeyer.RekeyBatch, activity.RegisterOptions{Name: workflows.RekeyBatchActivity})
	})
}
