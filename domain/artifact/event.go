package artifact

import "time"

// Event is what a record's payload hash is of. The record keeps it, so that
// everything else that is told of a version can be compared with its chain.
type Event struct {
	From       State     `json:"from"`
	To         State     `json:"to"`
	Reason     string    `json:"reason,omitempty"`
	Run        string    `json:"run,omitempty"`
	BundleHash string    `json:"bundle_hash"`
	Decision   *Decision `json:"decision,omitempty"`
	// Origin is what the version began with; only the first event has it.
	Origin *Origin `json:"origin,omitempty"`
	// Files are the files from now on, where the event gives any.
	Files []File    `json:"files,omitempty"`
	Undo  *UndoMark `json:"undo,omitempty"`
	// ArchivePrefix is where the content went.
	ArchivePrefix string `json:"archive_prefix,omitempty"`
	// Runs tells how all runs of the version had ended when one of its changes of
	// state ended a run or an undo.
	Runs *RunsMark `json:"runs,omitempty"`
}

// Origin is who asked for a version, and who vouched for them.
type Origin struct {
	ArtifactID string    `json:"artifact_id"`
	Author     string    `json:"author"`
	Kind       Kind      `json:"kind"`
	Submission Assurance `json:"submission,omitempty"`
	Claim      Command   `json:"claim,omitzero"`
	Creator    string    `json:"creator,omitempty"`
}

// UndoMark is what an event tells of a compensation.
type UndoMark struct {
	State     string    `json:"state"`
	RunID     string    `json:"run_id,omitempty"`
	Attempts  int       `json:"attempts"`
	Detail    string    `json:"detail,omitempty"`
	StartedAt time.Time `json:"started_at"`
}

// RunsMark is the number of a version's runs, in the order of their ids, and the
// hash of all that is known of them.
type RunsMark struct {
	Count int    `json:"count"`
	Hash  string `json:"hash"`
}
