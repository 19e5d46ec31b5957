package artifact

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Verb is what somebody wants done.
type Verb string

// The verbs. Approve and Reject come through the door decide; the others each
// have a door of their name.
const (
	Create     Verb = "create"
	Replace    Verb = "replace"
	Submit     Verb = "submit"
	Approve    Verb = "approve"
	Reject     Verb = "reject"
	Withdraw   Verb = "withdraw"
	Execute    Verb = "execute"
	Undo       Verb = "compensate"
	ArchiveNow Verb = "archive"
)

// takenIn are the states in which a verb is taken.
var takenIn = map[Verb][]State{
	Replace:    {Draft},
	Submit:     {Draft},
	Approve:    {InReview},
	Reject:     {InReview},
	Withdraw:   {Draft, InReview, Approved},
	Execute:    {Approved},
	Undo:       {Executed, Failed, CompensationFailed},
	ArchiveNow: {Executed, Failed, Compensated, CompensationFailed, Rejected, Withdrawn, Expired, Superseded},
}

// ofAuthor are the verbs that the author alone may use.
var ofAuthor = []Verb{Replace, Submit, Withdraw}

// Assurance says who vouches that an actor said something.
type Assurance string

// The assurances, the strongest first.
const (
	// Signed is by a key that the actor registered.
	Signed Assurance = "signed"
	// Gateway is by the key of the gateway, which authenticated the actor's token.
	Gateway Assurance = "gateway"
	// Unverified is the payload's word alone.
	Unverified Assurance = "unverified"
)

// Command is what an actor wants done about a version. At is when they said so;
// a zero At stands for now and is for unverified commands only.
type Command struct {
	Verb  Verb      `json:"decision,omitempty"`
	Actor string    `json:"actor"`
	At    time.Time `json:"at,omitzero"`
	// BundleHash is the content that is meant; in a Replace the new one.
	BundleHash string `json:"bundle_hash,omitempty"`
	Comment    string `json:"comment,omitempty"`
	// Signature is an armoured SSHSIG over Text.
	Signature string `json:"signature,omitempty"`
}

const (
	maxComment   = 2000
	maxVerb      = 20
	maxSignature = 8 << 10
	// skew is how far the clocks of actors may be off.
	skew = 5 * time.Minute
)

// Text is what is signed: everything that a command means, and nothing that it
// could mean elsewhere.
func (c Command) Text(artifactID string, version int) []byte {
	return fmt.Appendf(nil, "millrace artifact command v1\nartifact: %s\nversion: %d\nbundle_hash: %s\ncommand: %s\nactor: %s\nat: %s\n",
		artifactID, version, c.BundleHash, c.Verb, c.Actor, Timestamp(c.At))
}

// ID tells a command from every other: a second delivery of it has the same. Of
// its signature only the key counts: one signature can be written in many ways,
// and one text be signed again and again.
func (c Command) ID(artifactID string, version int) string {
	by := ""
	if c.Signature != "" {
		var err error
		if by, err = c.SignedBy(); err != nil {
			by = c.Signature // it will be refused
		}
	}
	return HashOf(append(c.Text(artifactID, version), by...))
}

// Check refuses a command that is badly formed.
func (c Command) Check() error {
	if err := CheckActor("actor", c.Actor); err != nil {
		return err
	}
	return c.checkBounds()
}

// checkBounds refuses what is too long to be kept.
func (c Command) checkBounds() error {
	switch {
	case len(c.Verb) > maxVerb:
		return invalid("decision", "is no command")
	case c.BundleHash != "" && CheckHash("bundle_hash", c.BundleHash) != nil:
		return CheckHash("bundle_hash", c.BundleHash)
	case utf8.RuneCountInString(c.Comment) > maxComment || !utf8.ValidString(c.Comment):
		return invalidf("comment", "must be at most %d characters", maxComment)
	case len(c.Signature) > maxSignature:
		return invalid("signature", "must be at most 8 KiB")
	case c.Signature != "" && c.At.IsZero():
		return invalid("at", "is needed in a signed command: it is part of what is signed")
	}
	return nil
}

// Decision is a recorded approval or rejection.
type Decision struct {
	Command

	Assurance Assurance `json:"assurance"`
	// Key is the fingerprint of the key that signed.
	Key string `json:"key,omitempty"`
	// RecordedAt is the time in the item's key.
	RecordedAt time.Time `json:"recorded_at"`
	// SupersededBy is when the actor's later decision was recorded.
	SupersededBy *time.Time `json:"superseded_by,omitempty"`
}

// Standing is what commands about a version are judged by.
type Standing struct {
	State      State
	Author     string
	BundleHash string
	Policy     Policy
	Decisions  []Decision
	// Since is when the version entered its state.
	Since time.Time
	// ExpiresAt is when a review or an approval ends; zero for never.
	ExpiresAt time.Time
	// Undoable tells whether there is anything to undo: a rollback file, and a run
	// that began.
	Undoable bool
}

// Judge refuses a command with a *RefusedError or *InvalidError, or nil to take
// it. The same judgement serves Updates and Signals.
func (s Standing) Judge(c Command, now time.Time) error {
	if err := c.Check(); err != nil {
		return err
	}
	if states := takenIn[c.Verb]; !slices.Contains(states, s.State) {
		return refuse(WhyState, "%s is taken in %s, not in %s", c.Verb, join(states), s.State)
	}
	switch {
	case c.At.After(now.Add(skew)):
		return refuse(WhyFuture, "at %s is after now, %s", Timestamp(c.At), Timestamp(now))
	case !c.At.IsZero() && c.At.Before(s.Since.Add(-skew)):
		return refuse(WhyStale, "at %s is before the version became %s at %s", Timestamp(c.At), s.State, Timestamp(s.Since))
	case !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt) && c.Verb != Withdraw:
		return refuse(WhyExpired, "the review ended at %s", Timestamp(s.ExpiresAt))
	case c.BundleHash != "" && c.BundleHash != s.BundleHash && c.Verb != Replace:
		return refuse(WhyOtherContent, "this version is %s, not %s", s.BundleHash, c.BundleHash)
	case slices.Contains(ofAuthor, c.Verb) && c.Actor != s.Author:
		return refuse(WhyNotAuthor, "only the author, %s, may %s", s.Author, c.Verb)
	}
	switch c.Verb {
	case Approve, Reject:
		return s.judgeDecision(c)
	case Execute:
		if after := s.Policy.ExecuteAfter; after != nil && now.Before(*after) {
			return refuse(WhyTooEarly, "not before %s", Timestamp(*after))
		}
	case Undo:
		if !s.Undoable {
			return refuse(WhyNothing, "there is no rollback file, or no run ever began")
		}
	}
	return nil
}

func (s Standing) judgeDecision(c Command) error {
	switch {
	case c.BundleHash == "":
		return invalid("bundle_hash", "is needed: a decision is about exactly one content")
	case !s.Policy.May(c.Actor):
		return refuse(WhyNotApprover, "%s is not among the approvers", c.Actor)
	case c.Verb == Approve && c.Actor == s.Author && *s.Policy.SeparationOfDuties:
		return refuse(WhyOwnApproval, "the author's own approval does not count")
	}
	for _, d := range slices.Backward(s.Decisions) {
		if d.Actor == c.Actor && !c.At.IsZero() && !c.At.After(d.At) {
			return refuse(WhyStale, "%s decided at %s already, at %s is not after that", c.Actor, Timestamp(d.At), Timestamp(c.At))
		}
	}
	return nil
}

// Accepts tells whether an assurance is enough under the policy; unverified
// commands are taken only where the configuration allows them.
func (p Policy) Accepts(verb Verb, a Assurance, allowUnverified bool) error {
	decision := verb == Approve || verb == Reject
	switch {
	case decision && p.SignedDecisions && a != Signed:
		return refuse(WhyAssurance, "the policy takes decisions signed by the approver's own key only, not %s", a)
	case a == Unverified && !allowUnverified:
		return refuse(WhyAssurance, "nobody vouches for the actor: sign the command or send it through the gateway")
	}
	return nil
}

func join(states []State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
