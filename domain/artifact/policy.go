package artifact

import (
	"slices"
	"strings"
	"time"
)

// What follows a failed run.
const (
	Compensate = "compensate"
	Keep       = "keep"
)

// Policy says who must approve and when a version runs. Zero values stand for
// the defaults; Complete fills them in.
type Policy struct {
	// Required is how many must approve: 1 to 10.
	Required int `json:"required,omitempty"`
	// Approvers may decide: actors, and groups as group:name.
	Approvers []string `json:"approvers,omitempty"`
	// Groups has the members of the groups, frozen at submission.
	Groups map[string][]string `json:"groups,omitempty"`
	// Within are groups of which an approver must belong to one as well.
	Within []string `json:"within,omitempty"`
	// SeparationOfDuties keeps the author's own approval from counting.
	SeparationOfDuties *bool `json:"separation_of_duties,omitempty"`
	// RejectionsToReject is how many rejections end the review.
	RejectionsToReject int `json:"rejections_to_reject,omitempty"`
	// ExpiresAfter counts from entering in_review.
	ExpiresAfter Duration `json:"expires_after,omitempty"`
	// DraftExpiresAfter counts from submission as draft.
	DraftExpiresAfter Duration `json:"draft_expires_after,omitempty"`
	// RemindEvery is how often approvers are reminded.
	RemindEvery Duration `json:"remind_every,omitempty"`
	// AutoExecute runs the version as soon as it is approved.
	AutoExecute *bool `json:"auto_execute,omitempty"`
	// ExecuteAfter is the earliest start.
	ExecuteAfter *time.Time `json:"execute_after,omitempty"`
	// SignedDecisions takes decisions with an approver's own signature only.
	SignedDecisions bool `json:"signed_decisions,omitempty"`
	// OnFailure is compensate or keep.
	OnFailure string `json:"on_failure,omitempty"`
}

// Floor is the least that a policy of a kind must ask for. An artifact may ask
// for more, never for less.
type Floor struct {
	Required           int      `json:"required,omitempty"`
	SeparationOfDuties bool     `json:"separation_of_duties,omitempty"`
	Within             []string `json:"within,omitempty"`
	SignedDecisions    bool     `json:"signed_decisions,omitempty"`
}

// Defaults and bounds of policies.
const (
	maxRequired              = 10
	maxApprovers             = 100
	maxMembers               = 500
	defaultExpiresAfter      = 72 * time.Hour
	defaultDraftExpiresAfter = 30 * 24 * time.Hour
	defaultRemindEvery       = 24 * time.Hour
	minExpiry                = time.Minute
	maxExpiry                = 90 * 24 * time.Hour
	minReminder              = time.Minute
)

// GroupNames are the groups that the policy names, sorted.
func (p Policy) GroupNames() []string {
	names := slices.Clone(p.Within)
	for _, approver := range p.Approvers {
		if name, ok := strings.CutPrefix(approver, GroupPrefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Raise fills in what the policy leaves open from the floor of its kind, and
// refuses what it loosens.
func (p Policy) Raise(f Floor) (Policy, error) {
	if p.Required == 0 {
		p.Required = max(1, f.Required)
	}
	if p.SeparationOfDuties == nil {
		p.SeparationOfDuties = new(true)
	}
	if len(p.Within) == 0 {
		p.Within = slices.Clone(f.Within)
	}
	switch {
	case p.Required < f.Required:
		return Policy{}, invalidf("policy.required", "must be at least %d for this kind", f.Required)
	case f.SeparationOfDuties && !*p.SeparationOfDuties:
		return Policy{}, invalid("policy.separation_of_duties", "must stay on for this kind")
	case f.SignedDecisions && !p.SignedDecisions:
		p.SignedDecisions = true
	}
	if len(f.Within) > 0 && slices.ContainsFunc(p.Within, func(g string) bool { return !slices.Contains(f.Within, g) }) {
		return Policy{}, invalidf("policy.within", "must be of %s for this kind", strings.Join(f.Within, ", "))
	}
	return p, nil
}

// Complete fills in the defaults, freezes the members of the groups and refuses
// a policy that breaks a rule or that nobody can satisfy.
func (p Policy) Complete(author string, members map[string][]string, hasRollback bool) (Policy, error) {
	p = p.withDefaults(hasRollback)
	if err := p.check(); err != nil {
		return Policy{}, err
	}
	frozen := map[string][]string{}
	for _, name := range p.GroupNames() {
		group := slices.Compact(slices.Sorted(slices.Values(members[name])))
		if len(group) == 0 {
			return Policy{}, invalidf("policy.approvers", "group %s has no members", name)
		}
		if len(group) > maxMembers {
			return Policy{}, invalidf("policy.approvers", "group %s has more than %d members", name, maxMembers)
		}
		frozen[name] = group
	}
	if p.Groups = frozen; len(frozen) == 0 {
		p.Groups = nil
	}
	if able := p.eligible(author); len(able) < p.Required {
		return Policy{}, invalidf("policy.required", "asks for %d approvals, but only %d may give one: nobody could satisfy it", p.Required, len(able))
	}
	return p, nil
}

// CompletePolicy is Complete for what a request asks. A draft leaves open what is
// to be done on failure, unless its author said it: the files may still change.
func (r Request) CompletePolicy(members map[string][]string) (Policy, error) {
	p, err := r.Spec.Policy.Complete(r.Author, members, Rollbackable(r.Files))
	if err == nil && r.Draft {
		p.OnFailure = r.Spec.Policy.OnFailure
	}
	return p, err
}

// Freeze completes what a draft left open, by its final files.
func (p Policy) Freeze(files []File) Policy { return p.withDefaults(Rollbackable(files)) }

func (p Policy) withDefaults(hasRollback bool) Policy {
	if p.Required == 0 {
		p.Required = 1
	}
	if p.SeparationOfDuties == nil {
		p.SeparationOfDuties = new(true)
	}
	if p.RejectionsToReject == 0 {
		p.RejectionsToReject = 1
	}
	if p.ExpiresAfter == 0 {
		p.ExpiresAfter = Duration(defaultExpiresAfter)
	}
	if p.DraftExpiresAfter == 0 {
		p.DraftExpiresAfter = Duration(defaultDraftExpiresAfter)
	}
	if p.RemindEvery == 0 {
		p.RemindEvery = Duration(defaultRemindEvery)
	}
	if p.AutoExecute == nil {
		p.AutoExecute = new(true)
	}
	if p.OnFailure == "" {
		p.OnFailure = Keep
		if hasRollback {
			p.OnFailure = Compensate
		}
	}
	return p
}

func (p Policy) check() error {
	switch {
	case p.Required < 1 || p.Required > maxRequired:
		return invalidf("policy.required", "must be 1 to %d", maxRequired)
	case len(p.Approvers) == 0 || len(p.Approvers) > maxApprovers:
		return invalidf("policy.approvers", "must name 1 to %d actors or groups", maxApprovers)
	case p.RejectionsToReject < 1 || p.RejectionsToReject > maxRequired:
		return invalidf("policy.rejections_to_reject", "must be 1 to %d", maxRequired)
	case p.ExpiresAfter.Of() < minExpiry || p.ExpiresAfter.Of() > maxExpiry:
		return invalid("policy.expires_after", "must be 1m to 2160h (90 days)")
	case p.DraftExpiresAfter.Of() < minExpiry || p.DraftExpiresAfter.Of() > maxExpiry:
		return invalid("policy.draft_expires_after", "must be 1m to 2160h (90 days)")
	case p.RemindEvery.Of() < minReminder || p.RemindEvery.Of() > maxExpiry:
		return invalid("policy.remind_every", "must be 1m to 2160h (90 days)")
	case p.OnFailure != Compensate && p.OnFailure != Keep:
		return invalid("policy.on_failure", "must be compensate or keep")
	}
	for i, approver := range p.Approvers {
		name, group := strings.CutPrefix(approver, GroupPrefix)
		if slices.Contains(p.Approvers[:i], approver) {
			return invalidf("policy.approvers", "names %s twice", approver)
		}
		if !group && CheckActor("policy.approvers", approver) != nil || group && CheckGroup(name) != nil {
			return invalidf("policy.approvers", "%q is neither an actor nor a group:name", approver)
		}
	}
	for _, name := range p.Within {
		if CheckGroup(name) != nil {
			return invalidf("policy.within", "%q is no group's name", name)
		}
	}
	return nil
}

// May tells whether an actor may decide under the policy.
func (p Policy) May(actor string) bool {
	named := slices.ContainsFunc(p.Approvers, func(approver string) bool {
		name, group := strings.CutPrefix(approver, GroupPrefix)
		return approver == actor || group && slices.Contains(p.Groups[name], actor)
	})
	within := len(p.Within) == 0 || slices.ContainsFunc(p.Within, func(name string) bool { return slices.Contains(p.Groups[name], actor) })
	return named && within
}

// eligible are the actors whose approvals count, sorted.
func (p Policy) eligible(author string) []string {
	var all []string
	for _, approver := range p.Approvers {
		if name, group := strings.CutPrefix(approver, GroupPrefix); group {
			all = append(all, p.Groups[name]...)
			continue
		}
		all = append(all, approver)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(actor string) bool {
		return !p.May(actor) || *p.SeparationOfDuties && actor == author
	})
}

// Tally is how a review stands.
type Tally struct {
	Required   int      `json:"required"`
	Approvals  []string `json:"approvals"`
	Rejections []string `json:"rejections"`
	// Wanted are those who may approve and have not decided.
	Wanted []string `json:"wanted"`
	// Outcome is in_review, approved or rejected.
	Outcome State `json:"outcome"`
}

// Tally counts the decisions on a bundle under a completed policy: each actor's
// last one, for exactly this bundle, by those who may.
func (p Policy) Tally(author, bundleHash string, decisions []Decision) Tally {
	t := Tally{Required: p.Required, Approvals: []string{}, Rejections: []string{}, Wanted: []string{}, Outcome: InReview}
	decided := map[string]bool{}
	for _, d := range slices.Backward(decisions) {
		if decided[d.Actor] || d.BundleHash != bundleHash || !p.May(d.Actor) {
			continue
		}
		decided[d.Actor] = true
		switch {
		case d.Verb == Reject:
			t.Rejections = append(t.Rejections, d.Actor)
		case d.Verb == Approve && (d.Actor != author || !*p.SeparationOfDuties):
			t.Approvals = append(t.Approvals, d.Actor)
		}
	}
	slices.Sort(t.Approvals)
	slices.Sort(t.Rejections)
	for _, actor := range p.eligible(author) {
		if !decided[actor] {
			t.Wanted = append(t.Wanted, actor)
		}
	}
	switch {
	case len(t.Rejections) >= p.RejectionsToReject:
		t.Outcome = Rejected
	case len(t.Approvals) >= p.Required:
		t.Outcome = Approved
	}
	return t
}
