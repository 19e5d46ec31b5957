package artifact

import (
	"time"

	"millrace/domain/artifact"
)

// StoredFile is a file of a version with where it lies.
type StoredFile struct {
	Role        artifact.Role `json:"role"`
	Filename    string        `json:"filename"`
	Key         string        `json:"key"`
	ContentHash string        `json:"content_hash"`
	S3VersionID string        `json:"s3_version_id,omitempty"`
	Size        int64         `json:"size"`
}

// File is the file as a request names it.
func (f StoredFile) File() artifact.File {
	return artifact.File{Role: f.Role, Filename: f.Filename, ContentHash: f.ContentHash, S3VersionID: f.S3VersionID, Size: f.Size}
}

// Placed are the files of a version with the keys at which they lie.
func Placed(id string, version int, files []artifact.File) []StoredFile {
	var stored []StoredFile
	for _, f := range files {
		stored = append(stored, StoredFile{
			Role: f.Role, Filename: f.Filename, Key: ContentKey(id, version, f.StoredName()),
			ContentHash: f.ContentHash, S3VersionID: f.S3VersionID, Size: f.Size,
		})
	}
	return stored
}

// Artifact is one version of an artifact.
type Artifact struct {
	common

	Kind       artifact.Kind  `json:"kind"`
	Author     string         `json:"author"`
	Reason     string         `json:"reason,omitempty"`
	State      artifact.State `json:"state"`
	StateSince time.Time      `json:"state_since"`
	Spec       artifact.Spec  `json:"spec"`
	Files      []StoredFile   `json:"files"`
	BundleHash string         `json:"bundle_hash"`
	// SpecHash is the hash of spec.json.
	SpecHash string `json:"spec_hash,omitempty"`
	// ChainLength and ChainLast are the end of the provenance chain.
	ChainLength int    `json:"chain_length"`
	ChainLast   string `json:"chain_last"`
	// Submission is who vouched for the author.
	Submission artifact.Assurance `json:"submission,omitempty"`
	Claim      artifact.Command   `json:"claim,omitzero"`
	// Creator is the run of the workflow that wrote the version first.
	Creator string `json:"creator,omitempty"`
	// SettledAt is when the outcome became known; its month names the archive.
	SettledAt *time.Time `json:"settled_at,omitempty"`
	// ArchivePrefix is where the content lies once archived.
	ArchivePrefix string `json:"archive_prefix,omitempty"`
	MetadataHash  string `json:"metadata_hash,omitempty"`
	// MetadataChain is the end of the chain that metadata.json tells of.
	MetadataChain string `json:"metadata_chain,omitempty"`
	// Compensates names the version that this one undoes.
	Compensates string `json:"compensates,omitempty"`
}

// Head is the one item per artifact that guards its versions against each other.
type Head struct {
	LatestVersion   int    `json:"latest_version"`
	ApprovedVersion int    `json:"approved_version"`
	ExecutingRun    string `json:"executing_run"`
	// RanVersion is the newest version that ran; 0 for none, and where none ran
	// since this is written down.
	RanVersion int `json:"ran_version"`
	// ProvenanceHash is that of the provenance document, of which this is the
	// revision and the number of records.
	ProvenanceHash     string `json:"provenance_hash"`
	ProvenanceRevision int    `json:"provenance_revision"`
	ProvenanceLinks    int    `json:"provenance_links"`
}

// Transition is one change of state.
type Transition struct {
	common

	TransitionID string         `json:"transition_id"`
	From         artifact.State `json:"from"`
	To           artifact.State `json:"to"`
	Actor        string         `json:"actor"`
	Reason       string         `json:"reason,omitempty"`
}

// Approval is one decision.
type Approval struct {
	common
	artifact.Decision
}

// Provenance is one link of the chain.
type Provenance struct {
	common
	artifact.Record
}

// Execution is one run.
type Execution struct {
	common
	Run
}

// RunStatus says how a run stands.
type RunStatus string

// The statuses of runs.
const (
	Running    RunStatus = "running"
	Succeeded  RunStatus = "succeeded"
	RunFailed  RunStatus = "failed"
	TimedOut   RunStatus = "timed_out"
	Cancelled  RunStatus = "cancelled"
	WorkerLost RunStatus = "worker_lost"
	// NeverBegan stands where a run may not begin any more.
	NeverBegan RunStatus = "never_began"
)

// Run is what is known of one run.
type Run struct {
	RunID      string        `json:"run_id"`
	Role       artifact.Role `json:"role"`
	Kind       artifact.Kind `json:"kind"`
	WorkflowID string        `json:"workflow_id,omitempty"`
	// FactoryID is where a job ran; empty for what runs at a worker.
	FactoryID  string     `json:"factory_id,omitempty"`
	Status     RunStatus  `json:"status"`
	ExitCode   int        `json:"exit_code"`
	Detail     string     `json:"detail,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	DurationMS int64      `json:"duration_ms"`
	// ContentHashes are those of output.json, stdout.log and stderr.log.
	ContentHashes map[string]string `json:"content_hashes,omitempty"`
	Truncated     bool              `json:"truncated,omitempty"`
}

// CompensationState says how an undo stands.
type CompensationState string

// The states of compensations.
const (
	CompensationRunning CompensationState = "running"
	CompensationDone    CompensationState = "compensated"
	CompensationFailed  CompensationState = "failed"
)

// Compensation is the undo of a version.
type Compensation struct {
	common

	CompArtifactID string            `json:"comp_artifact_id"`
	State          CompensationState `json:"state"`
	RunID          string            `json:"run_id,omitempty"`
	Attempts       int               `json:"attempts"`
	Detail         string            `json:"detail,omitempty"`
}
