package server

import (
	"time"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// ArtifactPage is a page of a list.
type ArtifactPage[T any] struct {
	Items      []T    `json:"items" nullable:"false"`
	NextCursor string `json:"nextCursor,omitempty" doc:"Leads to the next page; absent at the end."`
}

type pageOutput[T any] struct{ Body ArtifactPage[T] }

// ArtifactItem is what every item of an artifact has.
type ArtifactItem struct {
	ArtifactID string    `json:"artifact_id"`
	Version    int       `json:"version"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// ArtifactVersion is one version: who asked for what and why, and how it stands.
type ArtifactVersion struct {
	ArtifactItem

	Kind          artifact.Kind        `json:"kind"`
	Author        string               `json:"author"`
	Submission    artifact.Assurance   `json:"submission,omitempty" doc:"Who vouched for the author."`
	Reason        string               `json:"reason,omitempty"`
	State         artifact.State       `json:"state"`
	StateSince    time.Time            `json:"state_since"`
	Spec          artifact.Spec        `json:"spec" doc:"How it runs and who must approve it; part of what is approved."`
	Files         []storage.StoredFile `json:"files" nullable:"false"`
	BundleHash    string               `json:"bundle_hash" doc:"What a decision is about."`
	ChainLength   int                  `json:"chain_length"`
	ChainLast     string               `json:"chain_last"`
	SettledAt     *time.Time           `json:"settled_at,omitempty"`
	ArchivePrefix string               `json:"archive_prefix,omitempty"`
	MetadataHash  string               `json:"metadata_hash,omitempty"`
	Compensates   string               `json:"compensates,omitempty"`
}

func versionView(v storage.Artifact) ArtifactVersion {
	return ArtifactVersion{
		ArtifactItem: ArtifactItem{v.ArtifactID, v.Version, v.CreatedAt, v.UpdatedAt},
		Kind:         v.Kind, Author: v.Author, Submission: v.Submission, Reason: v.Reason, State: v.State, StateSince: v.StateSince,
		Spec: v.Spec, Files: v.Files, BundleHash: v.BundleHash, ChainLength: v.ChainLength, ChainLast: v.ChainLast,
		SettledAt: v.SettledAt, ArchivePrefix: v.ArchivePrefix, MetadataHash: v.MetadataHash, Compensates: v.Compensates,
	}
}

// ArtifactReview is what reviewers see of a version.
type ArtifactReview struct {
	Artifact  ArtifactVersion `json:"artifact"`
	TotalSize int64           `json:"total_size" doc:"Bytes of all files together."`
	Tally     artifact.Tally  `json:"tally"`
	// LastExecuted is the newest older version whose run succeeded; 0 for none.
	LastExecuted int                   `json:"last_executed" doc:"The newest older version that was executed; 0 for none. The route diff compares with it."`
	Undo         *ArtifactCompensation `json:"undo,omitempty"`
}

// ArtifactTransition is one change of state.
type ArtifactTransition struct {
	ArtifactItem

	TransitionID string         `json:"transition_id"`
	From         artifact.State `json:"from"`
	To           artifact.State `json:"to"`
	Actor        string         `json:"actor"`
	Reason       string         `json:"reason,omitempty"`
}

func transitionView(t storage.Transition) ArtifactTransition {
	return ArtifactTransition{
		ArtifactItem: ArtifactItem{t.ArtifactID, t.Version, t.CreatedAt, t.UpdatedAt},
		TransitionID: t.TransitionID, From: t.From, To: t.To, Actor: t.Actor, Reason: t.Reason,
	}
}

// ArtifactApproval is one recorded decision.
type ArtifactApproval struct {
	ArtifactItem
	artifact.Decision
}

func approvalView(a storage.Approval) ArtifactApproval {
	return ArtifactApproval{ArtifactItem: ArtifactItem{a.ArtifactID, a.Version, a.CreatedAt, a.UpdatedAt}, Decision: a.Decision}
}

// ArtifactRun is one run.
type ArtifactRun struct {
	ArtifactItem
	storage.Run
}

func runView(e storage.Execution) ArtifactRun {
	return ArtifactRun{ArtifactItem: ArtifactItem{e.ArtifactID, e.Version, e.CreatedAt, e.UpdatedAt}, Run: e.Run}
}

// ArtifactCompensation is the undo of a version.
type ArtifactCompensation struct {
	ArtifactItem

	CompArtifactID string                    `json:"comp_artifact_id"`
	State          storage.CompensationState `json:"state"`
	RunID          string                    `json:"run_id,omitempty"`
	Attempts       int                       `json:"attempts"`
	Detail         string                    `json:"detail,omitempty"`
}

func undoView(c storage.Compensation) ArtifactCompensation {
	return ArtifactCompensation{
		ArtifactItem:   ArtifactItem{c.ArtifactID, c.Version, c.CreatedAt, c.UpdatedAt},
		CompArtifactID: c.CompArtifactID, State: c.State, RunID: c.RunID, Attempts: c.Attempts, Detail: c.Detail,
	}
}

// ArtifactRecord is one link of a version's provenance chain.
type ArtifactRecord struct {
	Step        string    `json:"step"`
	Actor       string    `json:"actor"`
	At          time.Time `json:"at"`
	Subject     string    `json:"subject"`
	PayloadHash string    `json:"payload_hash" doc:"SHA-256 over the canonical JSON of event."`
	Event       any       `json:"event,omitempty" doc:"What happened."`
	Prev        string    `json:"prev,omitempty"`
	Hash        string    `json:"hash"`
}

func recordView(r artifact.Record) ArtifactRecord {
	view := ArtifactRecord{Step: r.Step, Actor: r.Actor, At: r.At, Subject: r.Subject, PayloadHash: r.PayloadHash, Prev: r.Prev, Hash: r.Hash}
	if r.Event != nil {
		view.Event = r.Event
	}
	return view
}

// listOf is a page of the views of items.
func listOf[T, V any](view func(T) V, items []T, next string, err error) (*pageOutput[V], error) {
	if err != nil {
		return nil, artifactProblem("", err)
	}
	page := ArtifactPage[V]{Items: []V{}, NextCursor: next}
	for _, item := range items {
		page.Items = append(page.Items, view(item))
	}
	return &pageOutput[V]{Body: page}, nil
}
