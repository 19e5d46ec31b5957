package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/factory"
	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// line is one factory, its stores and a clock that the test moves.
type line struct {
	t     *testing.T
	store storage.Store
	now   time.Time
}

func (l *line) clock() time.Time { return l.now }

func (l *line) aggregator(now func() time.Time) activities.Aggregator {
	return activities.Aggregator{
		Store: l.store, Factories: []string{"factory-x"}, Rules: factory.DefaultGraphRules(), Now: now, Logger: slog.New(slog.DiscardHandler),
	}
}

func (l *line) send(source, node string, at time.Time, payload string) {
	l.t.Helper()
	l.now = at.Add(400 * time.Millisecond)
	id := fmt.Sprintf("factory-x:%s:%s:%s", source, node, at.Format(time.RFC3339))
	body := fmt.Appendf(nil, `{"schema_version":"0.1.0","message_id":%q,"factory_id":"factory-x","node_id":%q,"source_type":%q,"source_timestamp":%q,"published_at":null,"payload":%s}`,
		id, node, source, at.Format(time.RFC3339), payload)
	ingester := activities.Ingester{Store: l.store, Now: l.clock}
	result, err := ingester.Ingest(l.t.Context(), activities.Envelope{Body: body, Topic: "aegis/factory-x/" + source, ReceivedAt: l.now.UnixMilli(), TraceID: "t"}, nil)
	require.NoError(l.t, err)
	require.Equal(l.t, activities.Applied, result.Outcome)
	require.NoError(l.t, ingester.Project(l.t.Context(), result))
}

// live lets the factory run through one bucket and aggregates it two minutes
// after its end, as the schedule does.
func (l *line) live(start time.Time) {
	l.t.Helper()
	l.send("infra_state", "cluster", start, fmt.Sprintf(
		`{"heartbeat":{"agent_status":"alive"},"node_summary":{"total":1,"ready":1},"nodes":[{"node_id":"head","role":"worker","ready":true,"cpu_usage_percent":%d.123456}]}`, start.Minute()))
	for second := 1; second < 300; second += 149 {
		l.send("factory_state", "n1", start.Add(time.Duration(second)*time.Second), fmt.Sprintf(
			`{"sensor":{"sample_count":1,"temperature_celsius_avg":%d.%d75},"ai_result":{"sample_count":1,"fire_score":0.%d}}`, 18+start.Hour()%9, second%10, start.Minute()%10))
	}
	l.now = start.Add(factory.BucketLength + 2*time.Minute + time.Second)
	a := l.aggregator(l.clock)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a.AggregateGraphs)
	_, err := env.ExecuteActivity(a.AggregateGraphs, workflows.AggregateRequest{Buckets: []time.Time{start}})
	require.NoError(l.t, err)
}

// graphs are all items and archives of the factory, byte for byte.
func (l *line) graphs() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for graph, err := range l.store.Graphs(l.t.Context(), "factory-x", time.Time{}, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
		require.NoError(l.t, err)
		body, err := factory.EncodeJSON(graph)
		require.NoError(l.t, err)
		all[graph.SK] = string(body)
		archive := factory.AggregateKey("factory-x", graph.BucketStart)
		body, err = l.store.Bucket.Get(l.t.Context(), archive, 1<<20)
		require.NoError(l.t, err)
		all[archive] = string(body)
	}
	return all
}

// expire removes the rows that DynamoDB's TTL removes within days.
func (l *line) expire(prefixes ...string) {
	l.t.Helper()
	for _, prefix := range prefixes {
		for item, err := range l.store.Table.Query(l.t.Context(), table.Range{Partition: factory.PK("factory-x"), From: prefix, To: prefix + "~"}) {
			require.NoError(l.t, err)
			var key struct {
				SK string `json:"sk"`
			}
			require.NoError(l.t, table.Decode(item, &key))
			require.NoError(l.t, l.store.Table.Delete(l.t.Context(), table.Key{Partition: factory.PK("factory-x"), Sort: key.SK}, nil))
		}
	}
}

// temporalCLI is the official command, as operators use it.
func temporalCLI(t testing.TB) string {
	t.Helper()
	built, err := filepath.Abs("../bin/temporal")
	require.NoError(t, err)
	if _, err := os.Stat(built); err == nil {
		return built
	}
	found, err := exec.LookPath("temporal")
	require.NoError(t, err, "no temporal command in bin/ or on PATH")
	return found
}

// TestABackfilledDayIsTheSameByteForByte aggregates a day as it happens, lets
// everything that has a TTL expire, and has the official CLI backfill the day
// from what is left in the bucket, months later.
func TestABackfilledDayIsTheSameByteForByte(t *testing.T) {
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	l := &line{t: t, store: storage.Store{Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), HistoryTTL: 2 * time.Hour}}
	day := time.Date(2026, 5, 31, 0, 0, 0, 0, time.UTC)
	const buckets = 288
	began := time.Now()
	for i := range buckets {
		l.live(day.Add(time.Duration(i) * factory.BucketLength))
	}
	original := l.graphs()
	t.Log("a day took", time.Since(began))
	require.Len(t, original, 2*buckets)
	l.expire(factory.HistoryPrefix, factory.GraphPrefix)
	require.Empty(t, l.graphs())

	id := fmt.Sprintf("backfill-%d", time.Now().UnixNano())
	began = time.Now()
	temporal := hostAggregation(t, l, id)
	schedule := temporal.ScheduleClient().GetHandle(t.Context(), id)
	cli := exec.CommandContext(t.Context(), temporalCLI(t), "schedule", "backfill", "--schedule-id", id, "--overlap-policy", "BufferAll",
		"--start-time", "2026-05-31T00:05:01Z", "--end-time", "2026-06-01T00:02:00Z")
	out, err := cli.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Eventually(t, func() bool {
		description, err := schedule.Describe(t.Context())
		require.NoError(t, err)
		return description.Info.NumActions == buckets && len(description.Info.RunningWorkflows) == 0
	}, 5*time.Minute, 500*time.Millisecond)

	t.Log("and its backfill", time.Since(began))
	rebuilt := l.graphs()
	for key, want := range original {
		require.Equal(t, want, rebuilt[key], key)
	}
}

// hostAggregation makes a paused schedule of the aggregation with a worker of
// its own.
func hostAggregation(t *testing.T, l *line, id string) client.Client {
	t.Helper()
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	temporal, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	w := worker.New(temporal, id, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.GraphAggregate, workflow.RegisterOptions{Name: names.GraphAggregate})
	w.RegisterActivityWithOptions(l.aggregator(time.Now).AggregateGraphs, activity.RegisterOptions{Name: workflows.AggregateGraphsActivity})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	handle, err := temporal.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Paused: true, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 5 * time.Minute, Offset: 2 * time.Minute}}},
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: names.GraphAggregate, TaskQueue: id, Args: []any{workflows.AggregateInput{}}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Delete(context.Background())) })
	return temporal
}
