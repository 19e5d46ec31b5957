package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	storage "millrace/storage/cloudinfra"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/cloudinfra"
	"millrace/workflows/names"
)

// TestBothCollectorsRunInTheWorker runs both at the same time in the whole
// program, on the local stand-ins: what the product itself runs on is measured,
// everything else is not configured and raises nothing.
func TestBothCollectorsRunInTheWorker(t *testing.T) {
	status, bucket := storagetest.Table(t, storagetest.Factory), storagetest.Bucket(t)
	_, telemetryURL := storagetest.Queue(t)
	_, lettersURL := storagetest.Queue(t)
	for _, unused := range []string{"MILLRACE_RULE_ERRORS_QUEUE_URL", "MILLRACE_JOB_RESULTS_QUEUE_URL"} {
		t.Setenv(unused, "")
	}
	c := ownNamespace(t)
	s, err := parse(t, "--queues=scheduled", "--telemetry-queue-url="+telemetryURL, "--telemetry-dlq-queue-url="+lettersURL,
		"--factory-status-table="+status.Name, "--data-bucket="+bucket.Name)
	require.NoError(t, err)
	s.FactoryIDs = []string{"factory-x"}
	require.NoError(t, bucket.Put(t.Context(), factory.SnapshotKey("factory-x", factory.MillisOf(time.Now())), "application/json", []byte("{}")))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s, slog.New(slog.DiscardHandler)) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()

	runs := map[string]client.WorkflowRun{}
	for _, name := range []string{names.CloudInfraFast, names.CloudInfraSlow} {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: names.QueueScheduled}, name, workflows.Input{})
		require.NoError(t, err)
		runs[name] = run
	}
	for name, run := range runs {
		var result workflows.Result
		require.NoError(t, run.Get(t.Context(), &result), name)
		require.Equal(t, storage.Committed, result.Status, name)
		require.Empty(t, result.Errors, name)
		exists, err := bucket.Exists(t.Context(), result.S3Key)
		require.NoError(t, err)
		require.True(t, exists, name)
	}
	latest, err := storage.Store{Table: status}.Latest(t.Context())
	require.NoError(t, err)
	fast, slow := latest.Fast, latest.Slow
	require.Equal(t, cloudinfra.NotConfigured, fast.BackendRuntime.Status)
	require.Equal(t, cloudinfra.NotConfigured, fast.Datastores.Status)
	require.Equal(t, cloudinfra.NotConfigured, slow.EKSManagement.Status)
	require.Equal(t, cloudinfra.Normal, fast.DataPipeline.Status)
	require.Equal(t, cloudinfra.Unknown, fast.FactoryFreshness.Status, "the factory was never seen")
	require.Len(t, fast.DataPipeline.Temporal.TaskQueues, 5)
	require.Equal(t, []cloudinfra.Queue{{Name: "telemetry"}, {Name: "telemetry-dlq", IsDLQ: true}}, fast.DataPipeline.Queues)
	require.Equal(t, []string{"storage_raw_missing:factory-x", "storage_processed_agg_missing:factory-x"}, slow.StorageFreshness.Reasons)
	require.NotNil(t, slow.StorageFreshness.Factories[0].LatestProcessedAt)
	require.Equal(t, cloudinfra.Warning, latest.OverallStatus)
	require.Equal(t, cloudinfra.ProbeNotConfigured, fast.Probes[cloudinfra.ProbeRedis])
}

func TestTheWatchedQueuesAreTheProductsOwn(t *testing.T) {
	s, err := parse(t, "--queues=scheduled", "--telemetry-dlq-queue-url=http://q/d")
	require.NoError(t, err)
	dlqs := 0
	for _, q := range watchedQueues(s) {
		if q.IsDLQ {
			require.Equal(t, "http://q/d", q.URL)
			dlqs++
		}
	}
	require.Equal(t, 1, dlqs)
}
