package artifact

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// SweepActivity is the activity of ArtifactArchive.
const SweepActivity = "SweepArtifacts"

// SweepRequest asks for what lifecycles missed to be archived.
type SweepRequest struct {
	// DryRun tells what would be done and does nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// SweepReport is what a sweep did, or would do.
type SweepReport struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Settled counts versions whose workflow was closed before they were settled, and
	// Settlements tells of the first hundred what became of them.
	Settled     int      `json:"settled,omitempty"`
	Settlements []string `json:"settlements,omitempty"`
	// Archived are versions whose workflow had ended without archiving them.
	Archived []string `json:"archived"`
	// Cleared counts archived versions whose originals were deleted, or whose
	// snapshots were written, because a crash had prevented it.
	Cleared int `json:"cleared"`
	// Orphaned counts objects of no version that were deleted, and Orphans names the
	// first hundred.
	Orphaned int      `json:"orphaned,omitempty"`
	Orphans  []string `json:"orphans,omitempty"`
	// Cooled counts runs whose files moved to STANDARD_IA.
	Cooled int `json:"cooled"`
	// Failed are versions that could not be archived, with the reason.
	Failed []string `json:"failed,omitempty"`
}

// sweepOptions let a sweep take half a day, with a heartbeat for each version. A
// sweep that is done again finds less to do.
var sweepOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 12 * time.Hour,
	HeartbeatTimeout:    2 * time.Minute,
	Summary:             "Archive what lifecycles missed",
	RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Minute, MaximumAttempts: 20},
}

// ArtifactArchive settles and archives what lifecycles that ended early did not,
// once a day.
func ArtifactArchive(ctx workflow.Context, in SweepRequest) (SweepReport, error) {
	var report SweepReport
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, sweepOptions), SweepActivity, in).Get(ctx, &report)
	return report, err
}
