package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"millrace/domain/artifact"
	"millrace/storage/table"
)

// HeadMove says what a step changes on the artifact's HEAD.
type HeadMove string

// The moves. Approving and running are conditional: an older version can neither
// overtake nor run beside a newer one.
const (
	HeadStays   HeadMove = ""
	HeadApprove HeadMove = "approve"
	HeadRun     HeadMove = "run"
	HeadUndo    HeadMove = "undo"
	HeadRelease HeadMove = "release"
)

// Undo is what a step tells of a compensation.
type Undo struct {
	State     CompensationState `json:"state"`
	RunID     string            `json:"run_id,omitempty"`
	Attempts  int               `json:"attempts"`
	Detail    string            `json:"detail,omitempty"`
	StartedAt time.Time         `json:"started_at"`
}

// Step is one change of a version with all that is written in its transaction:
// a link of the provenance chain always, a transition where the state changes,
// and what the step is about.
type Step struct {
	ArtifactID string          `json:"artifact_id"`
	Version    int             `json:"version"`
	Record     artifact.Record `json:"record"`
	From       artifact.State  `json:"from"`
	To         artifact.State  `json:"to"`
	Reason     string          `json:"reason,omitempty"`
	CreatedAt  time.Time       `json:"created_at"`
	// Decision is an approval or rejection to record; Earlier is when the same
	// actor's decision that it replaces was recorded.
	Decision *artifact.Decision `json:"decision,omitempty"`
	Earlier  *time.Time         `json:"earlier,omitempty"`
	Head     HeadMove           `json:"head,omitempty"`
	// Run is the run that the move of HEAD is about.
	Run string `json:"run,omitempty"`
	// Content replaces the files of a draft.
	Content *Content `json:"content,omitempty"`
	Undo    *Undo    `json:"undo,omitempty"`
	// ArchivePrefix is where the content went.
	ArchivePrefix string `json:"archive_prefix,omitempty"`
	// ran is the newest version that had run when an undo was looked into.
	ran int
	// specHash is that of the content's spec.
	specHash string
}

// Content is the files of a version and what is approved of them.
type Content struct {
	Files      []StoredFile `json:"files"`
	BundleHash string       `json:"bundle_hash"`
	// Spec is that of a draft once it is completed, nil where it stays.
	Spec *artifact.Spec `json:"spec,omitempty"`
}

// Written is a step as it stands in the store.
type Written struct {
	Record artifact.Record `json:"record"`
	// Run is the run that HEAD is held for, where the step claimed it.
	Run string `json:"run,omitempty"`
}

// Commit makes a step, all of it or nothing. A step that was made already is no
// error. Others are ErrConflict, ErrSuperseded or ErrBusy.
func (s Store) Commit(ctx context.Context, step Step) error {
	_, err := s.CommitOnce(ctx, step)
	return err
}

// CommitOnce is Commit for a writer that may not know whether it has made the
// step: it may have done so at another time and for another run, and gets the
// step as it was made.
func (s Store) CommitOnce(ctx context.Context, step Step) (Written, error) {
	if step.From != step.To {
		if err := artifact.Transit(step.From, step.To); err != nil {
			return Written{}, err
		}
	}
	if step.Content != nil && step.Content.Spec != nil {
		canonical, err := artifact.Canonical(*step.Content.Spec)
		if err != nil {
			return Written{}, err
		}
		step.specHash = artifact.HashOf(canonical)
	}
	if step.Head == HeadUndo {
		ran, err := s.newestToUndo(ctx, step)
		if err != nil {
			return Written{}, err
		}
		step.ran = ran
	}
	writes, err := s.stepWrites(ctx, step)
	if err != nil {
		return Written{}, err
	}
	err = s.Table.TransactRetrying(ctx, writes...)
	if _, refused := errors.AsType[*table.ConflictError](err); refused {
		return s.whyRefused(ctx, step)
	}
	if err != nil {
		return Written{}, fmt.Errorf("write step %s of %s: %w", step.Record.Step, step.ArtifactID, err)
	}
	return Written{Record: step.Record, Run: step.Run}, nil
}

// whyRefused tells a step that was made already from one that may not be made.
func (s Store) whyRefused(ctx context.Context, step Step) (Written, error) {
	current, err := s.Version(ctx, step.ArtifactID, step.Version)
	if err != nil {
		return Written{}, err
	}
	if current.ChainLast == step.Record.Hash {
		return Written{Record: step.Record, Run: step.Run}, nil
	}
	if current.ChainLength > lengthOf(step.Record) && (step.Head == HeadRun || step.Head == HeadUndo) {
		// A writer that does not know whether it has begun a run waits for it: this is
		// one that was set back, and its run is over or another's.
		return Written{}, fmt.Errorf("the run of step %s was begun before: %w", step.Record.Step, ErrConflict)
	}
	if current.ChainLength >= lengthOf(step.Record) { // it may have gone on since
		return s.madeBefore(ctx, step)
	}
	if current.ChainLast != step.Record.Prev || current.State != step.From {
		return Written{}, conflict(step)
	}
	head, err := s.Head(ctx, step.ArtifactID)
	switch {
	case err != nil:
		return Written{}, err
	case step.Head == HeadApprove || (step.Head == HeadRun && head.ApprovedVersion != step.Version):
		return Written{}, fmt.Errorf("version %d of %s, version %d is approved: %w", step.Version, step.ArtifactID, head.ApprovedVersion, ErrSuperseded)
	case head.ExecutingRun != "":
		return Written{}, s.busy(ctx, step, head.ExecutingRun)
	}
	return Written{}, conflict(step)
}

// busy names the version that has its run, as far as its state tells.
func (s Store) busy(ctx context.Context, step Step, run string) error {
	versions, err := s.Versions(ctx, step.ArtifactID)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.State == artifact.Executing || v.State == artifact.Compensating {
			return fmt.Errorf("run %s of version %d, %s since %s: %w", run, v.Version, v.State, artifact.Timestamp(v.StateSince), ErrBusy)
		}
	}
	return fmt.Errorf("run %s: %w", run, ErrBusy)
}

func conflict(step Step) error {
	return fmt.Errorf("step %s of %s: %w", step.Record.Step, step.ArtifactID, ErrConflict)
}

// madeBefore is the step of the same name that is there, if it says the same:
// by the same actor, about the same content, after the same record.
func (s Store) madeBefore(ctx context.Context, step Step) (Written, error) {
	var item Provenance
	found, err := s.Table.Get(ctx, table.Key{Partition: partition(step.ArtifactID), Sort: "PROV#" + step.Record.Step}, &item)
	if err != nil {
		return Written{}, err
	}
	made, want := item.Record, step.Record
	if !found || made.Prev != want.Prev || made.Actor != want.Actor || made.Subject != want.Subject {
		return Written{}, conflict(step)
	}
	if step.Decision != nil {
		if same, err := s.decidedBefore(ctx, step, made.At); err != nil || !same {
			return Written{}, cmp.Or(err, conflict(step))
		}
	}
	written := Written{Record: made, Run: step.Run}
	if step.Head == HeadRun || step.Head == HeadUndo {
		head, err := s.Head(ctx, step.ArtifactID)
		if err != nil {
			return Written{}, err
		}
		if head.ExecutingRun == "" {
			return Written{}, conflict(step)
		}
		written.Run = head.ExecutingRun
	}
	return written, nil
}

// decidedBefore tells whether the decision that was recorded at a time is that of
// the step: one of the same actor may say the opposite.
func (s Store) decidedBefore(ctx context.Context, step Step, at time.Time) (bool, error) {
	var item Approval
	found, err := s.Table.Get(ctx, table.Key{Partition: partition(step.ArtifactID), Sort: "APPROVAL#" + artifact.Timestamp(at)}, &item)
	return found && item.Version == step.Version && item.Verb == step.Decision.Verb && item.BundleHash == step.Decision.BundleHash, err
}

func (s Store) stepWrites(ctx context.Context, step Step) ([]types.TransactWriteItem, error) {
	var b batch
	b.update(s.Table, s.versionChange(step))
	b.put(s.Table, provenanceItem(step))
	if step.From != step.To {
		b.put(s.Table, transitionItem(step))
	}
	if step.Decision != nil {
		b.put(s.Table, approvalItem(step))
		if step.Earlier != nil {
			present := s.Table.Present()
			b.update(s.Table, table.Change{
				Key:       table.Key{Partition: partition(step.ArtifactID), Sort: "APPROVAL#" + artifact.Timestamp(*step.Earlier)},
				Set:       map[string]any{"superseded_by": step.Decision.RecordedAt, "updated_at": step.Record.At},
				Condition: &present,
			})
		}
	}
	if step.Head != HeadStays {
		b.update(s.Table, headChange(step))
	}
	if step.Undo != nil {
		if err := s.undoWrites(ctx, &b, step); err != nil {
			return nil, err
		}
	}
	return b.writes, b.err
}

// batch collects the writes of a transaction and the first error.
type batch struct {
	writes []types.TransactWriteItem
	err    error
}

func (b *batch) put(t table.Table, document any) { b.putIf(t, document, new(t.Absent())) }

func (b *batch) putIf(t table.Table, document any, condition *table.Condition) {
	write, err := t.PutWrite(document, condition)
	b.add(write, err)
}

func (b *batch) update(t table.Table, c table.Change) {
	write, err := t.UpdateWrite(c)
	b.add(write, err)
}

func (b *batch) add(write types.TransactWriteItem, err error) {
	b.err = errors.Join(b.err, err)
	b.writes = append(b.writes, write)
}

func (s Store) versionChange(step Step) table.Change {
	set := map[string]any{
		"chain_last": step.Record.Hash, "chain_length": lengthOf(step.Record), "updated_at": step.Record.At,
	}
	if step.From != step.To {
		set["state"], set["state_since"] = step.To, step.Record.At
		set["GSI1PK"] = "STATE#" + string(step.To)
		if step.To.Settled() && step.To != artifact.Archived {
			set["settled_at"] = step.Record.At
		}
	}
	if step.Content != nil {
		set["files"], set["bundle_hash"] = step.Content.Files, step.Content.BundleHash
		if spec := step.Content.Spec; spec != nil {
			set["spec"], set["spec_hash"] = *spec, step.specHash
		}
	}
	if step.ArchivePrefix != "" {
		set["archive_prefix"] = step.ArchivePrefix
	}
	return table.Change{
		Key: versionKey(step.ArtifactID, step.Version), Set: set,
		Condition: &table.Condition{
			Expression: "#chain = :prev AND #state = :from",
			Names:      map[string]string{"#chain": "chain_last", "#state": "state"},
			Values:     table.Item{":prev": table.String(step.Record.Prev), ":from": table.String(string(step.From))},
		},
	}
}

// lengthOf is the number within a step's name.
func lengthOf(r artifact.Record) int {
	var version, length int
	if _, err := fmt.Sscanf(r.Step, "v%d-%d-", &version, &length); err != nil {
		return 0
	}
	return length
}

func headChange(step Step) table.Change {
	c := table.Change{
		Key: headKey(step.ArtifactID), Set: map[string]any{"updated_at": step.Record.At},
		Condition: &table.Condition{Names: map[string]string{}, Values: table.Item{}},
	}
	expect := func(expression string, names map[string]string, values table.Item) {
		c.Condition = &table.Condition{Expression: expression, Names: names, Values: values}
	}
	version, run := table.Int(int64(step.Version)), table.String(step.Run)
	switch step.Head {
	case HeadApprove:
		c.Set["approved_version"] = step.Version
		expect("#approved < :version", map[string]string{"#approved": "approved_version"}, table.Item{":version": version})
	case HeadRun:
		c.Set["executing_run"], c.Set["ran_version"] = step.Run, step.Version
		expect("#approved = :version AND attribute_not_exists(#run)",
			map[string]string{"#approved": "approved_version", "#run": "executing_run"}, table.Item{":version": version})
	case HeadUndo:
		c.Set["executing_run"] = step.Run
		expect("(attribute_not_exists(#run) OR #run = :run) AND (attribute_not_exists(#ran) OR #ran <= :ran)",
			map[string]string{"#run": "executing_run", "#ran": "ran_version"}, table.Item{":run": run, ":ran": table.Int(int64(step.ran))})
	case HeadRelease:
		c.Remove = []string{"executing_run"}
		expect("#run = :run", map[string]string{"#run": "executing_run"}, table.Item{":run": run})
	}
	return c
}

func provenanceItem(step Step) Provenance {
	at := step.Record.At
	return Provenance{
		common: newCommon("provenance", step.ArtifactID, step.Version, at, keys{
			SK: "PROV#" + step.Record.Step, GSI1PK: "PROV#" + artifact.Date(at), GSI1SK: indexSort(at, step.ArtifactID),
		}),
		Record: step.Record,
	}
}

func transitionItem(step Step) Transition {
	at := step.Record.At
	return Transition{
		common: newCommon("transition", step.ArtifactID, step.Version, at, keys{
			SK: "TRANS#" + artifact.Timestamp(at), GSI1PK: "TRANS#" + artifact.Date(at), GSI1SK: indexSort(at, step.ArtifactID),
		}),
		TransitionID: step.Record.Step, From: step.From, To: step.To, Actor: step.Record.Actor, Reason: step.Reason,
	}
}

func approvalItem(step Step) Approval {
	d := *step.Decision
	return Approval{
		common: newCommon("approval", step.ArtifactID, step.Version, d.RecordedAt, keys{
			SK: "APPROVAL#" + artifact.Timestamp(d.RecordedAt), GSI1PK: "APPROVER#" + d.Actor, GSI1SK: indexSort(d.RecordedAt, step.ArtifactID),
		}),
		Decision: d,
	}
}
