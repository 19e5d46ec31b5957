package config

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
)

func parseCloudInfra(t *testing.T, args ...string) (CloudInfra, error) {
	t.Helper()
	var s struct{ CloudInfra }
	parser, err := kong.New(&s)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return s.CloudInfra, err
}

func TestByDefaultOnlyTheProductItselfIsWatched(t *testing.T) {
	c, err := parseCloudInfra(t)
	require.NoError(t, err)
	rules, err := c.Thresholds.Rules()
	require.NoError(t, err)
	want, err := json.Marshal(cloudinfra.DefaultThresholds())
	require.NoError(t, err)
	got, err := json.Marshal(rules)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got), "the defaults are those of the rules")
	for _, name := range []string{
		c.ECSClusterName, c.ECSServiceName, c.ALBTargetGroupName, c.CloudFrontDistributionID, c.RedisReplicationGroupID, c.RDSInstanceID,
		c.MonitoredTableName, c.DLQQueueName, c.EKSClusterName,
	} {
		require.Empty(t, name)
	}
	require.Empty(t, c.PipelineLambdaNames)
	require.Empty(t, c.SchedulerNames)
	require.Equal(t, []string{"*"}, c.WatchedSchedules)
	require.Equal(t, []string{"artifacts", "telemetry", "scheduled", "alerts", "reports"}, c.WatchedTaskQueues)
	require.Equal(t, []time.Duration{6 * time.Hour, 24 * time.Hour, 5 * time.Minute, 24 * time.Hour},
		[]time.Duration{c.FastHistoryTTL, c.SlowHistoryTTL, c.MetricWindow, c.StorageLookback})
	require.Equal(t, 5, c.TopPods)
	require.Equal(t, "argocd", c.ArgoCDNamespace)
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_PIPELINE_LAMBDA_NAMES", "a,b")
	t.Setenv("MILLRACE_SCHEDULER_NAMES", "s,group/s")
	t.Setenv("MILLRACE_THRESHOLD_RDS_CPU", "70.5")
	t.Setenv("MILLRACE_THRESHOLD_BACKLOG_AGE", "5m")
	t.Setenv("MILLRACE_WATCHED_SCHEDULES", "")
	c, err := parseCloudInfra(t)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, c.PipelineLambdaNames)
	require.Equal(t, []string{"s", "group/s"}, c.SchedulerNames)
	rules, err := c.Thresholds.Rules()
	require.NoError(t, err)
	require.Equal(t, "70.5", rules.RDSCPU.String())
	require.Equal(t, 5*time.Minute, rules.BacklogAge)
}

func TestAllWrongCloudInfraSettingsAreNamedTogether(t *testing.T) {
	_, err := parseCloudInfra(t, "--ecs-cluster-name=c", "--scheduler-names=a/b/c", "--k8s-top-pods-limit=51", "--fast-metric-window=90s",
		"--s3-latest-lookback=48h", "--fast-history-ttl=0s", "--slow-history-ttl=-1h", "--threshold-ecs-cpu=high", "--threshold-alb-latency=0",
		"--threshold-backlog-age=0s", "--threshold-schedule-intervals=0", "--threshold-raw-age=0s", "--threshold-processed-age=0s", "--threshold-aggregate-age=0s")
	for _, variable := range []string{
		"MILLRACE_ECS_SERVICE_NAME", "MILLRACE_SCHEDULER_NAMES", "MILLRACE_K8S_TOP_PODS_LIMIT", "MILLRACE_FAST_METRIC_WINDOW", "MILLRACE_S3_LATEST_LOOKBACK",
		"MILLRACE_FAST_HISTORY_TTL", "MILLRACE_SLOW_HISTORY_TTL", "MILLRACE_THRESHOLD_ECS_CPU", "MILLRACE_THRESHOLD_ALB_LATENCY",
		"MILLRACE_THRESHOLD_BACKLOG_AGE", "MILLRACE_THRESHOLD_SCHEDULE_INTERVALS", "MILLRACE_THRESHOLD_RAW_AGE", "MILLRACE_THRESHOLD_PROCESSED_AGE",
		"MILLRACE_THRESHOLD_AGGREGATE_AGE",
	} {
		require.ErrorContains(t, err, variable)
	}
}
