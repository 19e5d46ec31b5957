package artifact

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millrace/domain/alert"
	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// way is how a version comes to a state.
var way = map[artifact.State][]artifact.State{
	artifact.Draft:        nil,
	artifact.InReview:     {artifact.InReview},
	artifact.Approved:     {artifact.InReview, artifact.Approved},
	artifact.Executing:    {artifact.InReview, artifact.Approved, artifact.Executing},
	artifact.Failed:       {artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed},
	artifact.Compensating: {artifact.InReview, artifact.Approved, artifact.Executing, artifact.Failed, artifact.Compensating},
}

// in brings a new version to a state, with a run that began where it runs; its
// lifecycle is then heard of no more.
func (d *desk) in(version int, state artifact.State) storage.Artifact {
	d.Helper()
	r := script("#!/bin/sh\necho done\n", func(r *artifact.Request) { r.Version = version })
	p, err := d.Prepare(d.Context(), r)
	require.NoError(d, err)
	r.Spec, r.Files, d.chain = p.Spec, p.Files, artifact.Chain{}
	origin := artifact.Origin{ArtifactID: "fix", Author: r.Author, Kind: r.Spec.Kind, Submission: p.Assurance, Creator: "run"}
	record := d.record(version, "submitted", r.Author, artifact.Event{To: artifact.Draft, BundleHash: p.BundleHash, Files: p.Files, Origin: &origin})
	_, err = d.Create(d.Context(), workflows.CreateRequest{
		Request: r, BundleHash: p.BundleHash, State: artifact.Draft, Record: record, Assurance: p.Assurance, Creator: "run",
	})
	require.NoError(d, err)
	from := artifact.Draft
	for _, to := range way[state] {
		if to == artifact.Approved {
			d.approveWhole(version, p.BundleHash)
		}
		d.goOn(version, from, to, p.BundleHash)
		from = to
	}
	v, err := d.Store.Version(d.Context(), "fix", version)
	require.NoError(d, err)
	return v
}

func (d *desk) approveWhole(version int, bundle string) {
	d.Helper()
	at := d.now.Add(time.Second)
	decision := artifact.Decision{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}, Assurance: artifact.Unverified, RecordedAt: at}
	record := d.record(version, "decided", "user:a", artifact.Event{From: artifact.InReview, To: artifact.InReview, BundleHash: bundle, Decision: &decision})
	require.Equal(d, at, record.At)
	require.NoError(d, d.Store.Commit(d.Context(), storage.Step{
		ArtifactID: "fix", Version: version, Record: record, From: artifact.InReview, To: artifact.InReview, Decision: &decision,
	}))
}

func (d *desk) goOn(version int, from, to artifact.State, bundle string) {
	d.Helper()
	event := artifact.Event{From: from, To: to, BundleHash: bundle}
	step := storage.Step{ArtifactID: "fix", Version: version, From: from, To: to}
	switch to {
	case artifact.Approved:
		step.Head = storage.HeadApprove
	case artifact.Executing:
		step.Head, step.Run = storage.HeadRun, runID(version)
	case artifact.Compensating:
		step.Head, step.Run = storage.HeadUndo, runID(version)
		step.Undo = &storage.Undo{State: storage.CompensationRunning, StartedAt: d.now}
		event.Undo = &artifact.UndoMark{State: string(storage.CompensationRunning), StartedAt: d.now}
	}
	event.Run = step.Run
	if from == artifact.Executing {
		end := d.tick()
		require.NoError(d, d.Store.Finish(d.Context(), "fix", storage.Run{RunID: runID(version), Status: storage.RunFailed, FinishedAt: &end}))
		runs, err := d.Store.Runs(d.Context(), "fix", version)
		require.NoError(d, err)
		mark, err := storage.SumRuns(runs)
		require.NoError(d, err)
		event.Runs = &mark
	}
	step.Record = d.record(version, string(to), artifact.System, event)
	require.NoError(d, d.Store.Commit(d.Context(), step))
	if to == artifact.Executing {
		began, err := d.Store.Begin(d.Context(), "fix", version, storage.Run{
			RunID: runID(version), Role: artifact.Primary, Kind: artifact.Script, WorkflowID: "w", Status: storage.Running, StartedAt: d.tick(),
		})
		require.NoError(d, err)
		require.True(d, began)
	}
}

func (d *desk) head() storage.Head {
	d.Helper()
	head, err := d.Store.Head(d.Context(), "fix")
	require.NoError(d, err)
	return head
}

var terminated = watcher{status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED}

// TestVersionsOfEndedLifecyclesAreSettled has a lifecycle terminated in each of its
// states.
func TestVersionsOfEndedLifecyclesAreSettled(t *testing.T) {
	const how = "the lifecycle was terminated"
	for state, want := range map[artifact.State]struct {
		state  artifact.State
		reason string
		run    storage.RunStatus
	}{
		artifact.Draft:        {artifact.Expired, how, ""},
		artifact.InReview:     {artifact.Expired, how, ""},
		artifact.Approved:     {artifact.Expired, how, ""},
		artifact.Executing:    {artifact.Failed, "worker_lost: " + how, storage.WorkerLost},
		artifact.Failed:       {artifact.CompensationFailed, how, storage.RunFailed},
		artifact.Compensating: {artifact.CompensationFailed, how, storage.RunFailed},
	} {
		t.Run(string(state), func(t *testing.T) {
			d := newDesk(t)
			v := d.in(1, state)
			report, err := d.sweep(watcher{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}, false)
			require.NoError(t, err)
			require.Zero(t, report.Settled, "its lifecycle is there")
			_, err = d.sweep(watcher{err: errors.New("no route")}, false)
			require.Error(t, err, "unknown is not ended")

			dry, err := d.sweep(terminated, true)
			require.NoError(t, err)
			require.Len(t, dry.Settlements, 1)
			require.Regexp(t, "^artifact/fix/v1: "+string(state)+" to [a-z_]+, "+how+"$", dry.Settlements[0])
			still, err := d.Store.Version(t.Context(), "fix", 1)
			require.NoError(t, err)
			require.Equal(t, v, still, "a dry run does nothing")
			require.Empty(t, d.alerts)

			report, err = d.sweep(terminated, false)
			require.NoError(t, err)
			require.Equal(t, dry.Settlements[0], report.Settlements[0])
			require.Contains(t, report.Settlements[len(report.Settlements)-1], " to "+string(want.state)+", ")
			settled, err := d.Store.Version(t.Context(), "fix", 1)
			require.NoError(t, err)
			require.Equal(t, want.state, settled.State)
			require.Empty(t, d.head().ExecutingRun, "other versions may run")
			if want.run != "" {
				run, err := d.Store.Run(t.Context(), "fix", runID(1))
				require.NoError(t, err)
				require.Equal(t, want.run, run.Status)
			}
			transitions, err := d.Store.Transitions(t.Context(), "fix", 1)
			require.NoError(t, err)
			require.Equal(t, want.reason, transitions[len(transitions)-1].Reason)
			require.Len(t, d.alerts, 1)
			require.NoError(t, d.alerts[0].Check())
			held := state == artifact.Executing || state == artifact.Compensating || state == artifact.Failed
			require.Equal(t, held, d.alerts[0].Severity == alert.Danger)

			report, err = d.sweep(terminated, false)
			require.NoError(t, err)
			require.Zero(t, report.Settled, "once")
			require.Zero(t, report.Cleared)
			findings, err := d.Store.Audit(t.Context(), "fix", nil)
			require.NoError(t, err)
			for _, f := range findings {
				require.NoError(t, f.Err, f.Version)
			}
		})
	}
}

func TestALifecycleThatIsGoneIsSettledLater(t *testing.T) {
	d := newDesk(t)
	d.in(1, artifact.Executing)
	d.in(2, artifact.Approved)
	just := watcher{status: enums.WORKFLOW_EXECUTION_STATUS_FAILED, closed: d.now.Add(-time.Minute)}
	report, err := d.sweep(just, false)
	require.NoError(t, err)
	require.Zero(t, report.Settled, "what it ran may still be dying")
	d.now = d.now.Add(closedRest)
	report, err = d.sweep(just, true)
	require.NoError(t, err)
	require.Equal(t, 2, report.Settled)
	report, err = d.sweep(watcher{err: serviceerror.NewNotFound("")}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"artifact/fix/v2: approved to expired, the lifecycle is gone", "artifact/fix/v1: executing to failed, the lifecycle is gone"}, report.Settlements)
}

func TestARunThatEndedWellStaysSoWhenItsLifecycleIsLost(t *testing.T) {
	d := newDesk(t)
	d.in(1, artifact.Executing)
	end := d.tick()
	require.NoError(t, d.Store.Finish(t.Context(), "fix", storage.Run{RunID: runID(1), Status: storage.Succeeded, FinishedAt: &end}))
	_, err := d.sweep(terminated, false)
	require.NoError(t, err)
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.Equal(t, storage.Succeeded, run.Status)
}

// failing lets no snapshot be written.
type failing struct{ storage.Bucket }

func (failing) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return nil, errAway
}

func TestASettlementThatWasInterruptedIsCompleted(t *testing.T) {
	d := newDesk(t)
	d.in(1, artifact.Executing)
	good := d.Store.Client
	d.Store.Client = failing{good}
	_, err := d.sweep(terminated, false)
	require.ErrorContains(t, err, errAway.Error())
	d.Store.Client = good
	v, err := d.Store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Equal(t, artifact.Failed, v.State)
	published, err := d.Store.Published(t.Context(), v)
	require.NoError(t, err)
	require.False(t, published)
	report, err := d.sweep(terminated, false)
	require.NoError(t, err)
	require.Equal(t, 1, report.Cleared)
	v, err = d.Store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	published, err = d.Store.Published(t.Context(), v)
	require.NoError(t, err)
	require.True(t, published)
}
