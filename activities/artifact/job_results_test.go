package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/artifact"
	"millrace/domain/factory"
	"millrace/platform/awsconf"
	"millrace/platform/queue"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/artifact"
)

// mailroom is the drain of replies over the desk's store, with a queue and a
// quarantine of its own, and one run that was sent.
type mailroom struct {
	*desk
	JobResults
	told []workflows.JobResult
	deaf error
}

func newMailroom(t *testing.T) *mailroom {
	t.Helper()
	m := &mailroom{desk: newDesk(t)}
	client, url := storagetest.Queue(t)
	m.JobResults = JobResults{
		Queue: queue.Queue{Client: client, URL: url}, Store: m.desk.Store, Quarantine: storagetest.Bucket(t), Temporal: m,
		Settings: queue.Settings{Poll: time.Second}, Stretch: 2 * time.Second, Now: func() time.Time { return m.now }, Logger: slog.New(slog.DiscardHandler),
	}
	v := m.submit(deviceJob())
	_, err := m.jobs(&outlet{}).SendJob(t.Context(), jobRequest(v, 1))
	require.NoError(t, err)
	return m
}

func (m *mailroom) SignalWorkflow(_ context.Context, workflowID, _, name string, result any) error {
	if m.deaf != nil {
		return m.deaf
	}
	if workflowID != "artifact/fix/v1" || name != workflows.JobResultSignal {
		return fmt.Errorf("told %s %s", workflowID, name)
	}
	m.told = append(m.told, result.(workflows.JobResult))
	return nil
}

func (m *mailroom) reply(change ...func(*artifact.JobReply)) artifact.JobReply {
	r := artifact.JobReply{
		RunID: runID(1), FactoryID: "factory-a", Status: artifact.JobSucceeded, Detail: "adjusted", Stdout: "out\n", Stderr: "err\n",
		StartedAt: m.now.Add(-2 * time.Second), FinishedAt: m.now.Add(-500 * time.Millisecond),
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func envelope(t *testing.T, topic string, body []byte, at time.Time) queue.Message {
	t.Helper()
	text, err := json.Marshal(jobEnvelope{Body: body, Topic: topic, ReceivedAt: at.UnixMilli(), TraceID: "7e146a2c-95b5-6caf-98b9-50e3969734c7"})
	require.NoError(t, err)
	return queue.Message{ID: "m-1", Body: string(text)}
}

func (m *mailroom) message(r artifact.JobReply) queue.Message {
	body, err := r.Encode()
	require.NoError(m, err)
	return envelope(m.T, artifact.JobResultTopic(r.FactoryID, r.RunID), body, m.now)
}

func (m *mailroom) handle(message queue.Message) (map[string]int64, error) {
	h := &jobResultHandler{JobResults: m.JobResults, outcomes: map[string]int64{}}
	finish, err := h.Handle(m.Context(), message)
	require.Nil(m, finish)
	return h.totals(), err
}

func (m *mailroom) took(message queue.Message, want string) {
	m.Helper()
	outcomes, err := m.handle(message)
	require.NoError(m, err)
	require.Equal(m, map[string]int64{want: 1}, outcomes)
}

func (m *mailroom) run() storage.Execution {
	m.Helper()
	run, err := m.desk.Store.Run(m.Context(), "fix", runID(1))
	require.NoError(m, err)
	return run
}

// refused gives the one object in quarantine.
func (m *mailroom) refused() (string, factory.Refusal) {
	m.Helper()
	var key string
	for object, err := range m.Quarantine.List(m.Context(), "", "") {
		require.NoError(m, err)
		require.Empty(m, key, "one only")
		key = object.Key
	}
	require.NotEmpty(m, key)
	body, err := m.Quarantine.Get(m.Context(), key, 1<<20)
	require.NoError(m, err)
	var refusal factory.Refusal
	require.NoError(m, json.Unmarshal(body, &refusal))
	return key, refusal
}

func TestAReplyFinishesItsRunAndTellsTheLifecycle(t *testing.T) {
	m := newMailroom(t)
	registry := prometheus.NewRegistry()
	m.Metrics = NewJobMetrics(registry)
	m.took(m.message(m.reply()), jobFinished)
	run := m.run()
	require.Equal(t, storage.Succeeded, run.Status)
	require.Equal(t, "adjusted", run.Detail)
	require.Equal(t, m.now.Add(-500*time.Millisecond), *run.FinishedAt)
	require.EqualValues(t, 1500, run.DurationMS)
	require.Equal(t, "out", m.read(runID(1), storage.StdoutFile))
	require.Equal(t, "err", m.read(runID(1), storage.StderrFile))
	require.Contains(t, m.read(runID(1), storage.OutputFile), `"factory_id":"factory-a"`)
	require.Equal(t, []workflows.JobResult{{
		RunID: runID(1), FactoryID: "factory-a", Status: workflows.RunSucceeded, Detail: "adjusted", FinishedAt: m.now.Add(-500 * time.Millisecond),
	}}, m.told)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
	require.EqualValues(t, 1, families[0].GetMetric()[0].GetHistogram().GetSampleCount())
	require.InDelta(t, 1, families[1].GetMetric()[0].GetCounter().GetValue(), 0)
}

func TestTheFirstReplyOfARunCounts(t *testing.T) {
	m := newMailroom(t)
	m.took(m.message(m.reply()), jobFinished)
	m.tick()
	m.took(m.message(m.reply()), jobDuplicate)
	m.took(m.message(m.reply(func(r *artifact.JobReply) {
		r.Status, r.ExitCode, r.Detail, r.Stdout = artifact.JobFailed, 7, "changed my mind", "other"
	})), jobDuplicate)
	require.Equal(t, storage.Succeeded, m.run().Status)
	require.Equal(t, "out", m.read(runID(1), storage.StdoutFile))
	require.Len(t, m.told, 3)
	require.Equal(t, m.told[0], m.told[1])
	require.Equal(t, m.told[0], m.told[2], "the lifecycle hears the same whatever comes later")
}

func TestAReplyAfterTheRunWasGivenUpIsKeptAside(t *testing.T) {
	m := newMailroom(t)
	_, _, err := m.desk.Store.Lose(t.Context(), "fix", runID(1), storage.TimedOut, "too late", m.now)
	require.NoError(t, err)
	m.took(m.message(m.reply()), jobLate)
	require.Equal(t, storage.TimedOut, m.run().Status)
	require.Empty(t, m.told)
	key, refusal := m.refused()
	require.Equal(t, "quarantine/factory-a/job_result/yyyy=2026/mm=05/dd=31/7e146a2c-95b5-6caf-98b9-50e3969734c7.json", key)
	require.Equal(t, "run_id", refusal.Field)
	require.Contains(t, refusal.Rule, "timed_out")
	require.Contains(t, string(refusal.Body), runID(1))
}

func TestRepliesThatCanNotBeUsedAreQuarantinedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		message func(*mailroom) queue.Message
		field   string
	}{
		"unknown run": {func(m *mailroom) queue.Message {
			return m.message(m.reply(func(r *artifact.JobReply) { r.RunID = runID(9) }))
		}, "run_id"},
		"another factory": {func(m *mailroom) queue.Message {
			return m.message(m.reply(func(r *artifact.JobReply) { r.FactoryID = "factory-b" }))
		}, "factory_id"},
		"topic of another factory": {func(m *mailroom) queue.Message {
			body, err := m.reply().Encode()
			require.NoError(m, err)
			return envelope(m.T, artifact.JobResultTopic("factory-b", runID(1)), body, m.now)
		}, "factory_id"},
		"oversize": {func(m *mailroom) queue.Message {
			return envelope(m.T, artifact.JobResultTopic("factory-a", runID(1)), []byte(`{"x":"`+strings.Repeat("x", factory.MaxBody)+`"}`), m.now)
		}, "body"},
		"no JSON": {func(m *mailroom) queue.Message {
			return envelope(m.T, artifact.JobResultTopic("factory-a", runID(1)), []byte("done"), m.now)
		}, "body"},
		"telemetry": {func(m *mailroom) queue.Message {
			return envelope(m.T, "aegis/factory-a/factory_state", []byte("{}"), m.now)
		}, "topic"},
		"JSON of somebody else": {func(*mailroom) queue.Message { return queue.Message{ID: "m-1", Body: `{"hello":"lost?"}`} }, "topic"},
		"null":                  {func(*mailroom) queue.Message { return queue.Message{ID: "m-1", Body: "null"} }, "topic"},
		"no body": {func(m *mailroom) queue.Message {
			return envelope(m.T, artifact.JobResultTopic("factory-a", runID(1)), nil, m.now)
		}, "topic"},
		"no topic":    {func(m *mailroom) queue.Message { return envelope(m.T, "", []byte("{}"), m.now) }, "topic"},
		"no envelope": {func(*mailroom) queue.Message { return queue.Message{ID: "m/1", Body: "?"} }, "topic"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailroom(t)
			m.took(c.message(m), jobQuarantined)
			m.took(c.message(m), jobQuarantined)
			key, refusal := m.refused()
			require.Regexp(t, `^quarantine/[a-z_-]+/job_result/yyyy=2026/mm=05/dd=31/[A-Za-z0-9:._-]+\.json$`, key)
			require.Equal(t, c.field, refusal.Field, refusal.Rule)
			require.NotEmpty(t, refusal.Body)
			require.Equal(t, storage.Running, m.run().Status)
			require.Empty(t, m.told)
		})
	}
}

func TestMessagesThatAreNoEnvelopesAreKeptEachForItself(t *testing.T) {
	m := newMailroom(t)
	bodies := []string{"{}", "null", "[]", `{"hello":"lost?"}`, `{"body":"","topic":"aegis/factory-a/jobs/x/result"}`, `{"topic":7}`, "?"}
	for _, body := range bodies {
		m.took(queue.Message{ID: "m-1", Body: body}, jobQuarantined)
	}
	var kept []string
	for object, err := range m.Quarantine.List(t.Context(), "", "") {
		require.NoError(t, err)
		content, err := m.Quarantine.Get(t.Context(), object.Key, 1<<20)
		require.NoError(t, err)
		var refusal factory.Refusal
		require.NoError(t, json.Unmarshal(content, &refusal))
		kept = append(kept, string(refusal.Body))
		require.Contains(t, object.Key, strings.TrimPrefix(artifact.HashOf(refusal.Body), "sha256:"))
	}
	require.ElementsMatch(t, bodies, kept)
}

func TestALifecycleThatHasEndedIsNotWaitedFor(t *testing.T) {
	m := newMailroom(t)
	m.deaf = serviceerror.NewNotFound("workflow execution already completed")
	m.took(m.message(m.reply()), jobFinished)
	require.Equal(t, storage.Succeeded, m.run().Status)
}

func TestAReplyStaysWhileAServiceIsOut(t *testing.T) {
	m := newMailroom(t)
	m.deaf = errors.New("connection refused")
	_, err := m.handle(m.message(m.reply()))
	require.ErrorIs(t, err, queue.ErrOutage)
	m.deaf = nil
	m.took(m.message(m.reply()), jobDuplicate)
	require.Len(t, m.told, 1, "told in the end")

	m = newMailroom(t)
	m.Store.Table.Name += "-gone"
	_, err = m.handle(m.message(m.reply()))
	require.ErrorIs(t, err, queue.ErrOutage)

	m = newMailroom(t)
	m.Quarantine = objects.Bucket{Client: m.desk.Store.Client.(*s3.Client), Name: "no-such-bucket-here"}
	_, err = m.handle(queue.Message{ID: "m-1", Body: "?"})
	require.Error(t, err, "what can't be kept aside stays in the queue")
}

func TestAKillBetweenAnyTwoStepsLosesNothing(t *testing.T) {
	killed := errors.New("killed")
	for _, step := range []JobStep{JobStepKept, JobStepFinished, JobStepSignalled, JobStepQuarantine} {
		t.Run(string(step), func(t *testing.T) {
			m := newMailroom(t)
			message := m.message(m.reply(func(r *artifact.JobReply) {
				if step == JobStepQuarantine {
					r.RunID = runID(9)
				}
			}))
			m.At = func(at JobStep) error {
				if at == step {
					return killed
				}
				return nil
			}
			_, err := m.handle(message)
			require.ErrorIs(t, err, killed)
			m.At = nil
			_, err = m.handle(message)
			require.NoError(t, err)
			if step == JobStepQuarantine {
				m.refused()
				return
			}
			require.NotEmpty(t, m.told)
			require.Equal(t, storage.Succeeded, m.run().Status)
			require.Equal(t, "out", m.read(runID(1), storage.StdoutFile))
		})
	}
}

func (m *mailroom) drain() (workflows.JobResultCounts, error) {
	m.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(m.DrainJobResults)
	value, err := env.ExecuteActivity(m.DrainJobResults, workflows.JobResultRequest{})
	var counts workflows.JobResultCounts
	if err == nil {
		require.NoError(m, value.Get(&counts))
	}
	return counts, err
}

func TestTheDrainEmptiesTheQueueOfReplies(t *testing.T) {
	m := newMailroom(t)
	reply := m.message(m.reply()).Body
	require.NoError(t, m.Queue.Send(t.Context(), []string{reply, reply, "?"}))
	counts, err := m.drain()
	require.NoError(t, err)
	require.Equal(t, workflows.JobResultCounts{
		Received: 3, Deleted: 3, Outcomes: map[string]int64{jobFinished: 1, jobDuplicate: 1, jobQuarantined: 1},
	}, counts)
	depth, err := m.Queue.Depth(t.Context())
	require.NoError(t, err)
	require.Zero(t, depth)
}

func TestTheDrainLeavesEverythingWhileTemporalIsOut(t *testing.T) {
	m := newMailroom(t)
	m.deaf = errors.New("connection refused")
	m.Settings = queue.Settings{Poll: time.Second, Visibility: time.Second, MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}
	require.NoError(t, m.Queue.Send(t.Context(), []string{m.message(m.reply()).Body}))
	counts, err := m.drain()
	require.NoError(t, err)
	require.Zero(t, counts.Deleted)
	require.NotZero(t, counts.Outages)
	m.deaf = nil
	time.Sleep(time.Second)
	counts, err = m.drain()
	require.NoError(t, err)
	require.EqualValues(t, 1, counts.Deleted)
	require.Len(t, m.told, 1)
}

func TestADrainWithoutAQueueNamesTheVariable(t *testing.T) {
	m := newMailroom(t)
	m.Queue = queue.Queue{Client: (*sqs.Client)(nil)}
	_, err := m.drain()
	require.ErrorContains(t, err, "MILLRACE_JOB_RESULTS_QUEUE_URL")
}

// TestAReplyCostsSoManyRequests holds what is paid for.
func TestAReplyCostsSoManyRequests(t *testing.T) {
	m := newMailroom(t)
	calls := &storagetest.Calls{}
	watched := calls.Watch(storagetest.Config(t))
	m.Store = storage.New(dynamodb.NewFromConfig(watched), m.desk.Store.Table.Name, awsconf.NewS3(watched), m.desk.Store.Bucket)
	m.took(m.message(m.reply()), jobFinished)
	require.Equal(t, map[string]int{"GetItem": 2, "PutObject": 3, "UpdateItem": 1}, calls.Take(), "owner and run; stdout, stderr and output.json; the run's end")
	m.took(m.message(m.reply()), jobDuplicate)
	require.Equal(t, map[string]int{"GetItem": 2}, calls.Take())
}

func BenchmarkJobReply(b *testing.B) {
	reply := artifact.JobReply{
		RunID: runID(1), FactoryID: "factory-a", Status: artifact.JobSucceeded, Stdout: strings.Repeat("x", 4096),
		StartedAt: time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC), FinishedAt: time.Date(2026, 5, 31, 12, 0, 1, 0, time.UTC),
	}
	body, err := reply.Encode()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := artifact.ParseJobReply(artifact.JobResultTopic("factory-a", runID(1)), body, reply.FinishedAt); err != nil {
			b.Fatal(err)
		}
	}
}
