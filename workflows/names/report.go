package names

// Workflow types of the daily report.
const (
	DailyReport    = "DailyReport"
	TargetReport   = "TargetReport"
	ReportBackfill = "ReportBackfill"
)

// ScheduleDailyReport is the schedule of DailyReport.
const ScheduleDailyReport = "daily-report"

// DailyReportID is the workflow id of the report on a local day, yyyy-mm-dd,
// that an operator starts.
func DailyReportID(date string) string { return ScheduleDailyReport + "/" + date }

// TargetReportID is the workflow id of the report on one target of a local day.
// Whoever starts it, it is the only one that writes this report.
func TargetReportID(date, target string) string { return "target-report/" + date + "/" + target }

// ReportBackfillID is the workflow id of a backfill; name is the operator's.
func ReportBackfillID(name string) string { return "report-backfill/" + name }
