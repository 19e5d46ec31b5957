package cloudinfra

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// part is one change of an otherwise healthy report and what follows from it.
type part struct {
	name    string
	change  func(*FastReport)
	status  Status
	reasons []string
}

func healthyFast() FastReport {
	r := FastReport{
		ECS:        &ECS{DesiredCount: new(int64(2)), RunningCount: new(int64(2)), PendingCount: new(int64(0)), ECSMetrics: ECSMetrics{CPUAvg: d("10"), CPUMax: d("84.99"), MemoryMax: d("50")}},
		ALB:        &ALB{HealthyHosts: new(int64(2)), UnhealthyHosts: new(int64(0)), DrainingHosts: new(int64(0)), ALBMetrics: ALBMetrics{Target5xx: d("0")}.WithTimes(d("0.1"), d("0.999"))},
		CloudFront: &CloudFront{ErrorRate5xx: d("0.99")},
		Redis:      &Redis{Status: "available", RedisMetrics: RedisMetrics{CPUAvg: d("3"), FreeableMiB: d("128"), Evictions: d("0")}},
		RDS:        &RDS{Status: "available", RDSMetrics: RDSMetrics{CPUAvg: d("6"), FreeStorageMiB: d("1024")}},
		Lambdas:    []Lambda{{Name: "f", Errors: d("0"), Throttles: d("0")}, {Name: "g"}},
		DynamoDB:   &DynamoDB{ReadThrottles: d("0"), WriteThrottles: d("0"), SystemErrors: d("0")},
		DLQ:        &DLQ{MessagesVisible: new(int64(0))},
		Schedulers: []Scheduler{{Name: "s", State: "ENABLED"}},
		TaskQueues: []TaskQueue{{Name: "telemetry", BacklogCount: 5, BacklogAge: d("119")}},
		Schedules:  []Schedule{{ID: "factory-refresh", IntervalSeconds: 60, LatenessSeconds: 119}},
		Queues:     []Queue{{Name: "telemetry", MessagesVisible: 100}, {Name: "telemetry-dlq", IsDLQ: true}},
		Factories:  []FactoryState{{FactoryID: "factory-a", PipelineStatus: Normal}},
	}
	for _, probes := range [][]Probe{backendProbes, datastoreProbes, pipelineProbes, freshnessProbes} {
		r.Configured = append(r.Configured, probes...)
	}
	return r
}

func check(t *testing.T, cases []part, section func(Fast) Section) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := healthyFast()
			c.change(&r)
			got := section(EvaluateFast(r, DefaultThresholds()))
			require.Equal(t, c.status, got.Status)
			require.Equal(t, append([]string{}, c.reasons...), got.Reasons)
		})
	}
}

func TestBackendRules(t *testing.T) {
	check(t, []part{
		{"healthy", func(*FastReport) {}, Normal, nil},
		{"nothing runs", func(r *FastReport) { r.ECS.RunningCount = new(int64(0)) }, Critical, []string{"ecs_running_count=0"}},
		{"nothing is wanted", func(r *FastReport) { r.ECS.RunningCount, r.ECS.DesiredCount = new(int64(0)), new(int64(0)) }, Normal, nil},
		{"too few run", func(r *FastReport) { r.ECS.RunningCount = new(int64(1)) }, Warning, []string{"ecs_running_count<desired_count"}},
		{"counts are not known", func(r *FastReport) { r.ECS.RunningCount = nil }, Normal, nil},
		{"cpu at the threshold", func(r *FastReport) { r.ECS.CPUMax = d("85") }, Warning, []string{"ecs_cpu_utilization_max>=threshold"}},
		{"memory at the threshold", func(r *FastReport) { r.ECS.MemoryMax = d("85.0") }, Warning, []string{"ecs_memory_utilization_max>=threshold"}},
		{"cpu is not known", func(r *FastReport) { r.ECS.CPUMax = nil }, Normal, nil},
		{"no healthy host", func(r *FastReport) { r.ALB.HealthyHosts = new(int64(0)) }, Critical, []string{"alb_healthy_host_count=0"}},
		{"unhealthy hosts alone are no state", func(r *FastReport) { r.ALB.UnhealthyHosts = new(int64(1)) }, Normal, nil},
		{"draining hosts are normal", func(r *FastReport) { r.ALB.DrainingHosts = new(int64(2)) }, Normal, nil},
		{"answers of 5xx", func(r *FastReport) { r.ALB.Target5xx = d("1") }, Warning, []string{"alb_target_5xx_count_5m>0"}},
		{"5xx is not known", func(r *FastReport) { r.ALB.Target5xx = nil }, Normal, nil},
		{"slow at p95", func(r *FastReport) { r.ALB.ResponseTimeP95 = d("1.0") }, Warning, []string{"alb_target_response_time>=threshold"}},
		{"p95 wins over the mean", func(r *FastReport) { r.ALB.ResponseTimeAvg = d("9") }, Normal, nil},
		{"the mean stands in for p95", func(r *FastReport) { r.ALB.ResponseTimeP95, r.ALB.ResponseTimeAvg = nil, d("1.1") }, Warning, []string{"alb_target_response_time>=threshold"}},
		{"cloudfront at the threshold", func(r *FastReport) { r.CloudFront.ErrorRate5xx = d("1") }, Warning, []string{"cloudfront_5xx_error_rate>=threshold"}},
		{
			"the worst wins and all reasons stay",
			func(r *FastReport) {
				r.ECS.RunningCount, r.ECS.CPUMax, r.ALB.Target5xx = new(int64(0)), d("99"), d("3")
			},
			Critical,
			[]string{"ecs_running_count=0", "ecs_cpu_utilization_max>=threshold", "alb_target_5xx_count_5m>0"},
		},
	}, func(f Fast) Section { return f.BackendRuntime.Section })
}

func TestDatastoreRules(t *testing.T) {
	check(t, []part{
		{"healthy", func(*FastReport) {}, Normal, nil},
		{"redis is not available", func(r *FastReport) { r.Redis.Status = "modifying" }, Critical, []string{"redis_status!=available"}},
		{"redis status is not known", func(r *FastReport) { r.Redis.Status = "" }, Normal, nil},
		{"redis cpu", func(r *FastReport) { r.Redis.CPUAvg = d("85") }, Warning, []string{"redis_cpu_utilization_avg>=threshold"}},
		{"redis memory", func(r *FastReport) { r.Redis.FreeableMiB = d("127.99") }, Warning, []string{"redis_freeable_memory_low"}},
		{"redis evictions", func(r *FastReport) { r.Redis.Evictions = d("1") }, Warning, []string{"redis_evictions_5m>0"}},
		{"rds is not available", func(r *FastReport) { r.RDS.Status = "rebooting" }, Critical, []string{"rds_status!=available"}},
		{"rds cpu", func(r *FastReport) { r.RDS.CPUAvg = d("85") }, Warning, []string{"rds_cpu_utilization_avg>=threshold"}},
		{"rds storage", func(r *FastReport) { r.RDS.FreeStorageMiB = d("1023.9") }, Warning, []string{"rds_free_storage_low"}},
	}, func(f Fast) Section { return f.Datastores.Section })
}

func TestPipelineRules(t *testing.T) {
	check(t, []part{
		{"healthy", func(*FastReport) {}, Normal, nil},
		{"lambda errors", func(r *FastReport) { r.Lambdas[0].Errors = d("1") }, Warning, []string{"lambda_errors_5m>0:f"}},
		{"lambda throttles", func(r *FastReport) { r.Lambdas[1].Throttles = d("2") }, Warning, []string{"lambda_throttles_5m>0:g"}},
		{"table errors", func(r *FastReport) { r.DynamoDB.SystemErrors = d("1") }, Critical, []string{"dynamodb_system_errors_5m>0"}},
		{"read throttles", func(r *FastReport) { r.DynamoDB.ReadThrottles = d("1") }, Warning, []string{"dynamodb_read_throttle_events_5m>0"}},
		{"write throttles", func(r *FastReport) { r.DynamoDB.WriteThrottles = d("1") }, Warning, []string{"dynamodb_write_throttle_events_5m>0"}},
		{"dead letters", func(r *FastReport) { r.DLQ.MessagesVisible = new(int64(1)) }, Warning, []string{"dlq_messages_visible>0"}},
		{"own dead letters, once", func(r *FastReport) { r.DLQ.MessagesVisible, r.Queues[1].MessagesVisible = new(int64(1)), 3 }, Warning, []string{"dlq_messages_visible>0"}},
		{"a disabled scheduler", func(r *FastReport) { r.Schedulers[0].State = "DISABLED" }, Warning, []string{"scheduler_disabled:s"}},
		{"no scheduler is found", func(r *FastReport) { r.Schedulers = nil }, Unknown, nil},
		{"an old backlog", func(r *FastReport) { r.TaskQueues[0].BacklogAge = d("120") }, Warning, []string{"temporal_backlog_age>=threshold:telemetry"}},
		{"an age without a backlog", func(r *FastReport) { r.TaskQueues[0].BacklogAge, r.TaskQueues[0].BacklogCount = d("900"), 0 }, Normal, nil},
		{"a late schedule", func(r *FastReport) { r.Schedules[0].LatenessSeconds = 120 }, Warning, []string{"schedule_late:factory-refresh"}},
		{"an interval that is not known", func(r *FastReport) { r.Schedules[0].IntervalSeconds, r.Schedules[0].LatenessSeconds = 0, 500 }, Normal, nil},
		{"a paused schedule is not late too", func(r *FastReport) { r.Schedules[0].Paused, r.Schedules[0].LatenessSeconds = true, 500 }, Warning, []string{"schedule_paused:factory-refresh"}},
	}, func(f Fast) Section { return f.DataPipeline.Section })
}

func TestFreshnessRules(t *testing.T) {
	state := func(s Status) func(*FastReport) {
		return func(r *FastReport) { r.Factories[0].PipelineStatus = s }
	}
	check(t, []part{
		{"fresh", func(*FastReport) {}, Normal, nil},
		{"stale", state(Warning), Warning, []string{"factory_pipeline_status:factory-a=warning"}},
		{"silent", state(Critical), Critical, []string{"factory_pipeline_status:factory-a=critical"}},
		{"never seen", state(Unknown), Unknown, nil},
	}, func(f Fast) Section { return f.FactoryFreshness.Section })

	r := healthyFast()
	r.Factories[0].PipelineStatus = Critical
	require.Equal(t, Normal, EvaluateFast(r, DefaultThresholds()).Status, "a silent factory does not turn the platform red")
}

func TestFreshnessIsJudgedAtTheTimeOfTheSnapshot(t *testing.T) {
	for seconds, want := range map[int64]Status{60: Normal, 61: Warning, 120: Warning, 121: Critical, 301: Critical} {
		at := noon.Add(-time.Duration(seconds) * time.Second)
		stored := factory.Latest{
			LastInfraStateAt: &at, PipelineStatus: &factory.PipelineStatus{Status: factory.Normal},
			Risk: &factory.Risk{Score: exact.FromInt(84), Level: factory.LevelWarning, TopCauses: make([]factory.Cause, 5)},
		}
		got := Freshness("factory-a", &stored, noon)
		require.Equal(t, want, got.PipelineStatus, "%d s", seconds)
		require.Equal(t, seconds, *got.InfraAgeSeconds)
		require.Equal(t, "84", got.RiskScore.String())
		require.Len(t, got.TopCauses, maxCauses)
	}
	require.Equal(t, FactoryState{FactoryID: "factory-x", PipelineStatus: Unknown, TopCauses: []factory.Cause{}}, Freshness("factory-x", nil, noon))
}

func TestAnErrorNeverHidesWhatWasMeasured(t *testing.T) {
	cases := []struct {
		name   string
		change func(*FastReport)
		want   Status
	}{
		{"normal becomes unknown", func(*FastReport) {}, Unknown},
		{"a warning stays", func(r *FastReport) { r.ALB.Target5xx = d("1") }, Warning},
		{"an outage stays", func(r *FastReport) { r.ECS.RunningCount = new(int64(0)) }, Critical},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := healthyFast()
			c.change(&r)
			denied := NewError("cloudwatch:GetMetricData", "AccessDenied", "no", factory.MillisOf(noon))
			r.Fail(ProbeCloudFront, denied)
			f := EvaluateFast(r, DefaultThresholds())
			require.Equal(t, c.want, f.BackendRuntime.Status)
			require.Equal(t, []Error{denied}, f.BackendRuntime.Errors)
			require.Equal(t, []Error{denied}, f.Errors)
			require.Equal(t, Normal, f.DataPipeline.Status, "other sections don't notice")
			require.Equal(t, ProbeFailed, f.Probes[ProbeCloudFront])
			require.Equal(t, ProbeOK, f.Probes[ProbeECS])
			if c.want == Unknown {
				require.Empty(t, f.BackendRuntime.Reasons)
			} else {
				require.NotEmpty(t, f.BackendRuntime.Reasons)
			}
		})
	}
}

func TestErrorsOfTheHalfAreThoseOfItsSections(t *testing.T) {
	r := healthyFast()
	for i := range 30 {
		r.Fail(ProbeTaskQueues, NewError("temporal:DescribeTaskQueue", "", string(rune('a'+i)), factory.MillisOf(noon)))
	}
	r.Fail(ProbeRDS, NewError("rds:DescribeDBInstances", "", "no", factory.MillisOf(noon)))
	f := EvaluateFast(r, DefaultThresholds())
	require.Len(t, f.DataPipeline.Errors, maxErrors)
	require.Len(t, f.Errors, maxErrors+1)
	require.Equal(t, "rds:DescribeDBInstances", f.Errors[0].Source, "in the order of the sections")
}

func TestWhatIsNotConfiguredRaisesNothing(t *testing.T) {
	f := EvaluateFast(FastReport{}, DefaultThresholds())
	for _, s := range f.sections() {
		require.Equal(t, Section{Status: NotConfigured, Reasons: []string{}, Errors: []Error{}}, *s)
	}
	require.Equal(t, Unknown, f.Status)
	require.Empty(t, f.Errors)
	require.Equal(t, ProbeNotConfigured, f.Probes[ProbeRedis])
	require.Nil(t, f.DataPipeline.Temporal)

	r := FastReport{Outcome: Outcome{Configured: []Probe{ProbeQueues}}, Queues: []Queue{{Name: "telemetry"}}}
	f = EvaluateFast(r, DefaultThresholds())
	require.Equal(t, Normal, f.DataPipeline.Status, "one part of a section is enough")
	require.Equal(t, Normal, f.Status)
	require.Equal(t, NotConfigured, f.Datastores.Status)
}

func TestLateness(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 0, time.Minute: 0, 61 * time.Second: 1, 3 * time.Minute: 120, -time.Hour: 0} {
		require.Equal(t, want, Lateness(noon.Add(-age), time.Minute, noon), "%s", age)
	}
}
