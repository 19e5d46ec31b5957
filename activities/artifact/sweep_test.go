package artifact

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/protobuf/types/known/timestamppb"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

// watcher says of every workflow the same.
type watcher struct {
	status enums.WorkflowExecutionStatus
	closed time.Time
	err    error
}

func (w watcher) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info := &workflowpb.WorkflowExecutionInfo{Status: w.status}
	if !w.closed.IsZero() {
		info.CloseTime = timestamppb.New(w.closed)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, w.err
}

func (d *desk) sweep(w watcher, dry bool) (workflows.SweepReport, error) {
	d.Helper()
	s := Sweeper{Store: d.Store, Temporal: w, Alerts: d, ArchiveAfter: 30 * 24 * time.Hour, Now: func() time.Time { return d.now }, Logger: d.Logger}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(s.Sweep)
	value, err := env.ExecuteActivity(s.Sweep, workflows.SweepRequest{DryRun: dry})
	if err != nil {
		return workflows.SweepReport{}, err
	}
	var report workflows.SweepReport
	return report, value.Get(&report)
}

func TestASweepArchivesWhatLifecyclesMissed(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	step := workflows.Step{
		ArtifactID: "fix", Version: 1, From: artifact.InReview, To: artifact.Withdrawn,
		Record: d.record(1, "withdrawn", "user:author", artifact.Event{From: artifact.InReview, To: artifact.Withdrawn, BundleHash: v.BundleHash}),
	}
	require.NoError(t, d.Commit(t.Context(), step))
	ended := watcher{err: serviceerror.NewNotFound("")}
	nothing := func(report workflows.SweepReport, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Empty(t, report.Archived)
		require.Zero(t, report.Cleared)
	}
	nothing(d.sweep(ended, false))
	d.now = d.now.Add(32 * 24 * time.Hour)
	nothing(d.sweep(watcher{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}, false))
	_, err := d.sweep(watcher{err: errors.New("no route")}, false)
	require.Error(t, err, "unknown is not ended")

	dry, err := d.sweep(ended, true)
	require.NoError(t, err)
	require.Equal(t, []string{"artifact/fix/v1"}, dry.Archived)
	require.NoError(t, d.Store.VerifyStored(t.Context(), v), "a dry run does nothing")

	report, err := d.sweep(watcher{status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED}, false)
	require.NoError(t, err)
	require.Equal(t, dry.Archived, report.Archived)
	archived, err := d.Store.Version(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Equal(t, artifact.Archived, archived.State)
	require.Equal(t, "archive/2026/05/fix/v1/", archived.ArchivePrefix, "the month of the outcome, not of the sweep")
	records, err := d.Store.Provenance(t.Context(), "fix", 1)
	require.NoError(t, err)
	end, err := artifact.VerifyChain(1, records)
	require.NoError(t, err)
	require.Equal(t, archived.ChainLast, end.Last)
	left, err := d.Store.OriginalsLeft(t.Context(), archived)
	require.NoError(t, err)
	require.False(t, left)
	nothing(d.sweep(ended, false))
}

func TestASweepClearsWhatACrashLeft(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\n"))
	for _, step := range []workflows.Step{{From: artifact.InReview, To: artifact.Withdrawn}, {From: artifact.Withdrawn, To: artifact.Archived, ArchivePrefix: "archive/2026/05/fix/v1/"}} {
		step.ArtifactID, step.Version = "fix", 1
		step.Record = d.record(1, string(step.To), "system", artifact.Event{From: step.From, To: step.To, BundleHash: v.BundleHash})
		require.NoError(t, d.Commit(t.Context(), step))
	}
	for _, want := range []int{1, 0} {
		report, err := d.sweep(watcher{}, false)
		require.NoError(t, err)
		require.Equal(t, want, report.Cleared)
	}
}

func TestRunsOfTwoWeeksAgoAreCooled(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho hello\n"))
	e := d.executor(Scripts{})
	e.Now = func() time.Time { return d.now }
	_, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	report, err := d.sweep(watcher{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}, false)
	require.NoError(t, err)
	require.Zero(t, report.Cooled)
	d.now = d.now.Add(15 * 24 * time.Hour)
	report, err = d.sweep(watcher{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}, false)
	require.NoError(t, err)
	require.Equal(t, 1, report.Cooled)
	require.Equal(t, "hello", d.read(runID(1), storage.StdoutFile), "it reads as before")
}
