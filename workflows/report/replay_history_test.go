package report

import (
	"testing"

	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// registered are all workflows of the capability by their type.
var registered = historytest.Workflows{names.DailyReport: DailyReport, names.TargetReport: TargetReport, names.ReportBackfill: ReportBackfill}

// TestRecordedHistoriesReplay runs today's code over histories that yesterday's
// made: what is running must go on after a deployment.
func TestRecordedHistoriesReplay(t *testing.T) { registered.ReplayRecorded(t, len(registered)) }
