package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	activities "millrace/activities/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// ownNamespace makes a namespace for this test alone: the worker's task queues
// have fixed names.
func ownNamespace(t testing.TB) client.Client {
	t.Helper()
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	name := fmt.Sprintf("worker-test-%d", time.Now().UnixNano())
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	t.Setenv("TEMPORAL_NAMESPACE", name)
	options.Namespace = name
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Eventually(t, func() bool {
		_, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: name})
		return err == nil
	}, 30*time.Second, 200*time.Millisecond, "the server learns of a namespace some seconds later")
	return c
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// TestTheWorkerWorksAndStopsWithoutLoss runs the whole program: telemetry comes
// from the queue into the read model, a refresh runs, metrics are served, and on
// SIGTERM the drain hands over to the next run at once.
func TestTheWorkerWorksAndStopsWithoutLoss(t *testing.T) {
	table, bucket := storagetest.Table(t, storagetest.Factory), storagetest.Bucket(t)
	queues, url := storagetest.Queue(t)
	_, errorsURL := storagetest.Queue(t)
	c := ownNamespace(t)
	s, err := parse(t, "--telemetry-queue-url="+url, "--rule-errors-queue-url="+errorsURL, "--factory-status-table="+table.Name,
		"--data-bucket="+bucket.Name, "--metrics-address="+freeAddress(t))
	require.NoError(t, err)
	s.FactoryIDs = []string{"factory-x", "factory-y"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s, slog.New(slog.DiscardHandler)) }()

	ingest, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.TelemetryIngestID(0), TaskQueue: names.QueueTelemetry},
		names.TelemetryIngest, workflows.IngestInput{})
	require.NoError(t, err)
	at := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	body := fmt.Appendf(nil, `{"schema_version":"0.1.0","message_id":"factory-x:factory_state:n1:%[1]s","factory_id":"factory-x","node_id":"n1","source_type":"factory_state",`+
		`"source_timestamp":%[1]q,"published_at":null,"payload":{"sensor":{"sample_count":1,"temperature_celsius_avg":21.5}}}`, at)
	message, err := json.Marshal(activities.Envelope{Body: body, Topic: "aegis/factory-x/factory_state", ReceivedAt: time.Now().UnixMilli(), TraceID: "trace-1"})
	require.NoError(t, err)
	_, err = queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(string(message))})
	require.NoError(t, err)
	store := storage.Store{Table: table}
	require.Eventually(t, func() bool {
		latest, err := store.Latest(t.Context(), "factory-x")
		require.NoError(t, err)
		return latest != nil
	}, 30*time.Second, 100*time.Millisecond)

	refresh, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: names.QueueScheduled}, names.FactoryRefresh)
	require.NoError(t, err)
	var refreshed workflows.RefreshResult
	require.NoError(t, refresh.Get(t.Context(), &refreshed))
	require.Len(t, refreshed.Refreshed, 2)
	require.Equal(t, workflows.StatusMissing, refreshed.Refreshed[1].Status)
	requireMetrics(t, s.MetricsAddress)

	began := time.Now()
	stop()
	require.NoError(t, <-ended)
	require.Less(t, time.Since(began), s.TaskQueues.StopTimeout, "the drain stopped by itself")
	description, err := c.DescribeWorkflow(t.Context(), ingest.GetID(), "")
	require.NoError(t, err)
	require.Empty(t, description.RawResponse.GetPendingActivities(), "the stopped drain was completed, not left to time out")
}

func requireMetrics(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `millrace_ingest_messages_total{outcome="applied",source_type="factory_state"} 1`)
	require.Contains(t, string(body), "temporal_")
}

func TestAWorkerWithoutTemporalSaysSo(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", freeAddress(t))
	s, err := parse(t, "--queues=scheduled")
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	require.ErrorContains(t, run(ctx, s, slog.New(slog.DiscardHandler)), "connect to Temporal")
}
