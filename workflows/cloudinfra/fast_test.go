package cloudinfra

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
)

func TestAFastRunBringsEverythingTogether(t *testing.T) {
	began := noon.Add(1500 * time.Millisecond)
	w := newWorld(t, noon, began, fastProbes...)
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	result := w.result()
	require.Equal(t, "committed", result.Status)
	require.Equal(t, noon, result.ScheduledAt)
	require.Equal(t, factory.MillisOf(began), *result.UpdatedAt, "the time of the run, whatever the probes took")

	r := w.fast.Report
	require.Empty(t, r.Failures)
	require.Equal(t, fastProbes, r.Configured)
	require.Equal(t, "api", r.ECS.ServiceName)
	require.Equal(t, "94.4", r.ECS.CPUMax.String(), "metrics join what was looked up")
	require.Equal(t, "tg", r.ALB.TargetGroupName)
	require.Equal(t, "7", r.ALB.Target5xx.String())
	require.Equal(t, "D", r.CloudFront.DistributionID)
	require.Equal(t, "available", r.Redis.Status)
	require.Equal(t, "1", r.Redis.Evictions.String())
	require.Equal(t, "6.1", r.RDS.CPUAvg.String())
	require.Len(t, r.Lambdas, 1)
	require.Equal(t, "t", r.DynamoDB.TableName)
	require.Equal(t, int64(2), *r.DLQ.MessagesVisible)
	require.Equal(t, "30", r.DLQ.OldestAgeSeconds.String())
	require.Len(t, r.Schedulers, 1)
	require.Len(t, r.TaskQueues, 1)
	require.Len(t, r.Schedules, 1)
	require.Len(t, r.Queues, 1)
	require.Len(t, r.Factories, 1)
	require.True(t, w.fast.Writes.ToBucket())
}

func TestOnlyWhatIsConfiguredIsLookedAt(t *testing.T) {
	w := newWorld(t, noon, noon, cloudinfra.ProbeQueues)
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	require.Equal(t, cloudinfra.FastReport{
		Outcome: cloudinfra.Outcome{Configured: []cloudinfra.Probe{cloudinfra.ProbeQueues}}, Queues: []cloudinfra.Queue{{Name: "telemetry"}},
	}, w.fast.Report)
	for _, p := range fastProbes {
		if p != cloudinfra.ProbeQueues {
			w.AssertNotCalled(t, ActivityOf(p), mock.Anything, mock.Anything)
		}
	}
}

func TestOneFailingProbeHidesNothingElse(t *testing.T) {
	for _, p := range fastProbes {
		t.Run(string(p), func(t *testing.T) {
			w := newWorld(t, noon, noon, fastProbes...)
			w.failing[p] = told("api:Call", "AccessDenied")
			w.ExecuteWorkflow(CloudInfraFast, Input{})
			w.result()
			r := w.fast.Report
			require.Equal(t, []cloudinfra.Failure{{Probe: p, Error: cloudinfra.NewError("api:Call", "AccessDenied", "no", factory.MillisOf(noon))}}, r.Failures)
			f := cloudinfra.EvaluateFast(r, cloudinfra.DefaultThresholds())
			require.Equal(t, cloudinfra.ProbeFailed, f.Probes[p])
			ok := slices.DeleteFunc(slices.Clone(fastProbes), func(other cloudinfra.Probe) bool { return f.Probes[other] != cloudinfra.ProbeOK })
			require.Len(t, ok, len(fastProbes)-1)
		})
	}
}

func TestAHangingProbeDelaysNothingBeyondTheMinute(t *testing.T) {
	w := newWorld(t, noon, noon, fastProbes...)
	hang[cloudinfra.ECS](w, cloudinfra.ProbeECS)
	hang[BackendMetrics](w, cloudinfra.ProbeBackendMetrics)
	hang[[]cloudinfra.TaskQueue](w, cloudinfra.ProbeTaskQueues)
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	require.Greater(t, w.Now().Sub(noon), 12*time.Second, "both stages were waited for")
	require.Less(t, w.Now().Sub(noon), 45*time.Second)
	r := w.fast.Report
	require.Equal(t, factory.MillisOf(noon), w.fast.UpdatedAt)
	require.Len(t, r.Failures, 3)
	bySource := map[string]string{}
	for _, f := range r.Failures {
		require.Equal(t, "no answer in time", f.Error.Message)
		bySource[f.Error.Source] = f.Error.Code
	}
	require.Equal(t, map[string]string{"ecs:DescribeServices": "Timeout", "cloudwatch:GetMetricData": "Timeout", "temporal:DescribeTaskQueue": "Timeout"}, bySource)
	require.Equal(t, "tg", r.ALB.TargetGroupName, "the rest of the section is there")
	require.Len(t, r.Queues, 1)
}

func TestAllProbesFailAndTheRunStillStores(t *testing.T) {
	w := newWorld(t, noon, noon, fastProbes...)
	for _, p := range fastProbes {
		w.failing[p] = errDown
	}
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	require.Len(t, w.fast.Report.Failures, len(fastProbes))
	for _, f := range w.fast.Report.Failures {
		require.Equal(t, SourceOf(f.Probe), f.Error.Source)
		require.Contains(t, f.Error.Message, "down")
	}
	f := cloudinfra.EvaluateFast(w.fast.Report, cloudinfra.DefaultThresholds())
	require.Equal(t, cloudinfra.Unknown, f.Status)
}

func TestAProbeIsRetriedWithinTheRun(t *testing.T) {
	w := newWorld(t, noon, noon, cloudinfra.ProbeDLQ)
	visible := int64(0)
	w.OnActivity(ActivityOf(cloudinfra.ProbeDLQ), mock.Anything, mock.Anything).Return(Found[cloudinfra.DLQ]{}, errDown).Twice()
	w.OnActivity(ActivityOf(cloudinfra.ProbeDLQ), mock.Anything, ProbeRequest{AsOf: noon}).Return(Found[cloudinfra.DLQ]{Value: cloudinfra.DLQ{MessagesVisible: &visible}}, nil).Once()
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	require.Empty(t, w.fast.Report.Failures)
	require.Equal(t, int64(0), *w.fast.Report.DLQ.MessagesVisible)
	w.AssertExpectations(t)
}

func TestPartialResultsCarryTheirErrors(t *testing.T) {
	w := newWorld(t, noon, noon, cloudinfra.ProbeQueues)
	e := cloudinfra.NewError("sqs:GetQueueAttributes", "QueueDoesNotExist", "no", factory.MillisOf(noon))
	w.OnActivity(ActivityOf(cloudinfra.ProbeQueues), mock.Anything, mock.Anything).
		Return(Found[[]cloudinfra.Queue]{Value: []cloudinfra.Queue{{Name: "a"}}, Errors: []cloudinfra.Error{e}}, nil)
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	require.Equal(t, []cloudinfra.Failure{{Probe: cloudinfra.ProbeQueues, Error: e}}, w.fast.Report.Failures)
	require.Len(t, w.fast.Report.Queues, 1)
}

func TestMetricsAreAskedForWhatWasFound(t *testing.T) {
	w := newWorld(t, noon, noon, fastProbes...)
	ask := ProbeRequest{AsOf: noon}
	w.OnActivity(ActivityOf(cloudinfra.ProbeBackendMetrics), mock.Anything,
		BackendMetricsRequest{ProbeRequest: ask, TargetGroup: "targetgroup/tg/1", LoadBalancer: "app/lb/1"}).Return(Found[BackendMetrics]{}, nil).Once()
	w.OnActivity(ActivityOf(cloudinfra.ProbeDatastoreMetrics), mock.Anything,
		DatastoreMetricsRequest{ProbeRequest: ask, RedisNodes: []string{"r-001", "r-002"}}).Return(Found[DatastoreMetrics]{}, nil).Once()
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	w.result()
	w.AssertExpectations(t)
}

func TestALateRunDoesNothingButSaySo(t *testing.T) {
	for name, late := range map[string]time.Duration{"just too late": 2*time.Minute + time.Second, "a backfill": 10 * time.Hour} {
		for track, run := range map[string]any{"fast": CloudInfraFast, "slow": CloudInfraSlow} {
			t.Run(name+" "+track, func(t *testing.T) {
				w := newWorld(t, noon, noon.Add(late), append(fastProbes, slowProbes...)...)
				w.ExecuteWorkflow(run, Input{})
				require.Equal(t, Result{Status: StatusLate, ScheduledAt: noon, LateSeconds: int64(late / time.Second), Errors: []cloudinfra.Error{}}, w.result())
				require.Nil(t, w.fast)
				require.Nil(t, w.slow)
			})
		}
	}
}

func TestARunThatIsALittleLateOrByHandRuns(t *testing.T) {
	for name, scheduled := range map[string]time.Time{"two minutes late": noon.Add(-2 * time.Minute), "by hand": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scheduled, noon, cloudinfra.ProbeQueues)
			w.ExecuteWorkflow(CloudInfraFast, Input{})
			require.Equal(t, "committed", w.result().Status)
			require.Equal(t, factory.MillisOf(noon), w.fast.UpdatedAt)
		})
	}
}

func TestStoringIsRetriedWithTheSameKeys(t *testing.T) {
	w := newWorld(t, noon, noon, cloudinfra.ProbeQueues)
	var times []factory.Millis
	w.OnActivity(StoreFastActivity, mock.Anything, mock.Anything).Return(func(_ context.Context, req StoreFastRequest) (Result, error) {
		if times = append(times, req.UpdatedAt); len(times) < 3 {
			return Result{}, errDown
		}
		return Result{Status: "repeated"}, nil
	})
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	require.Equal(t, "repeated", w.result().Status)
	require.Equal(t, []factory.Millis{factory.MillisOf(noon), factory.MillisOf(noon), factory.MillisOf(noon)}, times)
}

func TestAStoreThatIsDownFailsTheRunWithinItsMinute(t *testing.T) {
	w := newWorld(t, noon, noon, cloudinfra.ProbeQueues)
	w.OnActivity(StoreFastActivity, mock.Anything, mock.Anything).Return(Result{}, errDown)
	w.ExecuteWorkflow(CloudInfraFast, Input{})
	require.Error(t, w.GetWorkflowError(), "an outage is seen")
	require.LessOrEqual(t, w.Now().Sub(noon), time.Minute)
}

func TestAnOperatorCanLookWithoutWriting(t *testing.T) {
	no, yes := false, true
	w := newWorld(t, noon, noon, cloudinfra.ProbeQueues)
	w.ExecuteWorkflow(CloudInfraFast, Input{Writes: Writes{DynamoDB: &no}})
	w.result()
	require.False(t, w.fast.Writes.ToTable())
	require.False(t, w.fast.Writes.ToBucket(), "no object without the table")
	require.True(t, Writes{S3: &yes}.ToBucket())
	require.False(t, Writes{S3: &no}.ToBucket())
	require.True(t, Writes{S3: &no}.ToTable())
	require.False(t, Writes{DynamoDB: &no, S3: &yes}.ToBucket())
}

func TestACancelledRunStoresNothing(t *testing.T) {
	for track, run := range map[string]any{"fast": CloudInfraFast, "slow": CloudInfraSlow} {
		t.Run(track, func(t *testing.T) {
			w := newWorld(t, noon, noon, cloudinfra.ProbeDLQ, cloudinfra.ProbePods)
			for _, p := range []cloudinfra.Probe{cloudinfra.ProbeDLQ, cloudinfra.ProbePods} {
				w.failing[p] = errDown // and so is tried again
			}
			w.RegisterDelayedCallback(w.CancelWorkflow, time.Second)
			w.ExecuteWorkflow(run, Input{})
			require.True(t, temporal.IsCanceledError(w.GetWorkflowError()), "%v", w.GetWorkflowError())
			require.Nil(t, w.fast)
			require.Nil(t, w.slow)
		})
	}
}

func TestFailuresAreShownWithTheirSource(t *testing.T) {
	at := factory.MillisOf(noon)
	cases := []struct {
		name                  string
		err                   error
		source, code, message string
	}{
		{"told", told("elbv2:DescribeTargetGroups", "Throttling"), "elbv2:DescribeTargetGroups", "Throttling", "no"},
		{"a panic", temporal.NewApplicationError("boom", "PanicError"), "elbv2:DescribeTargetHealth", "PanicError", "boom"},
		{"hung", temporal.NewTimeoutError(enums.TIMEOUT_TYPE_START_TO_CLOSE, nil), "elbv2:DescribeTargetHealth", "Timeout", "no answer in time"},
		{"hung after it told", temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, told("elbv2:DescribeTargetGroups", "Throttling")), "elbv2:DescribeTargetGroups", "Throttling", "no"},
		{"anything", errors.New("token=abc"), "elbv2:DescribeTargetHealth", "", "***"},
	}
	for _, c := range cases {
		e := failure(cloudinfra.ProbeALB, c.err, at)
		require.Equal(t, []string{c.source, c.code, c.message}, []string{e.Source, e.Code, e.Message}, c.name)
		require.Equal(t, at, e.At, c.name)
	}
	for _, p := range append(fastProbes, slowProbes...) {
		require.NotEmpty(t, SourceOf(p), p)
	}
}
