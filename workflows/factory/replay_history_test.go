package factory

import (
	"testing"

	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// registered are all workflows of the capability by their type.
var registered = historytest.Workflows{
	names.TelemetryIngest: TelemetryIngest, names.RuleErrorDrain: RuleErrorDrain,
	names.FactoryRefresh: FactoryRefresh, names.GraphAggregate: GraphAggregate,
	names.RawReconcile: RawReconcile, names.RawReplay: RawReplay,
}

// TestRecordedHistoriesReplay runs today's code over histories that yesterday's
// made: what is running must go on after a deployment.
func TestRecordedHistoriesReplay(t *testing.T) { registered.ReplayRecorded(t, len(registered)) }
