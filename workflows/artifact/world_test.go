package artifact

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

var start = time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)

const hash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// desk stands for all activities: it keeps what a store would and answers as
// the test says.
type desk struct {
	mu      sync.Mutex
	created []CreateRequest
	steps   []Step
	head    Head
	alerts  []string
	runs    []RunRequest
	told    int
	cleared int
	// verifyErr, runs and undo answer by attempt; nil is success.
	verify func(VerifyRequest) error
	run    func(RunRequest) (RunResult, error)
	settle func(SettleRequest) SettleResult
	check  func(CheckRequest) (CheckResult, error)
	commit func(Step) error
	// written answers with a step as it was made before.
	written func(Step) Written
	// archive answers the archive's copy.
	archive  func() error
	settings Settings
	prepare  func(artifact.Request) error
	// plants answer jobs.
	plants *plants
}

func newDesk() *desk {
	return &desk{settings: Settings{ArchiveAfter: artifact.Duration(30 * 24 * time.Hour), Provenance: WholeProvenance}}
}

func (d *desk) activities() map[string]any {
	return map[string]any{
		PrepareActivity: func(_ context.Context, r artifact.Request) (Prepared, error) {
			if d.prepare != nil {
				if err := d.prepare(r); err != nil {
					return Prepared{}, err
				}
			}
			policy, err := r.CompletePolicy(nil)
			if err != nil {
				return Prepared{}, applicationError(err)
			}
			r.Spec.Policy = policy
			bundle, err := artifact.BundleHash(r.Files, r.Spec)
			return Prepared{Spec: r.Spec, Files: r.Files, BundleHash: bundle, Assurance: artifact.Unverified, Settings: d.settings}, err
		},
		ContentActivity: func(_ context.Context, r ContentRequest) (Prepared, error) {
			bundle, err := artifact.BundleHash(r.Files, r.Spec)
			return Prepared{Files: r.Files, BundleHash: bundle}, err
		},
		CreateActivity: func(_ context.Context, r CreateRequest) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.created = append(d.created, r)
			return nil
		},
		CheckActivity: func(_ context.Context, r CheckRequest) (CheckResult, error) {
			if d.check != nil {
				return d.check(r)
			}
			return CheckResult{Assurance: artifact.Unverified}, nil
		},
		CommitActivity: func(_ context.Context, s Step) (Written, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.commit != nil {
				if err := d.commit(s); err != nil {
					return Written{}, err
				}
			}
			d.steps = append(d.steps, s)
			if d.written != nil {
				return d.written(s), nil
			}
			return Written{Record: s.Record, Run: s.Run}, nil
		},
		HeadActivity: func(context.Context, VersionRef) (Head, error) { return d.head, nil },
		SettleRunActivity: func(_ context.Context, r SettleRequest) (SettleResult, error) {
			if d.settle != nil {
				return d.settle(r), nil
			}
			return SettleResult{Began: true, Result: RunResult{Status: r.Status, ExitCode: -1, Detail: r.Detail}}, nil
		},
		SumRunsActivity: func(context.Context, VersionRef) (artifact.RunsMark, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return artifact.RunsMark{Count: len(d.runs), Hash: hash}, nil
		},
		PublishActivity: func(context.Context, PublishRequest) error { return nil },
		VerifyActivity: func(_ context.Context, r VerifyRequest) error {
			if d.verify != nil {
				return d.verify(r)
			}
			return nil
		},
		SupersedeActivity: func(context.Context, VersionRef) error { d.told++; return nil },
		AlertActivity: func(_ context.Context, r AlertRequest) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.alerts = append(d.alerts, r.Reason)
			return nil
		},
		ArchiveActivity: func(_ context.Context, r ArchiveRequest) (ArchiveResult, error) {
			if d.archive != nil {
				if err := d.archive(); err != nil {
					return ArchiveResult{}, err
				}
			}
			return ArchiveResult{Prefix: fmt.Sprintf("archive/%s/", r.SettledAt.Format("2006/01"))}, nil
		},
		ClearActivity:  func(context.Context, VersionRef) error { d.cleared++; return nil },
		ScriptActivity: d.runScript,
		HTTPActivity:   d.runScript,

		SendJobActivity: func(_ context.Context, r JobRequest) (JobSent, error) { return d.plants.send(r) },
		LockActivity:    func(_ context.Context, r LockRequest) (LockResult, error) { return d.plants.lock(r), nil },
		UnlockActivity:  func(_ context.Context, r UnlockRequest) error { return d.plants.unlock(r) },
		ReadRunActivity: func(_ context.Context, r RunRef) (RunEnd, error) { return d.plants.read(r), nil },
		HealthActivity:  func(_ context.Context, r HealthRequest) (HealthResult, error) { return d.plants.health(r) },
	}
}

func (d *desk) runScript(_ context.Context, r RunRequest) (RunResult, error) {
	d.mu.Lock()
	d.runs = append(d.runs, r)
	d.mu.Unlock()
	if d.run != nil {
		return d.run(r)
	}
	return RunResult{Status: RunSucceeded}, nil
}

// path is the states that were written, in order.
func (d *desk) path() []artifact.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	var states []artifact.State
	for _, c := range d.created {
		states = append(states, c.State)
	}
	for _, s := range d.steps {
		if s.From != s.To {
			states = append(states, s.To)
		}
	}
	return states
}

// story is one lifecycle in virtual time.
type story struct {
	*testing.T
	*desk
	env *testsuite.TestWorkflowEnvironment
}

func newStory(t *testing.T) *story {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(historytest.Silent)
	s := &story{T: t, desk: newDesk(), env: suite.NewTestWorkflowEnvironment()}
	s.env.SetStartTime(start)
	s.env.SetTestTimeout(20 * time.Second)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: names.ArtifactLifecycleID("fix", 1), TaskQueue: "q", WorkflowExecutionTimeout: 0})
	s.env.SetWorkflowRunTimeout(10 * 365 * 24 * time.Hour)
	s.env.RegisterWorkflowWithOptions(ArtifactLifecycle, workflow.RegisterOptions{Name: names.ArtifactLifecycle})
	for name, f := range s.activities() {
		s.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return s
}

func request(change ...func(*artifact.Request)) artifact.Request {
	r := artifact.Request{
		ArtifactID: "fix", Version: 1, Author: "user:author", Reason: "the line is stuck",
		Spec: artifact.Spec{Kind: artifact.Script, Policy: artifact.Policy{Approvers: []string{"user:a", "user:b", "user:author"}}},
		Files: []artifact.File{
			{Role: artifact.Primary, Filename: "run.sh", ContentHash: hash, S3VersionID: "1"},
			{Role: artifact.Rollback, Filename: "run.sh", ContentHash: hash, S3VersionID: "2"},
		},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func (s *story) at(after time.Duration, f func()) { s.env.RegisterDelayedCallback(f, after) }

// bundle is what is to be approved now.
func (s *story) bundle() string { return s.status().BundleHash }

func (s *story) status() Status {
	s.Helper()
	value, err := s.env.QueryWorkflow(StatusQuery)
	require.NoError(s, err)
	var status Status
	require.NoError(s, value.Get(&status))
	return status
}

// decide sends a decision as a signal.
func (s *story) decide(actor string, verb artifact.Verb) {
	s.env.SignalWorkflow(DoorDecide, map[string]any{"actor": actor, "decision": verb, "bundle_hash": s.bundle()})
}

// answer is what became of an Update.
type answer struct {
	rejected, failed error
	status           Status
}

func (s *story) update(door string, payload map[string]any) *answer {
	a := &answer{}
	s.env.UpdateWorkflow(door, "", &testsuite.TestUpdateCallback{
		OnReject: func(err error) { a.rejected = err },
		OnAccept: func() {},
		OnComplete: func(result any, err error) {
			a.failed = err
			if status, ok := result.(Status); ok {
				a.status = status
			}
		},
	}, payload)
	return a
}

func (s *story) tell(r artifact.Request) error {
	s.Helper()
	s.env.ExecuteWorkflow(names.ArtifactLifecycle, Input{Request: r})
	require.True(s, s.env.IsWorkflowCompleted())
	return s.env.GetWorkflowError()
}

// whole checks that the chain that was written is whole.
func (s *story) whole() {
	s.Helper()
	var records []artifact.Record
	for _, c := range s.created {
		records = append(records, c.Record)
	}
	for _, step := range s.steps {
		records = append(records, step.Record)
	}
	_, err := artifact.VerifyChain(1, records)
	require.NoError(s, err)
}

func integrity() error {
	return temporal.NewNonRetryableApplicationError("content was changed", ErrIntegrity, nil)
}
