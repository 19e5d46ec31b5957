package status

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/exact"
	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
)

func dial(t *testing.T) client.Client {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// sources are all parts under names of this test alone.
func sources(t *testing.T) Sources {
	t.Helper()
	unique := fmt.Sprint(time.Now().UnixNano())
	queues, url := storagetest.Queue(t)
	return Sources{
		Temporal: dial(t), Store: storage.Store{Table: storagetest.Table(t, storagetest.Factory), HistoryTTL: time.Hour},
		SQS: queues, QueueURLs: []string{url}, DLQs: []string{url}, Factories: []string{"factory-x", "factory-y"},
		ScheduleIDs: []string{"status-" + unique, "status-none-" + unique},
		ConsumerID:  func(n int) string { return fmt.Sprintf("status-consumer-%s/%d", unique, n) },
		DrainIDs:    []string{"status-drain-" + unique, "status-drain-of-jobs-" + unique}, Now: time.Now,
	}
}

func TestNothingThereYet(t *testing.T) {
	s := sources(t)
	report := s.Gather(t.Context())
	require.Empty(t, report.Problems)
	require.Equal(t, StateMissing, report.Schedules[0].State)
	require.Equal(t, []Workflow{{ID: s.ConsumerID(0), State: StateMissing}, {ID: s.DrainIDs[0], State: StateMissing}, {ID: s.DrainIDs[1], State: StateMissing}}, report.Workflows)
	require.Zero(t, *report.Queues[0].MessagesVisible)
	require.Zero(t, *report.Queues[0].OldestAgeSeconds)
	require.Equal(t, []Factory{{FactoryID: "factory-x"}, {FactoryID: "factory-y"}}, report.Factories)
	var out bytes.Buffer
	require.NoError(t, report.Text(&out))
	require.Contains(t, out.String(), "never heard of")
}

func TestSchedulesShowTheirLastRunAndPause(t *testing.T) {
	s := sources(t)
	taskQueue := s.ScheduleIDs[0]
	handle, err := s.Temporal.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: s.ScheduleIDs[0], Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
		Action: &client.ScheduleWorkflowAction{ID: s.ScheduleIDs[0], Workflow: "idle", TaskQueue: taskQueue},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Delete(context.Background())) })
	host(t, s.Temporal, taskQueue)
	require.NoError(t, handle.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	require.Eventually(t, func() bool {
		got := s.Gather(t.Context()).Schedules[0]
		return got.LastRunStatus == "Completed" && got.LastRunAt != nil
	}, 20*time.Second, 200*time.Millisecond)
	shown := s.Gather(t.Context()).Schedules[0]
	require.Equal(t, StateActive, shown.State)
	require.Zero(t, shown.LatenessSeconds)
	require.WithinDuration(t, time.Now(), *shown.NextRunAt, time.Hour+time.Second)

	s.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	require.InDelta(t, 2*3600, s.Gather(t.Context()).Schedules[0].LatenessSeconds, 60)
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "moving\nhouse"}))
	shown = s.Gather(t.Context()).Schedules[0]
	require.Equal(t, StatePaused, shown.State)
	require.Zero(t, shown.LatenessSeconds, "a paused schedule is late for nothing")
	var out bytes.Buffer
	require.NoError(t, s.Gather(t.Context()).Text(&out))
	require.Contains(t, out.String(), "paused (moving house)")
}

// host works on a task queue with a workflow that ends at once and one that
// waits for a beating activity.
func host(t *testing.T, c client.Client, taskQueue string) {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "idle"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 2 * time.Second})
		return workflow.ExecuteActivity(ctx, "beat").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "busy"})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			time.Sleep(50 * time.Millisecond)
		}
		return ctx.Err()
	}, activity.RegisterOptions{Name: "beat"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

func TestWorkflowsShowTheirHeartbeat(t *testing.T) {
	s := sources(t)
	host(t, s.Temporal, s.DrainIDs[0])
	for _, id := range []string{s.ConsumerID(0), s.ConsumerID(1)} {
		_, err := s.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: s.DrainIDs[0]}, "busy")
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, s.Temporal.TerminateWorkflow(context.Background(), id, "", "test ends"))
		})
	}
	require.Eventually(t, func() bool {
		shown := s.Gather(t.Context()).Workflows
		return len(shown) == 4 && shown[0].LastHeartbeatAt != nil && shown[1].LastHeartbeatAt != nil
	}, 20*time.Second, 200*time.Millisecond)
	shown := s.Gather(t.Context()).Workflows
	require.Equal(t, StateActive, shown[1].State)
	require.Equal(t, "beat", shown[1].Activity)
	require.EqualValues(t, 1, shown[1].Attempt)
	require.WithinDuration(t, time.Now(), *shown[1].LastHeartbeatAt, 20*time.Second)
	require.Equal(t, StateMissing, shown[2].State)
}

func TestQueuesShowDepthAndAge(t *testing.T) {
	s := sources(t)
	_, err := s.SQS.(*sqs.Client).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &s.QueueURLs[0], MessageBody: aws.String("x")})
	require.NoError(t, err)
	shown := s.Gather(t.Context()).Queues[0]
	require.EqualValues(t, 1, *shown.MessagesVisible)
	require.True(t, shown.IsDLQ)
	require.Nil(t, shown.OldestAgeSeconds, "nobody knows")
	s.OldestAge = func(_ context.Context, url string) (time.Duration, bool, error) {
		return 90 * time.Second, url == s.QueueURLs[0], nil
	}
	require.EqualValues(t, 90, *s.Gather(t.Context()).Queues[0].OldestAgeSeconds)
	var out bytes.Buffer
	require.NoError(t, s.Gather(t.Context()).Text(&out))
	require.Contains(t, out.String(), "dead letters wait")
}

func TestFactoriesShowTheirFreshnessAsOfNow(t *testing.T) {
	s := sources(t)
	began := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	heard := began.Add(-90 * time.Second)
	require.NoError(t, s.Store.Commit(t.Context(), factory.Latest{
		PK: factory.PK("factory-x"), SK: factory.LatestSK, FactoryID: "factory-x", Rev: 1, UpdatedAt: factory.MillisOf(heard),
		LastInfraStateAt: &heard, LastFactoryStateAt: &heard, Risk: &factory.Risk{Score: exact.MustParse("91.66"), Level: factory.LevelSafe},
		PipelineStatus: &factory.PipelineStatus{Status: factory.Normal},
	}))
	s.Now = func() time.Time { return began }
	report := s.Gather(t.Context())
	x := report.Factories[0]
	require.True(t, x.Found)
	require.EqualValues(t, 90, *x.InfraStateAgeSeconds)
	require.Equal(t, factory.Warning, x.PipelineStatus, "what was stored said normal")
	require.Equal(t, "safe", x.RiskLevel)
	require.Equal(t, "91.66", x.RiskScore.String())

	var out bytes.Buffer
	require.NoError(t, report.Text(&out))
	require.Regexp(t, `(?m)^factory-x +1m30s +1m30s +warning +safe +91.66 +1m30s ago *$`, out.String())
	out.Reset()
	require.NoError(t, report.JSON(&out))
	var document map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &document))
	require.InEpsilon(t, 91.66, document["factories"].([]any)[0].(map[string]any)["risk_score"], 1e-9)
}

func TestOnePartThatFailsHidesNoOther(t *testing.T) {
	s := sources(t)
	s.Store.Table.Name = "no-such-table"
	s.QueueURLs = append(s.QueueURLs, s.QueueURLs[0]+"-no")
	report := s.Gather(t.Context())
	require.NotNil(t, report.Queues[0].MessagesVisible)
	require.Nil(t, report.Queues[1].MessagesVisible)
	require.Len(t, report.Problems, 2)
	require.Contains(t, report.Problems[0], "queues: ")
	require.Contains(t, report.Problems[1], "factories: ")
	require.Len(t, report.Schedules, 2)
	var out bytes.Buffer
	require.NoError(t, report.Text(&out))
	require.Contains(t, out.String(), "PROBLEM factories: ")
}
