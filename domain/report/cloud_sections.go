package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"millrace/domain/exact"
)

// maxCloudRows bounds the rows of a table, maxCloudWorded the events that are
// worded.
const (
	maxCloudRows   = 10
	maxCloudWorded = 5
)

// cloudRows are the entries of a map as rows, those that matter most first.
func cloudRows[V any](m map[string]V, rank func(V) exact.Decimal, cells func(V) []string) [][]string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(rank(m[b]).Cmp(rank(m[a])), cmp.Compare(a, b))
	})
	var rows [][]string
	for _, key := range keys[:min(len(keys), maxCloudRows)] {
		rows = append(rows, append([]string{key}, cells(m[key])...))
	}
	return rows
}

func (w *cloudWriter) backend() {
	w.begin("backend")
	b, stores := w.day.Figures.Backend, w.day.Figures.Datastores
	w.table(w.backendRows(b, stores), "item", "value")
	w.status("backend", b.CloudSection)
	if e := b.ECS; e != nil {
		w.find("backend.ecs", cloudCount(e.Desired), cloudCount(e.Running), e.BelowDesired)
	}
	if a := b.ALB; a != nil {
		w.find("backend.alb", a.Target5xx.Total, a.Target5xx.Peak)
		if a.ResponseP95 != nil {
			w.find("backend.latency", a.ResponseP95.Max)
		}
	}
	w.status("datastores", stores.CloudSection)
}

func (w *cloudWriter) backendRows(b CloudBackend, stores CloudDatastores) [][]string {
	var rows [][]string
	if e := b.ECS; e != nil {
		rows = append(rows, w.row("ecs", w.ecsText()), w.row("below", e.BelowDesired.String()),
			w.row("ecs_cpu", e.CPU.maxText()), w.row("ecs_memory", e.Memory.maxText()))
	}
	if a := b.ALB; a != nil {
		rows = append(rows, w.row("healthy", a.Healthy.minText()), w.row("unhealthy", a.Unhealthy.maxText()),
			w.row("5xx", a.Target5xx.Total.String()), w.row("5xx_peak", a.Target5xx.Peak.String()), w.row("latency", a.ResponseP95.maxText()))
	}
	if b.CloudFront5xx != nil {
		rows = append(rows, w.row("cloudfront", b.CloudFront5xx.maxText()))
	}
	if s := stores.Redis; s != nil {
		rows = append(rows, w.row("redis", s.Unavailable.String()))
	}
	if s := stores.RDS; s != nil {
		rows = append(rows, w.row("rds", s.Unavailable.String()))
	}
	return rows
}

func (w *cloudWriter) pipeline() {
	w.begin("pipeline")
	p := w.day.Figures.Pipeline
	w.table(cloudRows(p.Lambdas, func(l CloudLambda) exact.Decimal { return l.Errors.Total.Add(l.Throttles.Total) }, func(l CloudLambda) []string {
		return []string{l.Errors.Total.String(), l.Throttles.Total.String(), l.DurationP95.maxText()}
	}), "name", "errors", "throttles", "p95")
	w.table(cloudRows(p.Queues, func(q CloudQueue) exact.Decimal { return q.DeadLetters }, func(q CloudQueue) []string {
		return []string{q.Visible.maxText(), q.DeadLetters.String()}
	}), "name", "visible", "letters")
	w.table(cloudRows(p.TaskQueues, func(b CloudBacklog) exact.Decimal { return b.Late }, func(b CloudBacklog) []string {
		return []string{b.Count.maxText(), b.AgeSeconds.maxText()}
	}), "name", "backlog", "age")
	w.table(cloudRows(p.Schedules, func(s CloudSchedule) exact.Decimal { return s.Late.Add(s.Paused) }, func(s CloudSchedule) []string {
		return []string{s.Late.String(), s.Paused.String()}
	}), "name", "late", "paused")
	w.status("pipeline", p.CloudSection)
	tallies := w.day.tallies()
	if tallies.Lambdas > 0 {
		w.find("pipeline.lambdas", tallies.Lambdas, tallies.FailedLambdas)
	}
	if len(p.Queues) > 0 {
		w.find("pipeline.letters", tallies.DeadLetters)
	}
	if tallies.Schedules > 0 {
		w.find("pipeline.schedules", tallies.Schedules, tallies.TroubledSchedules)
	}
	if t := p.DynamoDB; t != nil {
		w.find("pipeline.throttles", t.ReadThrottles.Total, t.WriteThrottles.Total, t.SystemErrors.Total)
	}
}

func (w *cloudWriter) kubernetes() {
	w.begin("kubernetes")
	e := w.day.Figures.EKS
	w.table(w.kubernetesRows(e), "item", "value")
	w.status("kubernetes", e.CloudSection)
	if n := e.Nodes; n != nil && n.Ready != nil && n.Total != nil {
		w.find("kubernetes.nodes", cloudCount(n.Ready), cloudCount(n.Total), n.NotReady)
	}
	if p := e.Pods; p != nil && p.Running != nil {
		w.find("kubernetes.pods", p.Unhealthy, p.Restarts)
	}
	if a := e.ArgoCD; a != nil && a.Synced != nil && a.Total != nil {
		w.find("kubernetes.argocd", cloudCount(a.Synced), cloudCount(a.Total), a.OutOfSync, a.Degraded)
	}
	if minutes := e.groupMinutes(); minutes.Sign() > 0 {
		w.find("kubernetes.groups", minutes)
	}
	if e.Pods != nil {
		w.table(podRows(e.Pods.TopByCPU), "pod", "cpu", "memory")
		w.table(podRows(e.Pods.TopByMemory), "pod", "cpu", "memory")
	}
}

func (w *cloudWriter) kubernetesRows(e CloudEKS) [][]string {
	var rows [][]string
	if e.Cluster != nil {
		rows = append(rows, w.row("cluster", e.Cluster.Status))
	}
	if n := e.Nodes; n != nil {
		rows = append(rows, w.row("nodes", w.nodesText()), w.row("not_ready", n.NotReady.String()))
	}
	if p := e.Pods; p != nil {
		rows = append(rows, w.row("pods", cloudCount(p.Running)), w.row("pods_bad", p.Unhealthy.String()), w.row("restarts", strconv.FormatInt(p.Restarts, 10)))
	}
	if a := e.ArgoCD; a != nil {
		rows = append(rows, w.row("argocd", w.argocdText()), w.row("out_of_sync", a.OutOfSync.String()), w.row("degraded", a.Degraded.String()))
	}
	return rows
}

const maxPodRows = 5

func podRows(pods []CloudPod) [][]string {
	var rows [][]string
	for _, pod := range pods[:min(len(pods), maxPodRows)] {
		rows = append(rows, []string{pod.Namespace + "/" + pod.Pod, pod.CPUMillicores.String(), pod.MemoryMiB.String()})
	}
	return rows
}

// freshness names factories in its tables only: what a model words is about the
// infrastructure.
func (w *cloudWriter) freshness() {
	w.begin("freshness")
	f, s := w.day.Figures.Freshness, w.day.Figures.Storage
	w.table(cloudRows(f.Factories, func(c CloudFactory) exact.Decimal { return c.Stale }, func(c CloudFactory) []string {
		return []string{c.Stale.String(), c.AgeSeconds.maxText(), c.RiskScore.minText()}
	}), "factory", "stale", "age", "risk")
	w.table(cloudRows(s.Factories, func(c CloudStorageFactory) exact.Decimal { return c.Stale }, func(c CloudStorageFactory) []string {
		return []string{c.Stale.String(), c.RawAge.maxText(), c.Processed.maxText(), c.Aggregated.maxText()}
	}), "factory", "stale", "raw", "processed", "agg")
	tallies := w.day.tallies()
	w.status("freshness", f.CloudSection)
	if tallies.Factories > 0 {
		w.find("freshness.factories", tallies.Factories, tallies.StaleFactories)
	}
	w.status("storage", s.CloudSection)
	if len(s.Factories) > 0 {
		w.find("freshness.objects", tallies.StaleStorage)
	}
}

func (w *cloudWriter) events() {
	w.begin("events")
	var rows [][]string
	for i, e := range w.day.Events[:min(len(w.day.Events), maxCloudRows)] {
		label, severity := w.say("cloud."+string(e.Type)), w.say("verdict."+string(e.Severity))
		rows = append(rows, []string{e.TimeRange, label, e.Subject, severity, e.Minutes.String()})
		if i < maxCloudWorded {
			w.findAs("events."+strconv.Itoa(i+1), "event", e.TimeRange, label, severity, e.Minutes)
		}
	}
	w.table(rows, "time", "event", "subject", "severity", "minutes")
	if len(rows) == 0 {
		w.find("events.none")
	}
}

func (w *cloudWriter) checks() {
	w.begin("checks")
	var rows [][]string
	for _, check := range w.day.RecommendedChecks {
		w.findAs("checks."+check.ID, "check."+check.ID)
		rows = append(rows, []string{w.say("why." + check.ID), w.say("priority." + check.Priority)})
	}
	w.table(rows, "check", "priority")
	if len(rows) == 0 {
		w.find("checks.none")
	}
}

func (w *cloudWriter) limits() {
	w.begin("limits")
	for _, id := range w.day.limits() {
		w.findAs("limits."+id, "limit."+id)
	}
}
