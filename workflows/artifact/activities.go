// Package artifact has the lifecycle of one version of an artifact: review,
// approval, execution, compensation and archive. The rules are those of
// domain/artifact; the workflow alone writes its version's state. This file
// declares the activities that do the work.
package artifact

import (
	"time"

	"millrace/domain/artifact"
)

// Activity names. Checking a command, committing a step, reading HEAD,
// settling a run and summing up runs are local activities: each is one or two requests to DynamoDB.
const (
	PrepareActivity   = "PrepareArtifact"
	ContentActivity   = "PrepareArtifactContent"
	CreateActivity    = "CreateArtifact"
	CheckActivity     = "CheckArtifactCommand"
	CommitActivity    = "CommitArtifactStep"
	HeadActivity      = "ReadArtifactHead"
	SettleRunActivity = "SettleArtifactRun"
	SumRunsActivity   = "SumArtifactRuns"
	PublishActivity   = "PublishArtifact"
	VerifyActivity    = "VerifyArtifact"
	SupersedeActivity = "SupersedeOlderArtifacts"
	AlertActivity     = "AlertArtifact"
	ArchiveActivity   = "ArchiveArtifact"
	ClearActivity     = "ClearArchivedArtifact"
	ScriptActivity    = "RunArtifactScript"
	HTTPActivity      = "RunArtifactRequest"
)

// Error types of activities and of refused commands; none of them is retried.
const (
	ErrInvalid    = "InvalidInput"
	ErrRefused    = "Refused"
	ErrForbidden  = "Forbidden"
	ErrIntegrity  = "ContentIntegrity"
	ErrConflict   = "Conflict"
	ErrTaken      = "VersionTaken"
	ErrSuperseded = "Superseded"
	ErrBusy       = "Busy"
)

// Settings are the worker's configuration as it was when the lifecycle began.
type Settings struct {
	// ArchiveAfter is how long a settled version stays before it archives itself.
	ArchiveAfter artifact.Duration `json:"archive_after"`
	// SearchAttributes tells whether the namespace has them.
	SearchAttributes bool `json:"search_attributes,omitempty"`
	// Provenance is how much the events of the chain tell: 0 in lifecycles that
	// began before WholeProvenance.
	Provenance int `json:"provenance,omitempty"`
}

// WholeProvenance has events tell of origin, files, undo, archive and runs.
const WholeProvenance = 1

// Prepared is a request that was checked, completed and whose content is stored.
type Prepared struct {
	Spec       artifact.Spec      `json:"spec"`
	Files      []artifact.File    `json:"files"`
	BundleHash string             `json:"bundle_hash"`
	Assurance  artifact.Assurance `json:"assurance"`
	Settings   Settings           `json:"settings"`
}

// ContentRequest stores the content of a draft anew.
type ContentRequest struct {
	ArtifactID string          `json:"artifact_id"`
	Version    int             `json:"version"`
	Spec       artifact.Spec   `json:"spec"`
	Files      []artifact.File `json:"files"`
}

// CreateRequest writes a new version.
type CreateRequest struct {
	Request    artifact.Request   `json:"request"`
	BundleHash string             `json:"bundle_hash"`
	State      artifact.State     `json:"state"`
	Record     artifact.Record    `json:"record"`
	Assurance  artifact.Assurance `json:"assurance"`
	// Creator is the first run of the lifecycle.
	Creator string `json:"creator,omitempty"`
}

// Written is a step as it stands in the store. A workflow task that is lost after
// its local activity has written is done again later, with another clock: what it
// wrote the first time counts.
type Written struct {
	Record artifact.Record `json:"record"`
	Run    string          `json:"run,omitempty"`
}

// CheckRequest asks who vouches for a command.
type CheckRequest struct {
	ArtifactID string           `json:"artifact_id"`
	Version    int              `json:"version"`
	Command    artifact.Command `json:"command"`
	Policy     artifact.Policy  `json:"policy"`
}

// CheckResult is who vouches for a command, and the fingerprint of their key.
type CheckResult struct {
	Assurance artifact.Assurance `json:"assurance"`
	Key       string             `json:"key,omitempty"`
}

// Moves of HEAD that a step can make.
const (
	headApprove = "approve"
	headRun     = "run"
	headUndo    = "undo"
	headRelease = "release"
)

// States of an undo.
const (
	undoRunning = "running"
	undoDone    = "compensated"
	undoFailed  = "failed"
)

// Undo is what a step tells of a compensation.
type Undo struct {
	State     string    `json:"state"`
	RunID     string    `json:"run_id,omitempty"`
	Attempts  int       `json:"attempts"`
	Detail    string    `json:"detail,omitempty"`
	StartedAt time.Time `json:"started_at"`
}

// Step is one change of a version that is written in one transaction.
type Step struct {
	ArtifactID string             `json:"artifact_id"`
	Version    int                `json:"version"`
	Record     artifact.Record    `json:"record"`
	From       artifact.State     `json:"from"`
	To         artifact.State     `json:"to"`
	Reason     string             `json:"reason,omitempty"`
	Decision   *artifact.Decision `json:"decision,omitempty"`
	Earlier    *time.Time         `json:"earlier,omitempty"`
	Head       string             `json:"head,omitempty"`
	Run        string             `json:"run,omitempty"`
	Files      []artifact.File    `json:"files,omitempty"`
	BundleHash string             `json:"bundle_hash,omitempty"`
	// Spec is that of a draft once it is completed.
	Spec          *artifact.Spec `json:"spec,omitempty"`
	Undo          *Undo          `json:"undo,omitempty"`
	ArchivePrefix string         `json:"archive_prefix,omitempty"`
}

// VersionRef names a version.
type VersionRef struct {
	ArtifactID string `json:"artifact_id"`
	Version    int    `json:"version"`
}

// Head is what guards an artifact's versions against each other.
type Head struct {
	LatestVersion   int    `json:"latest_version"`
	ApprovedVersion int    `json:"approved_version"`
	ExecutingRun    string `json:"executing_run,omitempty"`
}

// PublishRequest writes metadata.json, and provenance/{artifact_id}.json when
// the outcome is known.
type PublishRequest struct {
	VersionRef
	Provenance bool `json:"provenance,omitempty"`
}

// VerifyRequest has content, policy and decisions read again before a run.
// Decisions is false before an undo, which needs no approval of its own.
type VerifyRequest struct {
	VersionRef
	BundleHash string `json:"bundle_hash"`
	Decisions  bool   `json:"decisions"`
}

// RunRequest runs a file of a version.
type RunRequest struct {
	VersionRef
	RunID      string        `json:"run_id"`
	Role       artifact.Role `json:"role"`
	BundleHash string        `json:"bundle_hash"`
	WorkflowID string        `json:"workflow_id"`
}

// Statuses of runs.
const (
	RunSucceeded  = "succeeded"
	RunFailed     = "failed"
	RunTimedOut   = "timed_out"
	RunCancelled  = "cancelled"
	RunWorkerLost = "worker_lost"
)

// RunResult is how a run ended.
type RunResult struct {
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code"`
	Detail   string `json:"detail,omitempty"`
}

// SettleRequest asks what became of a run whose activity gave no answer. Status
// is recorded unless the run ended some other way.
type SettleRequest struct {
	VersionRef
	RunID  string `json:"run_id"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// SettleResult is what became of a run; Began is false when it never started.
type SettleResult struct {
	Began  bool      `json:"began"`
	Result RunResult `json:"result"`
}

// AlertRequest raises an alert of the scope artifacts.
type AlertRequest struct {
	VersionRef
	// Reason is a slug such as execution_failed.
	Reason  string         `json:"reason"`
	Danger  bool           `json:"danger,omitempty"`
	State   artifact.State `json:"state"`
	Summary string         `json:"summary"`
	At      time.Time      `json:"at"`
}

// ArchiveRequest copies a version's content to the archive.
type ArchiveRequest struct {
	VersionRef
	SettledAt time.Time `json:"settled_at"`
}

// ArchiveResult is where the content lies now.
type ArchiveResult struct {
	Prefix string `json:"prefix"`
}
