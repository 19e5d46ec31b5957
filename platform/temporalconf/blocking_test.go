package temporalconf

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/monitoring"
)

// heard ends with the first signal it hears.
func heard(ctx workflow.Context) (string, error) {
	var said string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &said)
	return said, nil
}

func dialWith(t *testing.T, ring monitoring.KeyRing) client.Client {
	t.Helper()
	text, err := monitoring.MarshalKeyRing(ring)
	require.NoError(t, err)
	t.Setenv(PayloadKeysVariable, string(text))
	c, err := Dial(t.Context(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func listenWith(t *testing.T, c client.Client, queue string) worker.Worker {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(heard, workflow.RegisterOptions{Name: "heard"})
	require.NoError(t, w.Start())
	return w
}

func TestASignalUnderANewKeyWaitsForAWorkerThatHasIt(t *testing.T) {
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	queue := "keys-" + rand.Text()
	both := ring(t, "k1", "k2")
	old, next := dialWith(t, monitoring.KeyRing{Current: "k1", Keys: map[string][]byte{"k1": both.Keys["k1"]}}), dialWith(t, both)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	behind := listenWith(t, old, queue)
	run, err := old.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "heard")
	require.NoError(t, err)
	require.NoError(t, next.SignalWorkflow(ctx, queue, "", "say", "hello"))
	require.Eventually(t, func() bool { // a workflow task failed for want of the key
		d, err := next.DescribeWorkflow(ctx, queue, "")
		return err == nil && d.RawResponse.GetPendingWorkflowTask().GetAttempt() > 1
	}, 30*time.Second, 50*time.Millisecond)
	behind.Stop()
	ahead := listenWith(t, next, queue)
	defer ahead.Stop()
	var said string
	require.NoError(t, next.GetWorkflow(ctx, run.GetID(), run.GetRunID()).Get(ctx, &said))
	require.Equal(t, "hello", said)
}
