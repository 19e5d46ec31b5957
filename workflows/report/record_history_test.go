package report

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// await waits for a run as the real activity does.
func await(c func() client.Client) func(context.Context, AwaitRequest) (TargetResult, error) {
	return func(ctx context.Context, req AwaitRequest) (TargetResult, error) {
		var result TargetResult
		err := c().GetWorkflow(ctx, req.WorkflowID, "").Get(ctx, &result)
		if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); ended {
			return result, temporal.NewNonRetryableApplicationError("ended", ErrorAwaitedEnded, err)
		}
		return result, err
	}
}

// newRecorder is a recorder whose activities are those of a, on the server's
// clock.
func newRecorder(t *testing.T, a *answers) historytest.Recorder {
	t.Helper()
	var r historytest.Recorder
	all := a.activities()
	all[AwaitTargetActivity] = await(func() client.Client { return r.Client })
	r = historytest.New(t, registered, all)
	return r
}

// start starts a workflow with an id of its own.
func start(r historytest.Recorder, t *testing.T, id, workflow string, input any) client.WorkflowRun {
	t.Helper()
	run, err := r.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: r.TaskQueue}, workflow, input)
	require.NoError(t, err)
	return run
}

// TestFreshHistoriesReplay runs every workflow on a real server and replays what
// it did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	answers := newAnswers(time.Now)
	answers.draft = func(req DraftRequest, _ int) (DraftResult, error) {
		switch {
		case req.Target == "factory-b" && req.Attempt == 1:
			return DraftResult{DraftKey: "bad", Violations: []string{"wrong date"}, Cost: "0.01"}, nil
		case req.Target == "factory-c":
			return DraftResult{}, final("AccessDenied")
		}
		return DraftResult{DraftKey: "good", Valid: true, Cost: "0.01"}, nil
	}
	publish := answers.publish
	answers.publish = func(req PublishRequest) (PublishResult, error) {
		if req.Target == CloudInfraTarget {
			return PublishResult{}, final("Forbidden")
		}
		return publish(req)
	}
	recorder := newRecorder(t, answers)
	due := time.Now().UTC().Truncate(time.Minute)
	bound := 3
	for name, c := range map[string]struct {
		run   func(historytest.Recorder) client.WorkflowRun
		fails bool
	}{
		"daily_report": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Scheduled(names.DailyReport, due, DailyInput{})
		}, false},
		"daily_report_by_hand": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Start(names.DailyReport, DailyInput{Date: "2026-02-01", Targets: []string{"factory-a", "factory-z"}, Quiet: true})
		}, false},
		"target_report": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Start(names.TargetReport, TargetInput{Target: "factory-b", Date: "2026-02-02"})
		}, false},
		"target_report_failed": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Start(names.TargetReport, TargetInput{Target: CloudInfraTarget, Date: "2026-02-02"})
		}, true},
		"report_backfill": {func(r historytest.Recorder) client.WorkflowRun {
			return r.Start(names.ReportBackfill, BackfillInput{Items: items("factory-a", "factory-b"), MaxModelCalls: &bound})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder.In(t)
			run := c.run(r)
			err := run.Get(t.Context(), nil)
			if c.fails {
				_, failed := errors.AsType[*temporal.ApplicationError](err)
				require.True(t, failed, "%v", err)
			} else {
				require.NoError(t, err)
			}
			r.Keep(name, run)
		})
	}
}

// TestWhatReportsCostTemporal bounds the events of a day: what a run's history
// costs grows with it.
func TestWhatReportsCostTemporal(t *testing.T) {
	r := newRecorder(t, newAnswers(time.Now))
	run := r.Start(names.DailyReport, DailyInput{Date: "2026-03-01"})
	require.NoError(t, run.Get(t.Context(), nil))
	daily := historytest.Of(t, r.Client, run.GetID(), run.GetRunID())
	target := historytest.Of(t, r.Client, names.TargetReportID("2026-03-01", "factory-a"), "")
	t.Logf("events: day %d, target %d; a night of 4 targets %d", len(daily.Events), len(target.Events), len(daily.Events)+4*len(target.Events))
	require.Equal(t, 24+4, started(target, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), "plan, hours, merge, draft, publish")
	require.Equal(t, 2, started(daily, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), "plan, deliver")
	require.Equal(t, 4, started(daily, enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED))
	require.Less(t, len(target.Events), 200)
	require.Less(t, len(daily.Events), 60)
}

func started(h *history.History, kind enums.EventType) int {
	n := 0
	for _, event := range h.Events {
		if event.GetEventType() == kind {
			n++
		}
	}
	return n
}

func TestAReportThatAnotherRunMakesIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(*testing.T, client.Client, string, chan struct{})
		awaited bool
		drafts  int
	}{
		"it succeeds": {func(_ *testing.T, _ client.Client, _ string, release chan struct{}) { close(release) }, true, 1},
		"it is terminated": {func(t *testing.T, c client.Client, id string, release chan struct{}) {
			t.Helper()
			require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "by an operator"))
			close(release)
		}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			answers, release := newAnswers(time.Now), make(chan struct{})
			draft := answers.draft
			answers.draft = func(req DraftRequest, nth int) (DraftResult, error) {
				<-release
				return draft(req, nth)
			}
			r := newRecorder(t, answers)
			date := "2026-04-01"
			if c.awaited {
				date = "2026-04-02"
			}
			id := names.TargetReportID(date, "factory-a")
			other := start(r, t, id, names.TargetReport, TargetInput{Target: "factory-a", Date: date})
			require.Eventually(t, func() bool { answers.lock.Lock(); defer answers.lock.Unlock(); return len(answers.drafts) == 1 }, 20*time.Second, 20*time.Millisecond)
			day := start(r, t, names.DailyReportID(date), names.DailyReport, DailyInput{Date: date, Targets: []string{"factory-a"}})
			require.Eventually(t, func() bool {
				return started(historytest.Of(t, r.Client, day.GetID(), day.GetRunID()), enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 2
			}, 20*time.Second, 50*time.Millisecond)
			c.end(t, r.Client, other.GetID(), release)
			var result DailyResult
			require.NoError(t, day.Get(t.Context(), &result))
			require.Equal(t, DayCompleted, result.Status)
			require.Equal(t, c.awaited, result.Results[0].Awaited)
			require.Len(t, answers.drafts, c.drafts)
			r.Keep("daily_report_awaits_"+map[bool]string{true: "success", false: "terminated"}[c.awaited], day)
		})
	}
}
