package cloudinfra

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"millrace/domain/cloudinfra"
	"millrace/workflows/historytest"
	"millrace/workflows/names"
)

// registered are all workflows of the capability by their type.
var registered = historytest.Workflows{names.CloudInfraFast: CloudInfraFast, names.CloudInfraSlow: CloudInfraSlow}

// TestRecordedHistoriesReplay guards running workflows against changes of their
// code that they can't follow.
func TestRecordedHistoriesReplay(t *testing.T) { registered.ReplayRecorded(t, 5) }

// answers are probes that only answer; those of broken fail, and those of slow
// ones never answer.
type answers struct {
	configured []cloudinfra.Probe
	broken     cloudinfra.Probe
	hanging    cloudinfra.Probe
}

func answer[In, T any](a answers, p cloudinfra.Probe, value T) any {
	return func(ctx context.Context, _ In) (Found[T], error) {
		switch p {
		case a.broken:
			return Found[T]{}, told(SourceOf(p), "AccessDenied")
		case a.hanging:
			<-ctx.Done()
			return Found[T]{}, ctx.Err()
		}
		return Found[T]{Value: value}, nil
	}
}

func (a answers) activities() map[string]any {
	return map[string]any{
		PlanActivity: func(context.Context, PlanRequest) (Plan, error) { return Plan{Configured: a.configured}, nil },
		StoreFastActivity: func(ctx context.Context, req StoreFastRequest) (Result, error) {
			if activity.GetInfo(ctx).Attempt == 1 {
				return Result{}, errors.New("no answer")
			}
			return Result{Status: "committed", UpdatedAt: &req.UpdatedAt, Errors: []cloudinfra.Error{}}, nil
		},
		StoreSlowActivity: func(_ context.Context, req StoreSlowRequest) (Result, error) {
			return Result{Status: "committed", UpdatedAt: &req.UpdatedAt, Errors: []cloudinfra.Error{}}, nil
		},
		ActivityOf(cloudinfra.ProbeECS):            answer[ProbeRequest](a, cloudinfra.ProbeECS, cloudinfra.ECS{ServiceName: "api"}),
		ActivityOf(cloudinfra.ProbeALB):            answer[ProbeRequest](a, cloudinfra.ProbeALB, ALBFound{TargetGroup: "targetgroup/tg/1", LoadBalancer: "app/lb/1"}),
		ActivityOf(cloudinfra.ProbeBackendMetrics): answer[BackendMetricsRequest](a, cloudinfra.ProbeBackendMetrics, BackendMetrics{}),
		ActivityOf(cloudinfra.ProbeQueues):         answer[ProbeRequest](a, cloudinfra.ProbeQueues, []cloudinfra.Queue{{Name: "telemetry"}}),
		ActivityOf(cloudinfra.ProbeNodegroups):     answer[ProbeRequest](a, cloudinfra.ProbeNodegroups, []cloudinfra.Nodegroup{{Name: "g", AutoscalingGroups: []string{"asg"}}}),
		ActivityOf(cloudinfra.ProbeAutoscaling):    answer[AutoscalingRequest](a, cloudinfra.ProbeAutoscaling, cloudinfra.Autoscaling{}),
		ActivityOf(cloudinfra.ProbePods):           answer[ProbeRequest](a, cloudinfra.ProbePods, cloudinfra.Pods{}),
		ActivityOf(cloudinfra.ProbeStorage):        answer[ProbeRequest](a, cloudinfra.ProbeStorage, []cloudinfra.StorageFactory{}),
	}
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
			r := historytest.New(t, registered, run.activities())
			done := r.Scheduled(run.workflow, run.due, Input{})
			var result Result
			require.NoError(t, done.Get(t.Context(), &result))
			require.Equal(t, run.status, result.Status)
			r.Keep(name, done)
		})
	}
}
