package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// CloudInfra says what the collectors of the cloud infrastructure look at. A name
// that is empty means that its probe is not configured: its part is left out, and
// raises nothing.
type CloudInfra struct {
	ECSClusterName           string   `name:"ecs-cluster-name" help:"ECS cluster of the service that is watched." env:"MILLRACE_ECS_CLUSTER_NAME" placeholder:"NAME"`
	ECSServiceName           string   `name:"ecs-service-name" help:"ECS service that is watched." env:"MILLRACE_ECS_SERVICE_NAME" placeholder:"NAME"`
	ALBTargetGroupName       string   `name:"alb-target-group-name" help:"Target group that is watched; where an ECS service is set, the one attached to it is preferred." env:"MILLRACE_ALB_TARGET_GROUP_NAME" placeholder:"NAME"`
	CloudFrontDistributionID string   `name:"cloudfront-distribution-id" help:"CloudFront distribution that is watched." env:"MILLRACE_CLOUDFRONT_DISTRIBUTION_ID" placeholder:"ID"`
	RedisReplicationGroupID  string   `name:"redis-replication-group-id" help:"ElastiCache replication group that is watched." env:"MILLRACE_REDIS_REPLICATION_GROUP_ID" placeholder:"ID"`
	RDSInstanceID            string   `name:"rds-db-instance-id" help:"RDS instance that is watched." env:"MILLRACE_RDS_DB_INSTANCE_ID" placeholder:"ID"`
	PipelineLambdaNames      []string `help:"Lambda functions that are watched." env:"MILLRACE_PIPELINE_LAMBDA_NAMES" placeholder:"NAME"`
	MonitoredTableName       string   `help:"DynamoDB table whose throttles and errors are watched in CloudWatch." env:"MILLRACE_MONITORED_TABLE_NAME" placeholder:"NAME"`
	DLQQueueName             string   `name:"dlq-queue-name" help:"SQS queue of dead letters that is watched." env:"MILLRACE_DLQ_QUEUE_NAME" placeholder:"NAME"`
	SchedulerNames           []string `help:"EventBridge schedules that are watched, NAME or GROUP/NAME." env:"MILLRACE_SCHEDULER_NAMES" placeholder:"NAME"`
	WatchedTaskQueues        []string `help:"Temporal task queues whose backlog is watched." default:"artifacts,telemetry,scheduled,alerts,reports" env:"MILLRACE_WATCHED_TASK_QUEUES"`
	WatchedSchedules         []string `help:"Temporal schedules whose lateness is watched; * watches all that there are." default:"*" env:"MILLRACE_WATCHED_SCHEDULES"`
	EKSClusterName           string   `name:"eks-cluster-name" help:"EKS cluster that is watched." env:"MILLRACE_EKS_CLUSTER_NAME" placeholder:"NAME"`
	ArgoCDNamespace          string   `name:"argocd-namespace" help:"Namespace of Argo CD's applications in that cluster; empty does not look at them." default:"argocd" env:"MILLRACE_ARGOCD_NAMESPACE"`
	TopPods                  int      `name:"k8s-top-pods-limit" help:"How many pods are listed by CPU and by memory." default:"5" env:"MILLRACE_K8S_TOP_PODS_LIMIT"`

	MetricWindow    time.Duration `name:"fast-metric-window" help:"Window that counters of CloudWatch are summed over." default:"5m" env:"MILLRACE_FAST_METRIC_WINDOW"`
	StorageLookback time.Duration `name:"s3-latest-lookback" help:"How far back the newest object of a factory is looked for." default:"24h" env:"MILLRACE_S3_LATEST_LOOKBACK"`
	FastHistoryTTL  time.Duration `help:"How long HISTORY#FAST items live." default:"6h" env:"MILLRACE_FAST_HISTORY_TTL"`
	SlowHistoryTTL  time.Duration `help:"How long HISTORY#SLOW items live." default:"24h" env:"MILLRACE_SLOW_HISTORY_TTL"`

	Thresholds CloudInfraThresholds `embed:"" prefix:"threshold-"`
}

// CloudInfraThresholds are the limits that sections are judged by.
type CloudInfraThresholds struct {
	ECSCPU         string        `name:"ecs-cpu" help:"Percent." default:"85" env:"MILLRACE_THRESHOLD_ECS_CPU"`
	ECSMemory      string        `name:"ecs-memory" help:"Percent." default:"85" env:"MILLRACE_THRESHOLD_ECS_MEMORY"`
	ALBLatency     string        `name:"alb-latency" help:"Seconds." default:"1.0" env:"MILLRACE_THRESHOLD_ALB_LATENCY"`
	RedisCPU       string        `name:"redis-cpu" help:"Percent." default:"85" env:"MILLRACE_THRESHOLD_REDIS_CPU"`
	RedisFreeable  string        `name:"redis-freeable-memory" help:"MiB below which is a warning." default:"128" env:"MILLRACE_THRESHOLD_REDIS_FREEABLE_MEMORY"`
	RDSCPU         string        `name:"rds-cpu" help:"Percent." default:"85" env:"MILLRACE_THRESHOLD_RDS_CPU"`
	RDSFreeStorage string        `name:"rds-free-storage" help:"MiB below which is a warning." default:"1024" env:"MILLRACE_THRESHOLD_RDS_FREE_STORAGE"`
	CloudFront5xx  string        `name:"cloudfront-5xx" help:"Percent of requests." default:"1.0" env:"MILLRACE_THRESHOLD_CLOUDFRONT_5XX"`
	BacklogAge     time.Duration `help:"Age of a task queue's oldest task." default:"2m" env:"MILLRACE_THRESHOLD_BACKLOG_AGE"`
	Late           int64         `name:"schedule-intervals" help:"Intervals by which a schedule may be overdue." default:"2" env:"MILLRACE_THRESHOLD_SCHEDULE_INTERVALS"`
	RawAge         time.Duration `help:"Age of a factory's newest raw object." default:"5m" env:"MILLRACE_THRESHOLD_RAW_AGE"`
	ProcessedAge   time.Duration `help:"Age of a factory's newest state snapshot." default:"5m" env:"MILLRACE_THRESHOLD_PROCESSED_AGE"`
	AggregateAge   time.Duration `help:"Age of a factory's newest aggregate." default:"15m" env:"MILLRACE_THRESHOLD_AGGREGATE_AGE"`
}

const (
	maxTopPods = 50
	// maxLookback keeps the look-back to two day partitions.
	maxLookback = 24 * time.Hour
	// maxMetricWindow is what one page of minutes holds for all metrics of a section.
	maxMetricWindow = time.Hour
)

// schedulerName is NAME or GROUP/NAME of EventBridge Scheduler.
var schedulerName = regexp.MustCompile(`^([A-Za-z0-9_.-]{1,64}/)?[A-Za-z0-9_.-]{1,64}$`)

// Validate refuses settings that can't work, all of them in one error.
func (c CloudInfra) Validate() error {
	var problems []error
	refuse := func(broken bool, variable, rule string) {
		if broken {
			problems = append(problems, fmt.Errorf("%s: %s", variable, rule))
		}
	}
	refuse((c.ECSClusterName == "") != (c.ECSServiceName == ""), "MILLRACE_ECS_SERVICE_NAME", "cluster and service must be set together")
	for _, name := range c.SchedulerNames {
		refuse(!schedulerName.MatchString(name), "MILLRACE_SCHEDULER_NAMES", fmt.Sprintf("%q must be NAME or GROUP/NAME", name))
	}
	refuse(c.TopPods < 0 || c.TopPods > maxTopPods, "MILLRACE_K8S_TOP_PODS_LIMIT", fmt.Sprintf("must be 0 to %d", maxTopPods))
	refuse(c.MetricWindow < time.Minute || c.MetricWindow > maxMetricWindow || c.MetricWindow%time.Minute != 0,
		"MILLRACE_FAST_METRIC_WINDOW", fmt.Sprintf("must be whole minutes, at most %s", maxMetricWindow))
	refuse(c.StorageLookback < time.Hour || c.StorageLookback > maxLookback, "MILLRACE_S3_LATEST_LOOKBACK", fmt.Sprintf("must be 1h to %s", maxLookback))
	refuse(c.FastHistoryTTL <= 0, "MILLRACE_FAST_HISTORY_TTL", "must be positive")
	refuse(c.SlowHistoryTTL <= 0, "MILLRACE_SLOW_HISTORY_TTL", "must be positive")
	_, err := c.Thresholds.Rules()
	return errors.Join(append(problems, err)...)
}

// Rules are the thresholds as rules. The error names every one that is no
// positive number.
func (t CloudInfraThresholds) Rules() (cloudinfra.Thresholds, error) {
	var problems []error
	number := func(variable, text string) exact.Decimal {
		d, err := exact.Parse(strings.TrimSpace(text))
		if err != nil || d.Sign() <= 0 {
			problems = append(problems, fmt.Errorf("MILLRACE_THRESHOLD_%s: must be a positive number", variable))
		}
		return d
	}
	rules := cloudinfra.Thresholds{
		ECSCPU: number("ECS_CPU", t.ECSCPU), ECSMemory: number("ECS_MEMORY", t.ECSMemory), ALBLatency: number("ALB_LATENCY", t.ALBLatency),
		RedisCPU: number("REDIS_CPU", t.RedisCPU), RedisFreeable: number("REDIS_FREEABLE_MEMORY", t.RedisFreeable),
		RDSCPU: number("RDS_CPU", t.RDSCPU), RDSFreeStorage: number("RDS_FREE_STORAGE", t.RDSFreeStorage),
		CloudFront5xx: number("CLOUDFRONT_5XX", t.CloudFront5xx), BacklogAge: t.BacklogAge, ScheduleIntervals: t.Late,
		RawAge: t.RawAge, ProcessedAge: t.ProcessedAge, AggregateAge: t.AggregateAge,
	}
	for variable, positive := range map[string]bool{
		"BACKLOG_AGE": t.BacklogAge > 0, "SCHEDULE_INTERVALS": t.Late > 0, "RAW_AGE": t.RawAge > 0,
		"PROCESSED_AGE": t.ProcessedAge > 0, "AGGREGATE_AGE": t.AggregateAge > 0,
	} {
		if !positive {
			problems = append(problems, fmt.Errorf("MILLRACE_THRESHOLD_%s: must be positive", variable))
		}
	}
	return rules, errors.Join(problems...)
}
