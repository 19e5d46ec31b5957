package cloudinfra

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/workflows/schedule"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func decimal(text string) *exact.Decimal {
	d := exact.MustParse(text)
	return &d
}

// world is an environment in which every probe finds something.
type world struct {
	*testsuite.TestWorkflowEnvironment
	t    *testing.T
	fast *StoreFastRequest
	slow *StoreSlowRequest
	// failing are the probes that fail always.
	failing map[cloudinfra.Probe]error
}

func probe[In, T any](w *world, p cloudinfra.Probe, value T) {
	w.RegisterActivityWithOptions(func(context.Context, In) (Found[T], error) {
		return Found[T]{Value: value}, w.failing[p]
	}, activity.RegisterOptions{Name: ActivityOf(p)})
}

func newWorld(t *testing.T, scheduled, now time.Time, configured ...cloudinfra.Probe) *world {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w := &world{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, failing: map[cloudinfra.Probe]error{}}
	w.SetStartTime(now)
	if !scheduled.IsZero() {
		require.NoError(t, w.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(schedule.Start.ValueSet(scheduled))))
	}
	register := func(name string, f any) {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(PlanActivity, func(context.Context, PlanRequest) (Plan, error) { return Plan{Configured: configured}, nil })
	register(StoreFastActivity, func(_ context.Context, req StoreFastRequest) (Result, error) {
		w.fast = &req
		return Result{Status: "committed", UpdatedAt: &req.UpdatedAt}, nil
	})
	register(StoreSlowActivity, func(_ context.Context, req StoreSlowRequest) (Result, error) {
		w.slow = &req
		return Result{Status: "committed", UpdatedAt: &req.UpdatedAt}, nil
	})
	w.registerFastProbes()
	w.registerSlowProbes()
	return w
}

func (w *world) registerFastProbes() {
	probe[ProbeRequest](w, cloudinfra.ProbeECS, cloudinfra.ECS{ServiceName: "api"})
	probe[ProbeRequest](w, cloudinfra.ProbeALB, ALBFound{ALB: cloudinfra.ALB{TargetGroupName: "tg"}, TargetGroup: "targetgroup/tg/1", LoadBalancer: "app/lb/1"})
	probe[ProbeRequest](w, cloudinfra.ProbeCloudFront, cloudinfra.CloudFront{DistributionID: "D"})
	probe[BackendMetricsRequest](w, cloudinfra.ProbeBackendMetrics, BackendMetrics{
		ECS: &cloudinfra.ECSMetrics{CPUMax: decimal("94.4")}, ALB: &cloudinfra.ALBMetrics{Target5xx: decimal("7")},
	})
	probe[ProbeRequest](w, cloudinfra.ProbeRedis, RedisFound{Redis: cloudinfra.Redis{Status: "available"}, Nodes: []string{"r-001", "r-002"}})
	probe[ProbeRequest](w, cloudinfra.ProbeRDS, cloudinfra.RDS{Status: "available"})
	probe[DatastoreMetricsRequest](w, cloudinfra.ProbeDatastoreMetrics, DatastoreMetrics{
		Redis: &cloudinfra.RedisMetrics{Evictions: decimal("1")}, RDS: &cloudinfra.RDSMetrics{CPUAvg: decimal("6.1")},
	})
	probe[ProbeRequest](w, cloudinfra.ProbePipelineMetrics, PipelineMetrics{
		Lambdas: []cloudinfra.Lambda{{Name: "f"}}, DynamoDB: &cloudinfra.DynamoDB{TableName: "t"}, DLQOldestAge: decimal("30"),
	})
	visible := int64(2)
	probe[ProbeRequest](w, cloudinfra.ProbeDLQ, cloudinfra.DLQ{QueueName: "q", MessagesVisible: &visible})
	probe[ProbeRequest](w, cloudinfra.ProbeSchedulers, []cloudinfra.Scheduler{{Name: "s", State: "ENABLED"}})
	probe[ProbeRequest](w, cloudinfra.ProbeTaskQueues, []cloudinfra.TaskQueue{{Name: "telemetry"}})
	probe[ProbeRequest](w, cloudinfra.ProbeSchedules, []cloudinfra.Schedule{{ID: "factory-refresh"}})
	probe[ProbeRequest](w, cloudinfra.ProbeQueues, []cloudinfra.Queue{{Name: "telemetry"}})
	probe[ProbeRequest](w, cloudinfra.ProbeFreshness, []cloudinfra.FactoryState{{FactoryID: "factory-a", PipelineStatus: cloudinfra.Normal}})
}

func (w *world) registerSlowProbes() {
	probe[ProbeRequest](w, cloudinfra.ProbeCluster, cloudinfra.Cluster{Name: "c", Status: "ACTIVE"})
	probe[ProbeRequest](w, cloudinfra.ProbeNodegroups, []cloudinfra.Nodegroup{
		{Name: "g", AutoscalingGroups: []string{"asg-1"}}, {Name: "h", AutoscalingGroups: []string{"asg-2", "asg-3"}},
	})
	probe[AutoscalingRequest](w, cloudinfra.ProbeAutoscaling, cloudinfra.Autoscaling{DesiredCapacity: 2, HealthyInstances: 2})
	ready := int64(2)
	probe[ProbeRequest](w, cloudinfra.ProbeNodes, cloudinfra.Nodes{Ready: &ready, Total: &ready})
	probe[ProbeRequest](w, cloudinfra.ProbePods, cloudinfra.Pods{Running: &ready})
	probe[ProbeRequest](w, cloudinfra.ProbeArgoCD, cloudinfra.ArgoCD{Total: &ready})
	probe[ProbeRequest](w, cloudinfra.ProbeStorage, []cloudinfra.StorageFactory{{FactoryID: "factory-a"}})
}

// hang has a probe not answer until its timeout.
func hang[T any](w *world, p cloudinfra.Probe) {
	err := temporal.NewTimeoutError(enums.TIMEOUT_TYPE_START_TO_CLOSE, nil)
	w.OnActivity(ActivityOf(p), mock.Anything, mock.Anything).Return(Found[T]{}, err).After(fastProbeOptions.StartToCloseTimeout)
}

func (w *world) result() Result {
	w.t.Helper()
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	var result Result
	require.NoError(w.t, w.GetWorkflowResult(&result))
	return result
}

var (
	fastProbes = []cloudinfra.Probe{
		cloudinfra.ProbeECS, cloudinfra.ProbeALB, cloudinfra.ProbeCloudFront, cloudinfra.ProbeBackendMetrics, cloudinfra.ProbeRedis, cloudinfra.ProbeRDS,
		cloudinfra.ProbeDatastoreMetrics, cloudinfra.ProbePipelineMetrics, cloudinfra.ProbeDLQ, cloudinfra.ProbeSchedulers, cloudinfra.ProbeTaskQueues,
		cloudinfra.ProbeSchedules, cloudinfra.ProbeQueues, cloudinfra.ProbeFreshness,
	}
	slowProbes = []cloudinfra.Probe{
		cloudinfra.ProbeCluster, cloudinfra.ProbeNodegroups, cloudinfra.ProbeAutoscaling, cloudinfra.ProbeNodes, cloudinfra.ProbePods,
		cloudinfra.ProbeArgoCD, cloudinfra.ProbeStorage,
	}
)

var errDown = errors.New("down")

// told is a failure that says itself what failed, as activities' failures do.
func told(source, code string) error {
	e := cloudinfra.NewError(source, code, "no", factory.MillisOf(noon))
	return temporal.NewApplicationErrorWithOptions("no", code, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{e}})
}
