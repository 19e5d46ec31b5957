package artifact

import (
	"errors"
	"fmt"
	"time"

	"millrace/domain/artifact"
)

// story is what a version's chain tells: the items as they must be.
type story struct {
	item        Artifact
	transitions []Transition
	approvals   []Approval
	// undo is the last step of a compensation, nil without one.
	undo *Step
	// holder is the run for which the version holds HEAD.
	holder        string
	approved, ran bool
	// runs are all runs up to the end of the last run or undo.
	runs artifact.RunsMark
}

// tell follows a chain from event to event. What the item alone has, its spec,
// is taken from it: the bundle hash is that of files and spec.
func (d Dossier) tell() (story, error) {
	v := d.Artifact
	end, err := artifact.VerifyChain(v.Version, d.Records)
	switch {
	case err != nil:
		return story{}, err
	case len(d.Records) == 0 || end.Last != v.ChainLast || end.Length != v.ChainLength:
		return story{}, errors.New("the chain does not end where the item says")
	}
	var s story
	for i, r := range d.Records {
		if r.Event == nil || (i == 0) != (r.Event.Origin != nil) {
			return story{}, &artifact.ChainError{Step: r.Step, Rule: "does not tell what happened"}
		}
		if i == 0 {
			s.begin(v, r)
		}
		if err := s.follow(r); err != nil {
			return story{}, err
		}
	}
	if s.item.SpecHash, err = v.Spec.Hash(); err != nil {
		return story{}, err
	}
	s.item.ChainLength, s.item.ChainLast = end.Length, end.Last
	s.item.MetadataHash, s.item.MetadataChain = v.MetadataHash, v.MetadataChain
	return s, s.checkBundle()
}

// begin is the item as it was created.
func (s *story) begin(v Artifact, r artifact.Record) {
	o := r.Event.Origin
	s.item = Artifact{
		common: newCommon("artifact", o.ArtifactID, v.Version, r.At, keys{
			SK: versionKey(o.ArtifactID, v.Version).Sort, GSI1SK: indexSort(r.At, o.ArtifactID),
		}),
		Kind: o.Kind, Author: o.Author, Reason: r.Event.Reason, Spec: v.Spec, Submission: o.Submission, Claim: o.Claim, Creator: o.Creator,
	}
}

// follow makes one step.
func (s *story) follow(r artifact.Record) error {
	e, v := r.Event, &s.item
	step := Step{ArtifactID: v.ArtifactID, Version: v.Version, Record: r, From: e.From, To: e.To, Reason: e.Reason, Decision: e.Decision}
	if e.From != v.State || r.Subject != e.BundleHash {
		return &artifact.ChainError{Step: r.Step, Rule: "does not begin where the one before it ended"}
	}
	if e.From != e.To {
		if err := artifact.Transit(e.From, e.To); err != nil {
			return fmt.Errorf("step %s: %w", r.Step, err)
		}
		s.enter(r)
		s.transitions = append(s.transitions, transitionItem(step))
	}
	if len(e.Files) > 0 {
		v.Files = Placed(v.ArtifactID, v.Version, e.Files)
	}
	v.BundleHash = e.BundleHash
	if e.Decision != nil {
		s.decide(step)
	}
	if e.Undo != nil {
		step.Undo = &Undo{
			State: CompensationState(e.Undo.State), RunID: e.Undo.RunID, Attempts: e.Undo.Attempts, Detail: e.Undo.Detail, StartedAt: e.Undo.StartedAt,
		}
		s.undo = &step
	}
	if e.Runs != nil {
		s.runs = *e.Runs
	}
	return nil
}

func (s *story) enter(r artifact.Record) {
	e, v := r.Event, &s.item
	v.State, v.StateSince, v.GSI1PK = e.To, r.At, "STATE#"+string(e.To)
	switch {
	case e.To == artifact.Archived:
		v.ArchivePrefix = e.ArchivePrefix
	case e.To.Settled():
		v.SettledAt = new(r.At)
	case e.To == artifact.Approved:
		s.approved = true
	case e.To == artifact.Executing:
		s.ran = true
	}
	switch {
	case e.Run == "":
	case e.To == artifact.Executing || e.To == artifact.Compensating:
		s.holder = e.Run
	default:
		s.holder = ""
	}
}

// decide adds a decision, which replaces the actor's earlier one.
func (s *story) decide(step Step) {
	for i, a := range s.approvals {
		if a.Actor == step.Decision.Actor && a.SupersededBy == nil {
			s.approvals[i].SupersededBy = new(step.Decision.RecordedAt)
		}
	}
	s.approvals = append(s.approvals, approvalItem(step))
}

func (s story) checkBundle() error {
	var files []artifact.File
	for _, f := range s.item.Files {
		files = append(files, f.File())
	}
	bundle, err := artifact.BundleHash(files, s.item.Spec)
	if err == nil && bundle != s.item.BundleHash {
		err = fmt.Errorf("files and spec are %s, the chain says %s", bundle, s.item.BundleHash)
	}
	if err == nil && s.item.Spec.Kind != s.item.Kind {
		err = fmt.Errorf("the spec is of kind %s, the version of %s", s.item.Spec.Kind, s.item.Kind)
	}
	return err
}

// execution is a run's item as it must be.
func execution(id string, version int, run Run) Execution {
	return Execution{
		common: newCommon("execution", id, version, run.StartedAt, keys{
			SK: runKey(id, run.RunID).Sort, GSI1PK: "RUN#" + artifact.Date(run.StartedAt), GSI1SK: indexSort(run.StartedAt, id),
		}),
		Run: run,
	}
}

// recordedBefore tells whether something was recorded before a key was revoked.
func recordedBefore(recorded time.Time, revoked *time.Time) bool {
	return revoked == nil || recorded.Before(*revoked)
}
