package artifact

import (
	"time"

	"millrace/domain/artifact"
)

// Activities of rollouts. All but sending are local activities: a few requests
// to DynamoDB each.
const (
	// SendJobActivity publishes a job document to a factory's device.
	SendJobActivity = "SendArtifactJob"
	// LockActivity takes or renews the locks of factories.
	LockActivity = "LockArtifactFactories"
	// UnlockActivity gives the locks of factories free.
	UnlockActivity = "UnlockArtifactFactories"
	// ReadRunActivity reads how a run stands.
	ReadRunActivity = "ReadArtifactRun"
	// HealthActivity reads how factories are.
	HealthActivity = "ReadFactoryHealth"
)

// ErrSentBefore is the error type of a job that its factory had before under
// another run id, by a lifecycle that was set back since.
const ErrSentBefore = "SentBefore"

// JobResultSignal tells a lifecycle how a device's job ended; its payload is a
// JobResult. It is only a hint, for anybody may signal: the Execution item is read
// before it counts. A second one, one for a run that is settled and one for a run
// that is not known change nothing.
const JobResultSignal = "job_result"

// JobRequest asks for a file of a version to be sent to one factory as a job.
// The same request twice sends the same job again: a device does a run id once.
type JobRequest struct {
	VersionRef
	RunID      string        `json:"run_id"`
	Role       artifact.Role `json:"role"`
	BundleHash string        `json:"bundle_hash"`
	WorkflowID string        `json:"workflow_id"`
	FactoryID  string        `json:"factory_id"`
}

// JobSent tells when a job was handed to the broker. The time that the device has
// for it counts from then.
type JobSent struct {
	SentAt time.Time `json:"sent_at"`
}

// JobResult is how a device says that its job ended.
type JobResult struct {
	RunID     string `json:"run_id"`
	FactoryID string `json:"factory_id"`
	// Status is RunSucceeded or RunFailed.
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code"`
	Detail   string `json:"detail,omitempty"`
	// FinishedAt is by the device's clock, as the times of its telemetry are.
	FinishedAt time.Time `json:"finished_at"`
}

// RunRef names a run of a version.
type RunRef struct {
	VersionRef
	RunID string `json:"run_id"`
}

// RunEnd is how a run stands; Ended is false for one that has not begun, or still
// runs.
type RunEnd struct {
	Ended  bool      `json:"ended"`
	Result RunResult `json:"result"`
	// FinishedAt is by the clock of whoever ran it, and not long before it was sent.
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// LockRequest asks for the locks of factories, or renews them for their owner.
type LockRequest struct {
	FactoryIDs []string `json:"factory_ids"`
	// Owner is the workflow id of the lifecycle.
	Owner string `json:"owner"`
	// Lease is how long the locks are held unless they are renewed.
	Lease artifact.Duration `json:"lease"`
}

// LockResult tells which factory's lock another owner has; an empty FactoryID
// means that all locks are held.
type LockResult struct {
	FactoryID string    `json:"factory_id,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Until     time.Time `json:"until,omitzero"`
}

// UnlockRequest gives locks free that the owner still has.
type UnlockRequest struct {
	FactoryIDs []string `json:"factory_ids"`
	Owner      string   `json:"owner"`
}

// HealthRequest asks how factories are.
type HealthRequest struct {
	FactoryIDs []string `json:"factory_ids"`
}

// HealthResult is how the factories are by their LATEST, in the order of the
// request.
type HealthResult struct {
	Factories []artifact.Health `json:"factories"`
}
