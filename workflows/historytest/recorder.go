// Package historytest lets tests run workflows on a real server, record what they
// did there and replay it later. Only tests import it: unlike workflows it does
// I/O. The server is found by the environment variables of the Temporal SDK.
package historytest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
)

var record = flag.Bool("record", false, "write the histories to testdata/replay_*.json")

// Recording says whether histories are written down, which -record asks for.
func Recording() bool { return *record }

// Recorder runs workflows on the server, with activities that only answer.
type Recorder struct {
	Client    client.Client
	TaskQueue string

	t         testing.TB
	workflows Workflows
}

// New is a recorder with one worker and a task queue of its own.
func New(t testing.TB, workflows Workflows, activities map[string]any) Recorder {
	t.Helper()
	c, err := client.Dial(Options(t))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	r := Recorder{Client: c, TaskQueue: fmt.Sprintf("record-%d", time.Now().UnixNano()), t: t, workflows: workflows}
	r.Work(activities)
	return r
}

// Options are how to reach the server.
func Options(t testing.TB) client.Options {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Identity, options.Logger = "recorder", Silent
	return options
}

// In is the same recorder for a subtest.
func (r Recorder) In(t testing.TB) Recorder {
	r.t = t
	return r
}

// Work starts one more worker, with these activities by their type.
func (r Recorder) Work(activities map[string]any) {
	r.t.Helper()
	w := worker.New(r.Client, r.TaskQueue, worker.Options{Identity: "recorder"})
	r.workflows.register(w)
	for name, answer := range activities {
		w.RegisterActivityWithOptions(answer, activity.RegisterOptions{Name: name})
	}
	require.NoError(r.t, w.Start())
	r.t.Cleanup(w.Stop)
}

// Start starts a workflow by its type.
func (r Recorder) Start(workflow string, input ...any) client.WorkflowRun {
	r.t.Helper()
	run, err := r.Client.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{ID: NewID(workflow), TaskQueue: r.TaskQueue}, workflow, input...)
	require.NoError(r.t, err)
	return run
}

// NewID is a workflow id that no other run has.
func NewID(of string) string { return fmt.Sprintf("record-%s-%d", of, time.Now().UnixNano()) }

// Scheduled is the run of a schedule that stands for the given time.
func (r Recorder) Scheduled(workflow string, at time.Time, input ...any) client.WorkflowRun {
	r.t.Helper()
	id := NewID(workflow)
	handle, err := r.Client.ScheduleClient().Create(r.t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}}, Paused: true,
		Action:           &client.ScheduleWorkflowAction{ID: id, Workflow: workflow, Args: input, TaskQueue: r.TaskQueue},
		ScheduleBackfill: []client.ScheduleBackfill{{Start: at.Add(-time.Second), End: at, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL}},
	})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, handle.Delete(context.Background())) })
	var started *client.ScheduleWorkflowExecution
	require.Eventually(r.t, func() bool {
		description, err := handle.Describe(r.t.Context())
		require.NoError(r.t, err)
		if actions := description.Info.RecentActions; len(actions) > 0 {
			started = actions[0].StartWorkflowResult
		}
		return started != nil
	}, 20*time.Second, 50*time.Millisecond)
	return r.Client.GetWorkflow(r.t.Context(), started.WorkflowID, started.FirstExecutionRunID)
}

// Keep replays the history of a run and, when recording, writes it down.
func (r Recorder) Keep(name string, run client.WorkflowRun) {
	r.t.Helper()
	Save(r.t, name, r.Replay(run))
}

// Replay replays the history of a run and gives it.
func (r Recorder) Replay(run client.WorkflowRun) *history.History {
	r.t.Helper()
	recorded := Of(r.t, r.Client, run.GetID(), run.GetRunID())
	require.NoError(r.t, r.workflows.Replayer().ReplayWorkflowHistory(Silent, recorded))
	return recorded
}

// Of is the history of a run so far; without a run id it is the latest one's.
func Of(t testing.TB, c client.Client, id, runID string) *history.History {
	t.Helper()
	recorded := &history.History{}
	for events := c.GetWorkflowHistory(t.Context(), id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		recorded.Events = append(recorded.Events, event)
	}
	require.NotEmpty(t, recorded.Events)
	return recorded
}

// Save writes a history to testdata when recording.
func Save(t testing.TB, name string, recorded *history.History) {
	t.Helper()
	if !Recording() {
		return
	}
	body, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(recorded)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("testdata", 0o755))
	require.NoError(t, os.WriteFile(path(name), append(body, '\n'), 0o644))
}
