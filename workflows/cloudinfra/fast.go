// Package cloudinfra has the collectors of the cloud infrastructure: every minute
// and every five minutes they look at what the product runs on, each look on its
// own, and store what they saw.
package cloudinfra

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/cloudinfra"
)

// Input of a run; the zero value writes everything.
type Input struct {
	Writes
}

// fastProbeOptions leave a run within its minute: 14 s for what is looked up,
// 14 s for the metrics of what was found, 25 s to store it. The probe itself
// gives up after 5 s, so that it can say what did not answer.
var fastProbeOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 6 * time.Second, ScheduleToCloseTimeout: 14 * time.Second,
	RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3},
}

// storeOptions let a worker be replaced between the table and the bucket.
var storeOptions = workflow.ActivityOptions{
	Summary: "judge and store", StartToCloseTimeout: 10 * time.Second, ScheduleToCloseTimeout: 25 * time.Second,
	RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
}

// CloudInfraFast looks at what changes by the minute. It is a sampler: it uses
// now, and a run that is more than two minutes late does nothing but say so.
func CloudInfraFast(ctx workflow.Context, in Input) (Result, error) {
	w := fastRun{}
	w.run = run{track: cloudinfra.TrackFast, options: fastProbeOptions, outcome: &w.report.Outcome}
	if late, err := w.begin(ctx); late != nil || err != nil {
		return late.orZero(), err
	}
	together(ctx, w.backend, w.datastores, w.pipeline, w.freshness)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	w.describe(ctx)
	request := StoreFastRequest{UpdatedAt: w.updatedAt(), Report: w.report, Writes: in.Writes}
	return w.store(ctx, StoreFastActivity, request)
}

// store judges and stores what was measured.
func (r *run) store(ctx workflow.Context, activity string, request any) (Result, error) {
	var result Result
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, storeOptions), activity, request).Get(ctx, &result)
	result.ScheduledAt = r.scheduled
	return result, err
}

func (r *Result) orZero() Result {
	if r == nil {
		return Result{}
	}
	return *r
}

// fastRun is one run of the fast collector.
type fastRun struct {
	run
	report cloudinfra.FastReport
}

func (w *fastRun) backend(ctx workflow.Context) {
	var balancer ALBFound
	together(ctx,
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeECS, w.request(), func(found cloudinfra.ECS) { w.report.ECS = &found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeALB, w.request(), func(found ALBFound) { balancer, w.report.ALB = found, &found.ALB })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeCloudFront, w.request(), func(found cloudinfra.CloudFront) { w.report.CloudFront = &found })
		},
	)
	request := BackendMetricsRequest{ProbeRequest: w.request(), TargetGroup: balancer.TargetGroup, LoadBalancer: balancer.LoadBalancer}
	look(ctx, &w.run, cloudinfra.ProbeBackendMetrics, request, func(found BackendMetrics) {
		if found.ECS != nil {
			w.report.ECS = orNew(w.report.ECS)
			w.report.ECS.ECSMetrics = *found.ECS
		}
		if found.ALB != nil {
			w.report.ALB = orNew(w.report.ALB)
			w.report.ALB.ALBMetrics = *found.ALB
		}
	})
}

func (w *fastRun) datastores(ctx workflow.Context) {
	var nodes []string
	together(ctx,
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeRedis, w.request(), func(found RedisFound) { nodes, w.report.Redis = found.Nodes, &found.Redis })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeRDS, w.request(), func(found cloudinfra.RDS) { w.report.RDS = &found })
		},
	)
	request := DatastoreMetricsRequest{ProbeRequest: w.request(), RedisNodes: nodes}
	look(ctx, &w.run, cloudinfra.ProbeDatastoreMetrics, request, func(found DatastoreMetrics) {
		if found.Redis != nil {
			w.report.Redis = orNew(w.report.Redis)
			w.report.Redis.RedisMetrics = *found.Redis
		}
		if found.RDS != nil {
			w.report.RDS = orNew(w.report.RDS)
			w.report.RDS.RDSMetrics = *found.RDS
		}
	})
}

func (w *fastRun) pipeline(ctx workflow.Context) {
	var metrics PipelineMetrics
	together(ctx,
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbePipelineMetrics, w.request(), func(found PipelineMetrics) { metrics = found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeDLQ, w.request(), func(found cloudinfra.DLQ) { w.report.DLQ = &found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeSchedulers, w.request(), func(found []cloudinfra.Scheduler) { w.report.Schedulers = found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeTaskQueues, w.request(), func(found []cloudinfra.TaskQueue) { w.report.TaskQueues = found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeSchedules, w.request(), func(found []cloudinfra.Schedule) { w.report.Schedules = found })
		},
		func(ctx workflow.Context) {
			look(ctx, &w.run, cloudinfra.ProbeQueues, w.request(), func(found []cloudinfra.Queue) { w.report.Queues = found })
		},
	)
	w.report.Lambdas, w.report.DynamoDB = metrics.Lambdas, metrics.DynamoDB
	if metrics.DLQOldestAge != nil {
		w.report.DLQ = orNew(w.report.DLQ)
		w.report.DLQ.OldestAgeSeconds = metrics.DLQOldestAge
	}
}

func (w *fastRun) freshness(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeFreshness, w.request(), func(found []cloudinfra.FactoryState) { w.report.Factories = found })
}

func orNew[T any](value *T) *T {
	if value == nil {
		return new(T)
	}
	return value
}
