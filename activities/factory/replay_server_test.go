package factory

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/factory"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// serve runs the repair workflows on the local Temporal server, on a task queue
// of the test's own.
func serve(t *testing.T, r Replayer, reconciler Reconciler) (client.Client, string) {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(quiet())
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue := t.Name() + time.Now().Format(time.RFC3339Nano)
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.RawReplay, workflow.RegisterOptions{Name: names.RawReplay})
	w.RegisterWorkflowWithOptions(workflows.RawReconcile, workflow.RegisterOptions{Name: names.RawReconcile})
	w.RegisterActivityWithOptions(r.ReplayRaw, activity.RegisterOptions{Name: workflows.ReplayRawActivity})
	w.RegisterActivityWithOptions(r.RestoreLatestState, activity.RegisterOptions{Name: workflows.RestoreLatestStateActivity})
	w.RegisterActivityWithOptions(reconciler.PlanReconcile, activity.RegisterOptions{Name: workflows.PlanReconcileActivity})
	w.RegisterActivityWithOptions(reconciler.ReconcileFactory, activity.RegisterOptions{Name: workflows.ReconcileFactoryActivity})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return c, queue
}

func TestAReplayOnTheServerSurvivesFailingAttempts(t *testing.T) {
	a := newArchive(t)
	flow(a)
	target := a.emptied(t)
	r := a.replayer(target)
	var steps atomic.Int64
	r.At = func(Step) error {
		// Fails in the middle of the first three attempts.
		if n := steps.Add(1); n == 10 || n == 40 || n == 70 {
			return errKilled
		}
		return nil
	}
	c, queue := serve(t, r, a.reconciler(t))
	request := today()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, names.RawReplay, workflows.ReplayInput{Request: request})
	require.NoError(t, err)
	var status workflows.ReplayStatus
	require.NoError(t, run.Get(t.Context(), &status))
	require.Equal(t, a.documents(a.store, "processed/"), a.documents(target, "processed/"))
	require.Equal(t, a.documents(a.store, "quarantine/"), a.documents(target, "quarantine/"))
	require.Equal(t, latestOf(t, a.store).FactoryState, latestOf(t, target).FactoryState)
	require.True(t, status.Done)
	require.Equal(t, int64(40), status.Counts.Messages)
	require.Equal(t, int64(1), status.Counts.Latest)
	other := world{t: t, store: target}
	require.Equal(t, 7, other.dirty(), "the buckets from 07:40 to 08:10")
}

func TestAReconciliationOnTheServerSurvivesFailingAttempts(t *testing.T) {
	a := newArchive(t)
	missing := a.receive(messageOf(factory.SourceFactoryState, at("07:00:00")), at("07:00:01"))
	reconciler := a.reconciler(t)
	var steps atomic.Int64
	reconciler.At = func(Step) error {
		if steps.Add(1) == 2 {
			return errKilled
		}
		return nil
	}
	c, queue := serve(t, a.replayer(a.store), reconciler)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, names.RawReconcile, workflows.ReconcileRequest{WindowHours: 3})
	require.NoError(t, err)
	var result workflows.ReconcileResult
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, int64(1), result.Counts.Enqueued)
	require.Equal(t, []string{missing.rawKey()}, keysOf(received(t, reconciler.Telemetry)))
}
