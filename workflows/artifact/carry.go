package artifact

import (
	"encoding/json"
	"slices"
	"time"

	"millrace/domain/artifact"
)

// Input starts a lifecycle; Carry is only for its own continuation.
type Input struct {
	Request artifact.Request `json:"request"`
	Carry   *Carry           `json:"carry,omitempty"`

	// unknown tells of a field that nobody knows, in what somebody asks for.
	unknown error
}

// UnmarshalJSON reads the input, and keeps what it does not know for the lifecycle
// to refuse. A carry comes from a lifecycle of any age, and may have anything.
func (in *Input) UnmarshalJSON(body []byte) error {
	type plain Input
	if err := json.Unmarshal(body, (*plain)(in)); err != nil {
		return err
	}
	if in.Carry == nil {
		in.unknown = artifact.DecodeStrict("input", body, new(plain))
	}
	return nil
}

// Carry is the whole state of a lifecycle, which continue-as-new hands on.
type Carry struct {
	State      artifact.State      `json:"state"`
	Since      time.Time           `json:"since"`
	Reason     string              `json:"reason,omitempty"`
	BundleHash string              `json:"bundle_hash"`
	Chain      artifact.Chain      `json:"chain"`
	LastAt     time.Time           `json:"last_at"`
	Settings   Settings            `json:"settings"`
	Decisions  []artifact.Decision `json:"decisions,omitempty"`
	Refusals   []Refusal           `json:"refusals,omitempty"`
	Refused    int                 `json:"refused,omitempty"`
	Runs       []RunInfo           `json:"runs,omitempty"`
	// Handled are the ids of commands that were taken.
	Handled []string `json:"handled,omitempty"`
	// ReviewSince is when the review began, ApprovedAt when it ended well.
	ReviewSince time.Time `json:"review_since,omitzero"`
	ApprovedAt  time.Time `json:"approved_at,omitzero"`
	RemindedAt  time.Time `json:"reminded_at,omitzero"`
	// Requested tells that somebody asked for the run.
	Requested bool `json:"requested,omitempty"`
	// NotBefore holds back the next try of what had to wait.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Ahead tells which run of another version had its turn when it was last asked.
	Ahead string `json:"ahead,omitempty"`
	// Turns is how often the version has asked for its turn to run in vain.
	Turns int `json:"turns,omitempty"`
	// Began tells whether a run of the primary file began.
	Began bool `json:"began,omitempty"`
	// Holder is the run for which HEAD is held.
	Holder string `json:"holder,omitempty"`
	// SafeAt is when a lost script is surely dead.
	SafeAt time.Time `json:"safe_at,omitzero"`
	Undo   *Undo     `json:"undo,omitempty"`
	// Rollout is that of a job of devices, once it began.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Refusal is a command that was not taken.
type Refusal struct {
	At     time.Time     `json:"at"`
	Verb   artifact.Verb `json:"command,omitempty"`
	Actor  string        `json:"actor,omitempty"`
	Reason string        `json:"reason"`
}

// RunInfo is a run as the status shows it.
type RunInfo struct {
	RunID  string        `json:"run_id"`
	Role   artifact.Role `json:"role"`
	Status string        `json:"status"`
	Detail string        `json:"detail,omitempty"`
	At     time.Time     `json:"at"`
}

// Bounds of what is remembered.
const (
	maxRefusals = 50
	// What is kept of a refusal, in bytes.
	maxRefusalActor  = 100
	maxRefusalVerb   = 20
	maxRefusalReason = 500
	maxHandled       = 500
	maxRuns          = 20
)

func remember[T any](list []T, item T, limit int) []T {
	list = append(list, item)
	return slices.Clone(list[max(0, len(list)-limit):])
}

// Status is the answer to the query.
type Status struct {
	ArtifactID string         `json:"artifact_id"`
	Version    int            `json:"version"`
	Kind       artifact.Kind  `json:"kind"`
	Author     string         `json:"author"`
	State      artifact.State `json:"state"`
	Since      time.Time      `json:"since"`
	BundleHash string         `json:"bundle_hash"`
	Tally      artifact.Tally `json:"tally"`
	WaitingFor string         `json:"waiting_for"`
	// Until is when the version does something by itself: remind, expire, run, archive.
	Until time.Time `json:"until,omitzero"`
	// ExpiresAt is when the draft, the review or the approval ends.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Reason is why the version came to its state, as its transition tells.
	Reason   string    `json:"reason,omitempty"`
	Refused  int       `json:"refused"`
	Refusals []Refusal `json:"refusals"`
	Runs     []RunInfo `json:"runs"`
	Undo     *Undo     `json:"undo,omitempty"`
	Rollout  *Rollout  `json:"rollout,omitempty"`
}
