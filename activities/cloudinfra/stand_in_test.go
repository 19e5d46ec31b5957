package cloudinfra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/platform/config"
	factorystore "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/cloudinfra"
)

func decimal(t *testing.T, text string) *exact.Decimal {
	t.Helper()
	d, err := exact.Parse(text)
	require.NoError(t, err)
	return &d
}

func storageCollector(bucket objects.Bucket, factories ...string) Collector {
	return Collector{
		Bucket: bucket, FactoryIDs: factories, Settings: config.CloudInfra{StorageLookback: 24 * time.Hour},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
}

func put(t *testing.T, bucket objects.Bucket, keys ...string) {
	t.Helper()
	for _, key := range keys {
		require.NoError(t, bucket.Put(t.Context(), key, objects.JSON, []byte(`{}`)))
	}
}

// The bucket stamps objects with the time they are written, so that these tests
// live in the present: what they vary is the keys.
func TestTheNewestObjectIsFoundWhateverItsKey(t *testing.T) {
	bucket := storagetest.Bucket(t)
	now := time.Now().UTC()
	const f = "factory-a"
	hour := now.Truncate(time.Hour)
	raw := func(source factory.SourceType, node string, at time.Time) string {
		stamp := at.Format("2006-01-02T15:04:05Z")
		return factory.RawKey(f, string(source), now, fmt.Sprintf("%s:%s:%s:%s", f, source, node, stamp))
	}
	snapshot := factory.SnapshotKey(f, factory.MillisOf(now))
	put(t, bucket, raw(factory.SourceFactoryState, "worker1", hour), factory.AggregateKey(f, hour.Add(-time.Hour)), snapshot)
	c := storageCollector(bucket, f, "factory-b")
	got := must[[]cloudinfra.StorageFactory](t, c, cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.Equal(t, f, got[0].FactoryID)
	for name, at := range map[string]*time.Time{"raw": got[0].LatestRawAt, "processed": got[0].LatestProcessedAt, "aggregate": got[0].LatestProcessedAggAt} {
		require.NotNil(t, at, name)
		require.WithinDuration(t, now, *at, time.Minute, name)
	}
	require.Equal(t, cloudinfra.StorageFactory{FactoryID: "factory-b"}, got[1], "nothing is found of a factory that never sent")

	before := *got[0].LatestRawAt
	time.Sleep(1100 * time.Millisecond) // objects are stamped to the second
	put(t, bucket, raw(factory.SourceInfraState, "cluster", hour))
	got = must[[]cloudinfra.StorageFactory](t, c, cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.True(t, got[0].LatestRawAt.After(before), "of both source types")
	before = *got[0].LatestRawAt
	time.Sleep(1100 * time.Millisecond)
	put(t, bucket, raw(factory.SourceFactoryState, "a-node", hour)) // sorts before the others
	got = must[[]cloudinfra.StorageFactory](t, c, cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.True(t, got[0].LatestRawAt.After(before), "of all nodes")
}

func TestBodiesWithOtherIDsAreFoundToo(t *testing.T) {
	bucket := storagetest.Bucket(t)
	now := time.Now().UTC()
	put(t, bucket, factory.RawKey("factory-a", "infra_state", now, "0b7c2a5e-trace"))
	got := must[[]cloudinfra.StorageFactory](t, storageCollector(bucket, "factory-a"), cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.NotNil(t, got[0].LatestRawAt)
}

func TestWhatIsOlderThanTheLookBackIsNotFound(t *testing.T) {
	bucket := storagetest.Bucket(t)
	now := time.Now().UTC()
	put(t, bucket, factory.RawKey("factory-a", "infra_state", now, "factory-a:infra_state:cluster:"+now.Format("2006-01-02T15:04:05Z")))
	later := now.Add(25 * time.Hour)
	got := must[[]cloudinfra.StorageFactory](t, storageCollector(bucket, "factory-a"), cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: later})
	require.Equal(t, cloudinfra.StorageFactory{FactoryID: "factory-a"}, got[0])
}

func TestListingsAreFew(t *testing.T) {
	bucket := storagetest.Bucket(t)
	now := time.Now().UTC()
	const f = "factory-a"
	for i := range 30 {
		at := now.Add(-time.Duration(i) * time.Minute)
		put(t, bucket, factory.SnapshotKey(f, factory.MillisOf(at)), factory.RawKey(f, "infra_state", now, f+":infra_state:cluster:"+at.Format("2006-01-02T15:04:05Z")))
	}
	var calls storagetest.Calls
	bucket.Client = s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle = true })
	must[[]cloudinfra.StorageFactory](t, storageCollector(bucket, f), cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.LessOrEqual(t, calls.Take()["ListObjectsV2"], 10)
}

func TestAListingThatFailsIsAnErrorOfItsFactory(t *testing.T) {
	bucket := storagetest.Bucket(t)
	now := time.Now().UTC()
	put(t, bucket, factory.SnapshotKey("factory-b", factory.MillisOf(now)))
	healthy := bucket.Client
	bucket.Client = failingLists{API: healthy, of: "raw/factory-b"}
	found, err := run[[]cloudinfra.StorageFactory](t, storageCollector(bucket, "factory-a", "factory-b"), cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	require.NoError(t, err)
	require.Len(t, found.Errors, 1)
	require.Equal(t, []string{"factory-b", "s3:ListObjectsV2"}, []string{found.Errors[0].FactoryID, found.Errors[0].Source})
	require.NotNil(t, found.Value[1].LatestProcessedAt, "the other kinds are known all the same")

	bucket.Client = failingLists{API: healthy}
	_, err = run[[]cloudinfra.StorageFactory](t, storageCollector(bucket, "factory-a"), cloudinfra.ProbeStorage, workflows.ProbeRequest{AsOf: now})
	e, _ := failureOf(t, err)
	require.Equal(t, "s3:ListObjectsV2", e.Source)
}

// failingLists fails the listings below a prefix.
type failingLists struct {
	objects.API
	of string
}

func (f failingLists) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	if prefix := aws.ToString(in.Prefix); len(prefix) >= len(f.of) && prefix[:len(f.of)] == f.of {
		return nil, errors.New("slow down")
	}
	return f.API.ListObjectsV2(ctx, in, o...)
}

func TestFreshnessOfStoredFactories(t *testing.T) {
	factories := factorystore.Store{Table: storagetest.Table(t, storagetest.Factory), HistoryTTL: time.Hour}
	infra := noon.Add(-61 * time.Second)
	require.NoError(t, factories.Commit(t.Context(), factory.Latest{
		PK: factory.PK("factory-a"), SK: factory.LatestSK, FactoryID: "factory-a", Rev: 1, UpdatedAt: factory.MillisOf(noon), LastInfraStateAt: &infra,
	}))
	c := Collector{Factories: factories, FactoryIDs: []string{"factory-a", "factory-b"}, Now: time.Now}
	got := must[[]cloudinfra.FactoryState](t, c, cloudinfra.ProbeFreshness, ask)
	require.Equal(t, []cloudinfra.Status{cloudinfra.Warning, cloudinfra.Unknown}, []cloudinfra.Status{got[0].PipelineStatus, got[1].PipelineStatus})
	require.Equal(t, int64(61), *got[0].InfraAgeSeconds)

	factories.Table.Name = "no-such-table"
	c.Factories = factories
	_, err := run[[]cloudinfra.FactoryState](t, c, cloudinfra.ProbeFreshness, ask)
	e, _ := failureOf(t, err)
	require.Equal(t, "dynamodb:BatchGetItem", e.Source)
}

func TestDepthOfARealQueue(t *testing.T) {
	client, queueURL := storagetest.Queue(t)
	for range 3 {
		_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String("m")})
		require.NoError(t, err)
	}
	c := Collector{SQS: client, Queues: []WatchedQueue{{Name: "q", URL: queueURL, IsDLQ: true}}, Now: time.Now}
	require.Equal(t, []cloudinfra.Queue{{Name: "q", MessagesVisible: 3, IsDLQ: true}}, must[[]cloudinfra.Queue](t, c, cloudinfra.ProbeQueues, ask))
}

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

func TestSchedulesOfARealServer(t *testing.T) {
	temporal := dial(t)
	id := fmt.Sprint("watched-", time.Now().UnixNano())
	_, err := temporal.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}}, Paused: true,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: "Nothing", TaskQueue: id},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = temporal.ScheduleClient().GetHandle(context.Background(), id).Delete(context.Background()) })
	c := Collector{Schedules: temporal.ScheduleClient(), Now: time.Now, Settings: config.CloudInfra{WatchedSchedules: []string{id, "no-such-schedule"}}}
	found, err := run[[]cloudinfra.Schedule](t, c, cloudinfra.ProbeSchedules, workflows.ProbeRequest{AsOf: time.Now()})
	require.NoError(t, err)
	require.Equal(t, []cloudinfra.Schedule{{ID: id, IntervalSeconds: 3600, Paused: true}}, found.Value)
	require.Equal(t, []string{"temporal:DescribeSchedule", "NotFound"}, []string{found.Errors[0].Source, found.Errors[0].Code})

	c.Settings.WatchedSchedules = []string{"*"}
	require.Eventually(t, func() bool {
		all, err := run[[]cloudinfra.Schedule](t, c, cloudinfra.ProbeSchedules, workflows.ProbeRequest{AsOf: time.Now()})
		if err != nil {
			return false // a busy server: look again
		}
		for _, s := range all.Value {
			if s.ID == id {
				return true
			}
		}
		return false
	}, 20*time.Second, 200*time.Millisecond, "all that there are")
}

func TestLatenessOfASchedule(t *testing.T) {
	made := noon.Add(-time.Hour)
	describe := func(change func(*client.ScheduleDescription)) *client.ScheduleDescription {
		d := &client.ScheduleDescription{
			Schedule: client.Schedule{
				Spec:  &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 5 * time.Minute}, {Every: time.Minute}}},
				State: &client.ScheduleState{},
			},
			Info: client.ScheduleInfo{CreatedAt: made, RecentActions: []client.ScheduleActionResult{{ActualTime: noon.Add(-9 * time.Minute)}, {ActualTime: noon.Add(-4 * time.Minute)}}},
		}
		change(d)
		return d
	}
	cases := []struct {
		name     string
		change   func(*client.ScheduleDescription)
		lateness int64
	}{
		{"overdue", func(*client.ScheduleDescription) {}, 180},
		{"changed since", func(d *client.ScheduleDescription) { d.Info.LastUpdateAt = noon.Add(-90 * time.Second) }, 30},
		{"never ran", func(d *client.ScheduleDescription) { d.Info.RecentActions = nil }, 59 * 60},
		{"paused", func(d *client.ScheduleDescription) { d.Schedule.State.Paused = true }, 0},
		{"a calendar", func(d *client.ScheduleDescription) {
			d.Schedule.Spec.Intervals, d.Info.NextActionTimes = nil, []time.Time{noon, noon.Add(2 * time.Minute)}
		}, 120},
		{"no interval", func(d *client.ScheduleDescription) { d.Schedule.Spec, d.Info.NextActionTimes = nil, nil }, 0},
	}
	for _, c := range cases {
		require.Equal(t, c.lateness, scheduleOf("s", describe(c.change), noon).LatenessSeconds, c.name)
	}
}

func TestBacklogOfARealServer(t *testing.T) {
	temporal := dial(t)
	queue := fmt.Sprint("backlog-", time.Now().UnixNano())
	for i := range 2 {
		_, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: fmt.Sprint(queue, "-", i), TaskQueue: queue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, "NobodyWorksOnThis")
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = temporal.TerminateWorkflow(context.Background(), fmt.Sprint(queue, "-", i), "", "test is over")
		})
	}
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	c := Collector{TaskQueues: namespaced{temporal.WorkflowService(), options.Namespace}, Now: time.Now, Settings: config.CloudInfra{WatchedTaskQueues: []string{queue, queue + "-idle"}}}
	require.Eventually(t, func() bool {
		got := must[[]cloudinfra.TaskQueue](t, c, cloudinfra.ProbeTaskQueues, ask)
		return len(got) == 2 && got[0].BacklogCount == 2 && got[0].BacklogAge.Sign() > 0 && got[1].BacklogCount == 0
	}, 30*time.Second, 500*time.Millisecond)
}

// namespaced asks in the server's namespace: activities of the test environment
// are in one of its own.
type namespaced struct {
	TaskQueues
	namespace string
}

func (n namespaced) DescribeTaskQueue(ctx context.Context, in *workflowservice.DescribeTaskQueueRequest, o ...grpc.CallOption) (*workflowservice.DescribeTaskQueueResponse, error) {
	in.Namespace = cmp.Or(n.namespace, client.DefaultNamespace)
	return n.TaskQueues.DescribeTaskQueue(ctx, in, o...)
}
