package artifact_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// signer makes a key, with its public half as in authorized_keys.
func signer(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return s, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

// life is a version that is written as its lifecycle writes it, with everything
// that happens told by its chain.
type life struct {
	*world
	version int
	chain   artifact.Chain
	state   artifact.State
	bundle  string
	own     ssh.Signer
	key     string
	gateway ssh.Signer
	decided *time.Time
}

func (l *life) tick() time.Time {
	l.now = l.now.Add(time.Second)
	return l.now
}

func (l *life) sign(by ssh.Signer, verb artifact.Verb, actor, bundle string) artifact.Command {
	l.t.Helper()
	c := artifact.Command{Verb: verb, Actor: actor, At: l.tick(), BundleHash: bundle}
	var err error
	c.Signature, err = artifact.Sign(by, c, "fix", l.version)
	require.NoError(l.t, err)
	return c
}

// submit creates the version; the author vouches with their own key.
func (l *life) submit() {
	l.t.Helper()
	c := l.create(l.version)
	claim := l.sign(l.own, artifact.Create, "user:author", artifact.HashOf([]byte("request")))
	var files []artifact.File
	for _, f := range c.Content.Files {
		files = append(files, f.File())
	}
	l.bundle, l.state = c.Content.BundleHash, artifact.InReview
	event := artifact.Event{
		To: l.state, Reason: "stuck", BundleHash: l.bundle, Files: files,
		Origin: &artifact.Origin{ArtifactID: "fix", Author: "user:author", Kind: artifact.Script, Submission: artifact.Signed, Claim: claim, Creator: "run"},
	}
	var err error
	c.Record, l.chain, err = artifact.Chain{}.Extend(l.version, "submitted", "user:author", l.tick(), l.bundle, event)
	require.NoError(l.t, err)
	c.Request.Reason, c.Request.Claim, c.Submission, c.Creator = "stuck", claim, artifact.Signed, "run"
	require.NoError(l.t, l.store.Create(l.t.Context(), c))
}

// step makes a step and tells of it.
func (l *life) step(name string, to artifact.State, change func(*storage.Step, *artifact.Event)) {
	l.t.Helper()
	s := storage.Step{ArtifactID: "fix", Version: l.version, From: l.state, To: to, Reason: "because"}
	e := artifact.Event{From: s.From, To: to, Reason: s.Reason, BundleHash: l.bundle}
	at := l.tick()
	if change != nil {
		change(&s, &e)
	}
	if s.Decision != nil {
		s.Decision.RecordedAt, e.Decision = at, s.Decision
	}
	e.Run = s.Run
	if u := s.Undo; u != nil {
		e.Undo = &artifact.UndoMark{State: string(u.State), RunID: u.RunID, Attempts: u.Attempts, Detail: u.Detail, StartedAt: u.StartedAt}
	}
	e.ArchivePrefix = s.ArchivePrefix
	if to != l.state && (l.state == artifact.Executing || l.state == artifact.Compensating) {
		runs, err := l.store.Runs(l.t.Context(), "fix", l.version)
		require.NoError(l.t, err)
		mark, err := storage.SumRuns(runs)
		require.NoError(l.t, err)
		e.Runs = &mark
	}
	var err error
	s.Record, l.chain, err = l.chain.Extend(l.version, name, "user:author", at, l.bundle, e)
	require.NoError(l.t, err)
	require.NoError(l.t, l.store.Commit(l.t.Context(), s))
	l.state = to
}

func (l *life) decide(by ssh.Signer, assurance artifact.Assurance, verb artifact.Verb) {
	l.t.Helper()
	var recorded *time.Time
	l.step("decided", l.state, func(s *storage.Step, e *artifact.Event) {
		s.Reason, e.Reason = "", ""
		s.Decision = &artifact.Decision{Command: l.sign(by, verb, "user:a", l.bundle), Assurance: assurance}
		if assurance == artifact.Signed {
			s.Decision.Key = l.key
		}
		s.Earlier, recorded = l.decided, &s.Decision.RecordedAt
	})
	l.decided = recorded
}

func (l *life) move(to artifact.State, head storage.HeadMove, run string, undo *storage.Undo) {
	l.t.Helper()
	l.step(string(to), to, func(s *storage.Step, _ *artifact.Event) { s.Head, s.Run, s.Undo = head, run, undo })
}

// run makes a run with its output.
func (l *life) run(role artifact.Role, status storage.RunStatus) string {
	l.t.Helper()
	begun := l.tick()
	run := storage.Run{
		RunID: artifact.NewRunID(begun, l.chain.Last), Role: role, Kind: artifact.Script, WorkflowID: "artifact/fix", Status: storage.Running, StartedAt: begun,
	}
	_, err := l.store.Begin(l.t.Context(), "fix", l.version, run)
	require.NoError(l.t, err)
	run.Status, run.ExitCode, run.Detail, run.FinishedAt, run.DurationMS = status, 3, "said", new(begun.Add(time.Minute)), 60000
	require.NoError(l.t, l.store.KeepOutput(l.t.Context(), &run, strings.NewReader("out"), strings.NewReader("err")))
	require.NoError(l.t, l.store.Finish(l.t.Context(), "fix", run))
	return run.RunID
}

func (l *life) publish() {
	l.t.Helper()
	require.NoError(l.t, l.store.WriteMetadata(l.t.Context(), "fix", l.version))
	require.NoError(l.t, l.store.WriteProvenance(l.t.Context(), "fix"))
}

// lives writes three versions: one that was undone, one that is archived, and one
// in review. It gives the gateway's keys.
func lives(w *world) []string {
	w.t.Helper()
	own, ownKey := signer(w.t)
	gateway, gatewayKey := signer(w.t)
	for _, actor := range []string{"user:author", "user:a"} {
		_, err := w.store.AddKey(w.t.Context(), actor, ownKey, w.now)
		require.NoError(w.t, err)
	}
	begin := func(version int) *life {
		l := &life{world: w, version: version, own: own, key: ssh.FingerprintSHA256(own.PublicKey()), gateway: gateway}
		l.submit()
		l.publish()
		return l
	}
	undone := begin(1)
	undone.decide(own, artifact.Signed, artifact.Reject)
	undone.decide(own, artifact.Signed, artifact.Approve)
	undone.move(artifact.Approved, storage.HeadApprove, "", nil)
	undone.move(artifact.Executing, storage.HeadRun, "holder-1", nil)
	undone.run(artifact.Primary, storage.RunFailed)
	undone.move(artifact.Failed, storage.HeadStays, "", nil)
	undo := storage.Undo{State: storage.CompensationRunning, StartedAt: w.now}
	undone.move(artifact.Compensating, storage.HeadUndo, "holder-1", &undo)
	last := undone.run(artifact.Rollback, storage.Succeeded)
	done := storage.Undo{State: storage.CompensationDone, RunID: last, Attempts: 1, Detail: "well", StartedAt: undo.StartedAt}
	undone.move(artifact.Compensated, storage.HeadRelease, "holder-1", &done)
	undone.publish()

	archived := begin(2)
	archived.decide(gateway, artifact.Gateway, artifact.Approve)
	archived.move(artifact.Approved, storage.HeadApprove, "", nil)
	archived.move(artifact.Executing, storage.HeadRun, "holder-2", nil)
	archived.run(artifact.Primary, storage.Succeeded)
	archived.move(artifact.Executed, storage.HeadRelease, "holder-2", nil)
	v, err := w.store.Version(w.t.Context(), "fix", 2)
	require.NoError(w.t, err)
	prefix := storage.ArchivePrefix("fix", 2, *v.SettledAt)
	require.NoError(w.t, w.store.CopyToArchive(w.t.Context(), v, prefix))
	archived.step("archived", artifact.Archived, func(s *storage.Step, _ *artifact.Event) { s.ArchivePrefix = prefix })
	require.NoError(w.t, w.store.RemoveOriginals(w.t.Context(), v))
	archived.publish()

	begin(3).decide(gateway, artifact.Gateway, artifact.Approve)
	return []string{gatewayKey}
}
