package cloudinfra

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/cloudinfra"
)

// slowProbeOptions give time to page through a large cluster or bucket; a probe
// that goes on says so after each page, one request takes 10 s at most.
var slowProbeOptions = workflow.ActivityOptions{
	StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: 100 * time.Second, HeartbeatTimeout: 20 * time.Second,
	RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumAttempts: 3},
}

// CloudInfraSlow looks at what changes slowly or costs more to look at. It is a
// sampler: it uses now, and a run that is more than two minutes late does
// nothing but say so.
func CloudInfraSlow(ctx workflow.Context, in Input) (Result, error) {
	w := slowRun{}
	w.run = run{track: cloudinfra.TrackSlow, options: slowProbeOptions, outcome: &w.report.Outcome}
	if late, err := w.begin(ctx); late != nil || err != nil {
		return late.orZero(), err
	}
	together(ctx, w.cluster, w.nodegroups, w.nodes, w.pods, w.argocd, w.storage)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	w.describe(ctx)
	request := StoreSlowRequest{UpdatedAt: w.updatedAt(), Report: w.report, Writes: in.Writes}
	return w.store(ctx, StoreSlowActivity, request)
}

// slowRun is one run of the slow collector.
type slowRun struct {
	run
	report cloudinfra.SlowReport
}

func (w *slowRun) cluster(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeCluster, w.request(), func(found cloudinfra.Cluster) { w.report.Cluster = &found })
}

// nodegroups looks at the node groups and then at the Auto Scaling groups behind
// them.
func (w *slowRun) nodegroups(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeNodegroups, w.request(), func(found []cloudinfra.Nodegroup) { w.report.Nodegroups = found })
	request := AutoscalingRequest{ProbeRequest: w.request()}
	for _, g := range w.report.Nodegroups {
		request.Groups = append(request.Groups, g.AutoscalingGroups...)
	}
	if len(request.Groups) == 0 {
		return // none to ask for: either there are none or the node groups failed
	}
	look(ctx, &w.run, cloudinfra.ProbeAutoscaling, request, func(found cloudinfra.Autoscaling) { w.report.Autoscaling = &found })
}

func (w *slowRun) nodes(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeNodes, w.request(), func(found cloudinfra.Nodes) { w.report.Nodes = &found })
}

func (w *slowRun) pods(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbePods, w.request(), func(found cloudinfra.Pods) { w.report.Pods = &found })
}

func (w *slowRun) argocd(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeArgoCD, w.request(), func(found cloudinfra.ArgoCD) { w.report.ArgoCD = &found })
}

func (w *slowRun) storage(ctx workflow.Context) {
	look(ctx, &w.run, cloudinfra.ProbeStorage, w.request(), func(found []cloudinfra.StorageFactory) { w.report.Storage = found })
}
