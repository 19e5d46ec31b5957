package artifact

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"millrace/domain/artifact"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

var registered = historytest.Workflows{names.ArtifactLifecycle: ArtifactLifecycle, names.JobResultDrain: JobResultDrain}

// TestRecordedHistoriesReplay runs today's code over histories that yesterday's
// made: lifecycles last for months and must go on after a deployment.
func TestRecordedHistoriesReplay(t *testing.T) {
	for _, file := range historytest.Recorded(t, 1) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.Open(file)
			require.NoError(t, err)
			defer body.Close()
			h, err := client.HistoryFromJSON(body, client.HistoryJSONOptions{})
			require.NoError(t, err)
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "replay_"), ".json")
			require.NoError(t, replay(h, names.ArtifactLifecycleID(name, 1)))
		})
	}
}

// replay replays a history under the workflow id that it had: a lifecycle checks
// its own.
func replay(h *history.History, id string) error {
	return registered.Replayer().ReplayWorkflowHistoryWithOptions(historytest.Silent, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: id, RunID: h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()},
	})
}

// server is a namespace of its own on a real server.
func server(t testing.TB) client.Client {
	t.Helper()
	options := historytest.Options(t)
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	options.Namespace = fmt.Sprintf("artifact-%d", time.Now().UnixNano())
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: options.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		_, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: options.Namespace})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	return c
}

// host runs the activities of a desk on every queue.
func host(t testing.TB, c client.Client, d *desk) {
	t.Helper()
	for _, queue := range []string{names.QueueArtifacts, names.QueueScripts} {
		w := worker.New(c, queue, worker.Options{Identity: "recorder"})
		if queue == names.QueueArtifacts {
			w.RegisterWorkflowWithOptions(ArtifactLifecycle, workflow.RegisterOptions{Name: names.ArtifactLifecycle})
		}
		for name, f := range d.activities() {
			w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
		}
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
}

// begin starts a lifecycle and gives what is to be approved.
func begin(t testing.TB, c client.Client, r artifact.Request) (string, string) {
	t.Helper()
	id := names.ArtifactLifecycleID(r.ArtifactID, r.Version)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.QueueArtifacts}, names.ArtifactLifecycle, Input{Request: r})
	require.NoError(t, err)
	return id, until(t, c, id, artifact.InReview).BundleHash
}

func until(t testing.TB, c client.Client, id string, state artifact.State) Status {
	t.Helper()
	var status Status
	require.Eventually(t, func() bool {
		value, err := c.QueryWorkflow(t.Context(), id, "", StatusQuery)
		return err == nil && value.Get(&status) == nil && status.State == state
	}, time.Minute, 20*time.Millisecond, "%s wants to be %s, is %s", id, state, status.State)
	return status
}

func say(ctx context.Context, c client.Client, id, door string, said artifact.Command) error {
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: door, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{Command{Command: said}},
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// TestFreshHistoriesReplay runs lifecycles on a real server and replays what they
// did there. With -record the histories are kept for TestRecordedHistoriesReplay.
func TestFreshHistoriesReplay(t *testing.T) {
	c, d := server(t), newDesk()
	d.run = func(r RunRequest) (RunResult, error) {
		if r.ArtifactID == "undone" && r.Role == artifact.Primary {
			return RunResult{Status: RunFailed, ExitCode: 1}, nil
		}
		return RunResult{Status: RunSucceeded}, nil
	}
	host(t, c, d)
	named := func(id string) artifact.Request {
		return request(func(r *artifact.Request) { r.ArtifactID = id })
	}
	approve := func(id, bundle string) {
		require.NoError(t, say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}))
	}
	ids := map[string]string{}
	id, bundle := begin(t, c, named("straight"))
	require.Error(t, say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Approve, Actor: "user:author", BundleHash: bundle}))
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", DoorExecute, Command{Command: artifact.Command{Actor: "user:a"}}))
	approve(id, bundle)
	until(t, c, id, artifact.Executed)
	require.NoError(t, say(t.Context(), c, id, DoorArchive, artifact.Command{Actor: "user:a"}))
	require.NoError(t, c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	ids["straight"] = id

	id, bundle = begin(t, c, named("undone"))
	approve(id, bundle)
	until(t, c, id, artifact.Compensated)
	ids["undone"] = id

	id, bundle = begin(t, c, named("rejected"))
	require.NoError(t, say(t.Context(), c, id, DoorDecide, artifact.Command{Verb: artifact.Reject, Actor: "user:b", BundleHash: bundle}))
	until(t, c, id, artifact.Rejected)
	ids["rejected"] = id

	for name, id := range ids {
		h := historytest.Of(t, c, id, "")
		t.Logf("%s has %d events", name, len(h.Events))
		require.NoError(t, replay(h, id), name)
		historytest.Save(t, name, h)
	}
	require.LessOrEqual(t, len(historytest.Of(t, c, ids["straight"], "").Events), 110, "history events are paid for")
}

// TestManyLifecyclesAtOnce has 200 versions in review, approved and run together.
func TestManyLifecyclesAtOnce(t *testing.T) {
	c, d := server(t), newDesk()
	host(t, c, d)
	const lifecycles = 200
	began := time.Now()
	for n := range lifecycles {
		r := request(func(r *artifact.Request) { r.ArtifactID = fmt.Sprintf("many-%d", n) })
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: names.ArtifactLifecycleID(r.ArtifactID, 1), TaskQueue: names.QueueArtifacts,
		}, names.ArtifactLifecycle, Input{Request: r})
		require.NoError(t, err)
	}
	for n := range lifecycles {
		id := names.ArtifactLifecycleID(fmt.Sprintf("many-%d", n), 1)
		bundle := until(t, c, id, artifact.InReview).BundleHash
		signal := Command{Command: artifact.Command{Verb: artifact.Approve, Actor: "user:a", BundleHash: bundle}}
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", DoorDecide, signal))
	}
	for n := range lifecycles {
		until(t, c, names.ArtifactLifecycleID(fmt.Sprintf("many-%d", n), 1), artifact.Executed)
	}
	t.Logf("%d lifecycles in %s", lifecycles, time.Since(began))
	require.Len(t, d.runs, lifecycles)
}
