package cloudinfra

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/cloudinfra"
	"millrace/workflows/names"
)

var record = flag.Bool("record", false, "write the histories to testdata/replay_*.json")

var silent = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

func register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(CloudInfraFast, workflow.RegisterOptions{Name: names.CloudInfraFast})
	r.RegisterWorkflowWithOptions(CloudInfraSlow, workflow.RegisterOptions{Name: names.CloudInfraSlow})
}

// TestRecordedHistoriesReplay guards running workflows against changes of their
// code that they can't follow.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay_*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 5)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			replayer := worker.NewWorkflowReplayer()
			register(replayer)
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(silent, file))
		})
	}
}

// answers are probes that only answer; those of broken fail, and those of slow
// ones never answer.
type answers struct {
	configured []cloudinfra.Probe
	broken     cloudinfra.Probe
	hanging    cloudinfra.Probe
}

func answer[In, T any](a answers, w worker.Registry, p cloudinfra.Probe, value T) {
	w.RegisterActivityWithOptions(func(ctx context.Context, _ In) (Found[T], error) {
		switch p {
		case a.broken:
			return Found[T]{}, told(SourceOf(p), "AccessDenied")
		case a.hanging:
			<-ctx.Done()
			return Found[T]{}, ctx.Err()
		}
		return Found[T]{Value: value}, nil
	}, activity.RegisterOptions{Name: ActivityOf(p)})
}

func (a answers) register(w worker.Registry) {
	w.RegisterActivityWithOptions(func(context.Context, PlanRequest) (Plan, error) { return Plan{Configured: a.configured}, nil }, activity.RegisterOptions{Name: PlanActivity})
	w.RegisterActivityWithOptions(func(ctx context.Context, req StoreFastRequest) (Result, error) {
		if activity.GetInfo(ctx).Attempt == 1 {
			return Result{}, errors.New("no answer")
		}
		return Result{Status: "committed", UpdatedAt: &req.UpdatedAt, Errors: []cloudinfra.Error{}}, nil
	}, activity.RegisterOptions{Name: StoreFastActivity})
	w.RegisterActivityWithOptions(func(_ context.Context, req StoreSlowRequest) (Result, error) {
		return Result{Status: "committed", UpdatedAt: &req.UpdatedAt, Errors: []cloudinfra.Error{}}, nil
	}, activity.RegisterOptions{Name: StoreSlowActivity})
	answer[ProbeRequest](a, w, cloudinfra.ProbeECS, cloudinfra.ECS{ServiceName: "api"})
	answer[ProbeRequest](a, w, cloudinfra.ProbeALB, ALBFound{TargetGroup: "targetgroup/tg/1", LoadBalancer: "app/lb/1"})
	answer[BackendMetricsRequest](a, w, cloudinfra.ProbeBackendMetrics, BackendMetrics{})
	answer[ProbeRequest](a, w, cloudinfra.ProbeQueues, []cloudinfra.Queue{{Name: "telemetry"}})
	answer[ProbeRequest](a, w, cloudinfra.ProbeNodegroups, []cloudinfra.Nodegroup{{Name: "g", AutoscalingGroups: []string{"asg"}}})
	answer[AutoscalingRequest](a, w, cloudinfra.ProbeAutoscaling, cloudinfra.Autoscaling{})
	answer[ProbeRequest](a, w, cloudinfra.ProbePods, cloudinfra.Pods{})
	answer[ProbeRequest](a, w, cloudinfra.ProbeStorage, []cloudinfra.StorageFactory{})
}

// TestFreshHistoriesReplay runs the collectors on a real server and replays what
// they did there. With -record the histories are kept.
func TestFreshHistoriesReplay(t *testing.T) {
	fast := []cloudinfra.Probe{cloudinfra.ProbeECS, cloudinfra.ProbeALB, cloudinfra.ProbeBackendMetrics, cloudinfra.ProbeQueues}
	slow := []cloudinfra.Probe{cloudinfra.ProbeNodegroups, cloudinfra.ProbeAutoscaling, cloudinfra.ProbePods, cloudinfra.ProbeStorage}
	now := time.Now().UTC().Truncate(time.Minute)
	for name, run := range map[string]struct {
		answers
		workflow string
		due      time.Time
		status   string
	}{
		"fast":          {answers{configured: fast}, names.CloudInfraFast, now, "committed"},
		"fast_late":     {answers{configured: fast}, names.CloudInfraFast, now.Add(-time.Hour), StatusLate},
		"fast_failing":  {answers{configured: fast, broken: cloudinfra.ProbeALB, hanging: cloudinfra.ProbeECS}, names.CloudInfraFast, now, "committed"},
		"slow":          {answers{configured: slow}, names.CloudInfraSlow, now, "committed"},
		"slow_failing":  {answers{configured: slow, broken: cloudinfra.ProbeNodegroups}, names.CloudInfraSlow, now, "committed"},
		"fast_unwanted": {answers{configured: []cloudinfra.Probe{}}, names.CloudInfraFast, now, "committed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorded, result := runScheduled(t, run.answers, run.workflow, run.due)
			require.Equal(t, run.status, result.Status)
			replayer := worker.NewWorkflowReplayer()
			register(replayer)
			require.NoError(t, replayer.ReplayWorkflowHistory(silent, recorded))
			if *record {
				body, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(recorded)
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(filepath.Join("testdata", "replay_"+name+".json"), append(body, '\n'), 0o644))
			}
		})
	}
}

// runScheduled is the history of the run of a schedule that stands for the given
// time.
func runScheduled(t *testing.T, a answers, name string, due time.Time) (*history.History, Result) {
	t.Helper()
	require.NotEmpty(t, os.Getenv("TEMPORAL_ADDRESS"), "no Temporal server: run make test, or bin/local exec -- go test")
	options, err := envconfig.LoadDefaultClientOptions()
	require.NoError(t, err)
	options.Identity, options.Logger = "recorder", silent
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	id := fmt.Sprintf("record-%s-%d", name, time.Now().UnixNano())
	w := worker.New(c, id, worker.Options{Identity: "recorder"})
	register(w)
	a.register(w)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	handle, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Minute}}}, Paused: true,
		Action:           &client.ScheduleWorkflowAction{ID: id, Workflow: name, Args: []any{Input{}}, TaskQueue: id},
		ScheduleBackfill: []client.ScheduleBackfill{{Start: due.Add(-time.Second), End: due, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Delete(context.Background())) })
	var started *client.ScheduleWorkflowExecution
	require.Eventually(t, func() bool {
		description, err := handle.Describe(t.Context())
		require.NoError(t, err)
		if actions := description.Info.RecentActions; len(actions) > 0 {
			started = actions[0].StartWorkflowResult
		}
		return started != nil
	}, 20*time.Second, 50*time.Millisecond)
	var result Result
	require.NoError(t, c.GetWorkflow(t.Context(), started.WorkflowID, started.FirstExecutionRunID).Get(t.Context(), &result))
	events := c.GetWorkflowHistory(t.Context(), started.WorkflowID, started.FirstExecutionRunID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	recorded := &history.History{}
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		recorded.Events = append(recorded.Events, event)
	}
	return recorded, result
}
