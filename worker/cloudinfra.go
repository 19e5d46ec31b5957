package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/cloudinfra"
	storage "millrace/storage/cloudinfra"
	"millrace/storage/objects"
	workflows "millrace/workflows/cloudinfra"
	"millrace/workflows/names"
)

// registerCloudInfra hosts the collectors of the cloud infrastructure.
func registerCloudInfra(h *host, d dependencies) {
	collector := cloudInfraCollector(d)
	h.on(names.QueueScheduled, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.CloudInfraFast, workflow.RegisterOptions{Name: names.CloudInfraFast})
		r.RegisterWorkflowWithOptions(workflows.CloudInfraSlow, workflow.RegisterOptions{Name: names.CloudInfraSlow})
		for name, run := range collector.Activities() {
			r.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
		}
	})
}

// cloudFrontRegion is where CloudFront keeps its metrics, wherever it serves.
const cloudFrontRegion = "us-east-1"

func cloudInfraCollector(d dependencies) activities.Collector {
	cfg, settings := d.clients.config, d.settings.CloudInfra
	rules, _ := settings.Thresholds.Rules() // the settings have been checked
	clusters := eks.NewFromConfig(cfg)
	status := factoryStore(d)
	return activities.Collector{
		Settings: settings, Rules: rules, FactoryIDs: d.settings.FactoryIDs, Queues: watchedQueues(d.settings),
		ECS: ecs.NewFromConfig(cfg), ELB: elasticloadbalancingv2.NewFromConfig(cfg), CloudWatch: d.clients.cloudwatch,
		ElastiCache: elasticache.NewFromConfig(cfg), RDS: rds.NewFromConfig(cfg), SQS: d.clients.sqs, Scheduler: scheduler.NewFromConfig(cfg),
		EKS: clusters, Autoscaling: autoscaling.NewFromConfig(cfg),
		GlobalCloudWatch: cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) { o.Region = cloudFrontRegion }),
		Kubernetes: &activities.Cluster{
			EKS: clusters, STS: sts.NewPresignClient(sts.NewFromConfig(cfg)), Name: settings.EKSClusterName, Now: time.Now,
		},
		TaskQueues: d.temporal.WorkflowService(), Schedules: d.temporal.ScheduleClient(),
		Factories: status, Bucket: objects.Bucket{Client: d.clients.s3, Name: d.settings.DataBucket},
		Store: storage.Store{Table: status.Table, Bucket: status.Bucket, FastTTL: settings.FastHistoryTTL, SlowTTL: settings.SlowHistoryTTL},
		Now:   time.Now, Logger: d.logger, Observer: d.alerting.observer,
	}
}

// watchedQueues are this product's own queues.
func watchedQueues(s settings) []activities.WatchedQueue {
	return []activities.WatchedQueue{
		{Name: "telemetry", URL: s.TelemetryQueueURL},
		{Name: "telemetry-dlq", URL: s.TelemetryDLQQueueURL, IsDLQ: true},
		{Name: "rule-errors", URL: s.RuleErrorsQueueURL},
		{Name: "job-results", URL: s.JobResultsQueueURL},
	}
}
