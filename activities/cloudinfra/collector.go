// Package cloudinfra has the activities of the cloud infrastructure's collectors:
// probes of AWS, Kubernetes and Temporal, each on its own, and the one write that
// stores what they found.
package cloudinfra

import (
	"context"
	"log/slog"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/platform/config"
	storage "millrace/storage/cloudinfra"
	"millrace/storage/objects"
	workflows "millrace/workflows/cloudinfra"
)

// Collector makes the probes of both tracks and stores what they found.
type Collector struct {
	Settings   config.CloudInfra
	Rules      cloudinfra.Thresholds
	FactoryIDs []string
	// Queues are this product's own; those without a URL are left out.
	Queues []WatchedQueue

	ECS         ECS
	ELB         ELB
	CloudWatch  CloudWatch
	ElastiCache ElastiCache
	RDS         RDS
	SQS         SQS
	Scheduler   Scheduler
	EKS         EKS
	Autoscaling Autoscaling
	// GlobalCloudWatch is that of us-east-1, where CloudFront keeps its metrics.
	GlobalCloudWatch CloudWatch
	Kubernetes       Kubernetes
	TaskQueues       TaskQueues
	Schedules        Schedules
	Factories        Factories
	Bucket           objects.Bucket

	Store storage.Store
	// Observer, where set, is shown every snapshot that became the current state.
	Observer Observer
	Now      func() time.Time
	Logger   *slog.Logger
}

// Observer is shown every stored snapshot, as the JSON of its history item and
// the key of its long-lived copy. A failure is logged; the next run makes up for it.
type Observer interface {
	ObserveFast(ctx context.Context, snapshot []byte, sourceKey string) error
	ObserveSlow(ctx context.Context, snapshot []byte, sourceKey string) error
}

// WatchedQueue is one of this product's queues.
type WatchedQueue struct {
	Name  string
	URL   string
	IsDLQ bool
}

// How long one try of a probe may take: a little less than its activity, so that
// the probe can still say what did not answer.
const (
	fastLimit = 5 * time.Second
	slowLimit = 50 * time.Second
)

// Activities are all activities by name.
func (c Collector) Activities() map[string]any {
	probes := map[cloudinfra.Probe]any{
		cloudinfra.ProbeECS:              limited(fastLimit, c.probeECS),
		cloudinfra.ProbeALB:              limited(fastLimit, c.probeALB),
		cloudinfra.ProbeCloudFront:       limited(fastLimit, c.probeCloudFront),
		cloudinfra.ProbeBackendMetrics:   limited(fastLimit, c.measureBackend),
		cloudinfra.ProbeRedis:            limited(fastLimit, c.probeRedis),
		cloudinfra.ProbeRDS:              limited(fastLimit, c.probeRDS),
		cloudinfra.ProbeDatastoreMetrics: limited(fastLimit, c.measureDatastores),
		cloudinfra.ProbePipelineMetrics:  limited(fastLimit, c.measurePipeline),
		cloudinfra.ProbeDLQ:              limited(fastLimit, c.probeDLQ),
		cloudinfra.ProbeSchedulers:       limited(fastLimit, c.probeSchedulers),
		cloudinfra.ProbeTaskQueues:       limited(fastLimit, c.probeTaskQueues),
		cloudinfra.ProbeSchedules:        limited(fastLimit, c.probeSchedules),
		cloudinfra.ProbeQueues:           limited(fastLimit, c.probeQueues),
		cloudinfra.ProbeFreshness:        limited(fastLimit, c.probeFreshness),
		cloudinfra.ProbeCluster:          limited(slowLimit, c.probeCluster),
		cloudinfra.ProbeNodegroups:       limited(slowLimit, c.probeNodegroups),
		cloudinfra.ProbeAutoscaling:      limited(slowLimit, c.probeAutoscaling),
		cloudinfra.ProbeNodes:            limited(slowLimit, c.probeNodes),
		cloudinfra.ProbePods:             limited(slowLimit, c.probePods),
		cloudinfra.ProbeArgoCD:           limited(slowLimit, c.probeArgoCD),
		cloudinfra.ProbeStorage:          limited(slowLimit, c.probeStorage),
	}
	activities := map[string]any{
		workflows.PlanActivity: c.Plan, workflows.StoreFastActivity: c.StoreFast, workflows.StoreSlowActivity: c.StoreSlow,
	}
	for probe, activity := range probes {
		activities[workflows.ActivityOf(probe)] = activity
	}
	return activities
}

// limited bounds one try of a probe.
func limited[In, T any](limit time.Duration, probe func(context.Context, In) (workflows.Found[T], error)) func(context.Context, In) (workflows.Found[T], error) {
	return func(ctx context.Context, in In) (workflows.Found[T], error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return probe(ctx, in)
	}
}

// Plan tells which probes are configured.
func (c Collector) Plan(_ context.Context, req workflows.PlanRequest) (workflows.Plan, error) {
	s := c.Settings
	ecs, alb, redis, rds := s.ECSServiceName != "", s.ALBTargetGroupName != "", s.RedisReplicationGroupID != "", s.RDSInstanceID != ""
	eks := s.EKSClusterName != ""
	type choice struct {
		probe      cloudinfra.Probe
		configured bool
	}
	choices := []choice{
		{cloudinfra.ProbeECS, ecs},
		{cloudinfra.ProbeALB, alb},
		{cloudinfra.ProbeCloudFront, s.CloudFrontDistributionID != ""},
		{cloudinfra.ProbeBackendMetrics, ecs || alb},
		{cloudinfra.ProbeRedis, redis},
		{cloudinfra.ProbeRDS, rds},
		{cloudinfra.ProbeDatastoreMetrics, redis || rds},
		{cloudinfra.ProbePipelineMetrics, len(s.PipelineLambdaNames) > 0 || s.MonitoredTableName != "" || s.DLQQueueName != ""},
		{cloudinfra.ProbeDLQ, s.DLQQueueName != ""},
		{cloudinfra.ProbeSchedulers, len(s.SchedulerNames) > 0},
		{cloudinfra.ProbeTaskQueues, len(s.WatchedTaskQueues) > 0},
		{cloudinfra.ProbeSchedules, len(s.WatchedSchedules) > 0},
		{cloudinfra.ProbeQueues, len(c.watchedQueues()) > 0},
		{cloudinfra.ProbeFreshness, len(c.FactoryIDs) > 0},
	}
	if req.Track == cloudinfra.TrackSlow {
		choices = []choice{
			{cloudinfra.ProbeCluster, eks},
			{cloudinfra.ProbeNodegroups, eks},
			{cloudinfra.ProbeAutoscaling, eks},
			{cloudinfra.ProbeNodes, eks},
			{cloudinfra.ProbePods, eks},
			{cloudinfra.ProbeArgoCD, eks && s.ArgoCDNamespace != ""},
			{cloudinfra.ProbeStorage, len(c.FactoryIDs) > 0},
		}
	}
	plan := workflows.Plan{Configured: []cloudinfra.Probe{}}
	for _, choice := range choices {
		if choice.configured {
			plan.Configured = append(plan.Configured, choice.probe)
		}
	}
	return plan, nil
}

func (c Collector) watchedQueues() []WatchedQueue {
	var watched []WatchedQueue
	for _, q := range c.Queues {
		if q.URL != "" {
			watched = append(watched, q)
		}
	}
	return watched
}

func found[T any](value T, errors ...cloudinfra.Error) workflows.Found[T] {
	return workflows.Found[T]{Value: value, Errors: errors}
}
