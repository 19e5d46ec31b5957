package names

// Workflow types of the observability capability.
const (
	SignalRollup    = "SignalRollup"
	SignalReconcile = "SignalReconcile"
)

// Schedule ids of the observability capability.
const (
	ScheduleSignalRollup    = "signal-rollup"
	ScheduleSignalReconcile = "signal-reconcile"
)

// SignalRollupID is the workflow id of a rollup that an operator starts for a
// range, as it was written; both bounds may be empty.
func SignalRollupID(from, to string) string { return "signal-rollup/by-hand/" + from + "/" + to }

// SignalReconcileID is the workflow id of the check of a day that an operator
// starts.
func SignalReconcileID(day string) string { return "signal-reconcile/" + day }
