package cloudinfra

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/workflows/schedule"
)

// maxLate is how late a run may begin. It speaks of now: one made up for after
// an outage, or in a backfill, has nothing to say.
const maxLate = 2 * time.Minute

// planOptions are for a local activity that only reads settings.
var planOptions = workflow.LocalActivityOptions{
	Summary: "which probes are configured", StartToCloseTimeout: 3 * time.Second,
}

// run is one run of a collector.
type run struct {
	track cloudinfra.Track
	// at is when the run began, scheduled when it should have.
	at        time.Time
	scheduled time.Time
	options   workflow.ActivityOptions
	outcome   *cloudinfra.Outcome
}

// begin plans a run; one started by hand stands for the time it began. The result is of a run that came too late and has nothing
// to do; else it is nil.
func (r *run) begin(ctx workflow.Context) (*Result, error) {
	r.at = workflow.Now(ctx).UTC()
	r.scheduled = schedule.Time(ctx)
	if late := r.at.Sub(r.scheduled); late > maxLate {
		return &Result{
			Status: StatusLate, ScheduledAt: r.scheduled, LateSeconds: int64(late / time.Second), Errors: []cloudinfra.Error{},
		}, nil
	}
	var plan Plan
	local := workflow.WithLocalActivityOptions(ctx, planOptions)
	if err := workflow.ExecuteLocalActivity(local, PlanActivity, PlanRequest{Track: r.track}).Get(ctx, &plan); err != nil {
		return nil, err
	}
	r.outcome.Configured = plan.Configured
	return nil, nil
}

func (r *run) request() ProbeRequest { return ProbeRequest{AsOf: r.at} }

func (r *run) updatedAt() factory.Millis { return factory.MillisOf(r.at) }

// look makes a probe where it is configured and hands over what it found. What
// it could not measure is noted, and keeps no other probe from its work.
func look[T any](ctx workflow.Context, r *run, p cloudinfra.Probe, request any, accept func(T)) {
	if !r.outcome.Has(p) {
		return
	}
	options := r.options
	options.Summary = string(p)
	ctx = workflow.WithActivityOptions(ctx, options)
	var found Found[T]
	if err := workflow.ExecuteActivity(ctx, ActivityOf(p), request).Get(ctx, &found); err != nil {
		r.outcome.Fail(p, failure(p, err, factory.MillisOf(workflow.Now(ctx))))
		return
	}
	r.outcome.Fail(p, found.Errors...)
	accept(found.Value)
}

// together runs pieces of work side by side until all have ended.
func together(ctx workflow.Context, work ...func(workflow.Context)) {
	group := workflow.NewWaitGroup(ctx)
	for _, w := range work {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			w(ctx)
		})
	}
	group.Wait(ctx)
}

// sources are the APIs that probes ask, for those failures that can't say it
// themselves.
var sources = map[cloudinfra.Probe]string{
	cloudinfra.ProbeECS:              "ecs:DescribeServices",
	cloudinfra.ProbeALB:              "elbv2:DescribeTargetHealth",
	cloudinfra.ProbeCloudFront:       "cloudwatch:GetMetricData",
	cloudinfra.ProbeBackendMetrics:   "cloudwatch:GetMetricData",
	cloudinfra.ProbeRedis:            "elasticache:DescribeReplicationGroups",
	cloudinfra.ProbeRDS:              "rds:DescribeDBInstances",
	cloudinfra.ProbeDatastoreMetrics: "cloudwatch:GetMetricData",
	cloudinfra.ProbePipelineMetrics:  "cloudwatch:GetMetricData",
	cloudinfra.ProbeDLQ:              "sqs:GetQueueAttributes",
	cloudinfra.ProbeSchedulers:       "scheduler:GetSchedule",
	cloudinfra.ProbeTaskQueues:       "temporal:DescribeTaskQueue",
	cloudinfra.ProbeSchedules:        "temporal:DescribeSchedule",
	cloudinfra.ProbeQueues:           "sqs:GetQueueAttributes",
	cloudinfra.ProbeFreshness:        "dynamodb:BatchGetItem",
	cloudinfra.ProbeCluster:          "eks:DescribeCluster",
	cloudinfra.ProbeNodegroups:       "eks:DescribeNodegroup",
	cloudinfra.ProbeAutoscaling:      "autoscaling:DescribeAutoScalingGroups",
	cloudinfra.ProbeNodes:            "kubernetes:ListNodes",
	cloudinfra.ProbePods:             "kubernetes:ListPods",
	cloudinfra.ProbeArgoCD:           "argoproj.io:ListApplications",
	cloudinfra.ProbeStorage:          "s3:ListObjectsV2",
}

// SourceOf is the API that a probe asks.
func SourceOf(p cloudinfra.Probe) string { return sources[p] }

// failure is the error of a probe that failed as a whole. An activity says itself
// what failed; one that hung or died can't.
func failure(p cloudinfra.Probe, err error, at factory.Millis) cloudinfra.Error {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		var told cloudinfra.Error
		if application.HasDetails() && application.Details(&told) == nil && told.Source != "" {
			return told
		}
		return cloudinfra.NewError(SourceOf(p), application.Type(), application.Message(), at)
	}
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return cloudinfra.NewError(SourceOf(p), "Timeout", "no answer in time", at)
	}
	return cloudinfra.NewError(SourceOf(p), "", err.Error(), at)
}

// describe shows in the Temporal UI what became of the probes.
func (r *run) describe(ctx workflow.Context) {
	var table strings.Builder
	table.WriteString("| probe | state |\n|---|---|\n")
	failed := map[cloudinfra.Probe]string{}
	for _, f := range r.outcome.Failures {
		failed[f.Probe] = "failed: " + f.Error.Source + " " + f.Error.Code
	}
	for _, p := range slices.Sorted(slices.Values(r.outcome.Configured)) {
		state := failed[p]
		if state == "" {
			state = "ok"
		}
		table.WriteString("| " + string(p) + " | " + state + " |\n")
	}
	workflow.SetCurrentDetails(ctx, table.String())
}
