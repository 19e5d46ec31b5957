// Package names has the names that programs, workflows and operators share:
// task queues, workflow types, workflow ids and schedule ids.
package names

import "fmt"

// Task queues.
const (
	QueueArtifacts = "artifacts"
	QueueScripts   = "scripts"
	QueueTelemetry = "telemetry"
	QueueScheduled = "scheduled"
	QueueAlerts    = "alerts"
	QueueReports   = "reports"
)

// Workflow types.
const (
	TelemetryIngest = "TelemetryIngest"
	RuleErrorDrain  = "RuleErrorDrain"
	FactoryRefresh  = "FactoryRefresh"
	GraphAggregate  = "GraphAggregate"
	RawReconcile    = "RawReconcile"
	RawReplay       = "RawReplay"
	RekeyTokens     = "RekeyTokens"
)

// Schedule ids.
const (
	ScheduleFactoryRefresh = "factory-refresh"
	ScheduleGraphAggregate = "graph-aggregate"
	ScheduleRawReconcile   = "raw-reconcile"
)

// TelemetryIngestID is the workflow id of consumer n.
func TelemetryIngestID(n int) string { return fmt.Sprintf("telemetry-ingest/%d", n) }

// RuleErrorDrainID is the workflow id of the one drain of failed IoT rules.
const RuleErrorDrainID = "rule-error-drain/0"

// RawReplayID is the workflow id of a replay of one factory from a time on.
func RawReplayID(factoryID, from string) string {
	return fmt.Sprintf("raw-replay/%s/%s", factoryID, from)
}

// RekeyTokensID is the workflow id of the re-encryption under a key.
func RekeyTokensID(keyID string) string { return "rekey-tokens/" + keyID }
