package report

import (
	"time"

	"millrace/domain/exact"
)

// CloudBackend are the figures of what serves requests.
type CloudBackend struct {
	CloudSection
	ECS *CloudECS `json:"ecs,omitempty"`
	ALB *CloudALB `json:"alb,omitempty"`
	// CloudFront5xx is the rate of 5xx answers in percent.
	CloudFront5xx *CloudStat `json:"cloudfront_5xx_rate,omitempty"`
}

// CloudECS are the figures of a service. Desired and Running are the last known.
type CloudECS struct {
	AsOf         *time.Time    `json:"as_of"`
	Cluster      string        `json:"cluster_name"`
	Service      string        `json:"service_name"`
	Desired      *int64        `json:"desired_count"`
	Running      *int64        `json:"running_count"`
	MinRunning   *int64        `json:"running_count_min"`
	BelowDesired exact.Decimal `json:"below_desired_minutes"`
	CPU          *CloudStat    `json:"cpu_utilization_max"`
	Memory       *CloudStat    `json:"memory_utilization_max"`
}

// CloudALB are the figures of a target group. Times are in seconds.
type CloudALB struct {
	AsOf        *time.Time   `json:"as_of"`
	TargetGroup string       `json:"target_group_name"`
	Healthy     *CloudStat   `json:"healthy_host_count"`
	Unhealthy   *CloudStat   `json:"unhealthy_host_count"`
	Target5xx   CloudCounter `json:"target_5xx"`
	ResponseAvg *CloudStat   `json:"target_response_time_avg_seconds"`
	ResponseP95 *CloudStat   `json:"target_response_time_p95_seconds"`
}

func (s cloudSight) backend() CloudBackend {
	b := CloudBackend{CloudSection: s.section()}
	if ecs, ok := s.child("ecs"); ok {
		b.ECS = ecs.ecs()
	}
	if alb, ok := s.child("alb"); ok {
		b.ALB = alb.alb()
	}
	b.CloudFront5xx = cloudMeasured(s.fields.child("cloudfront").number("error_rate_5xx_5m"))
	return b
}

func (s cloudSight) ecs() *CloudECS {
	desired, running := s.fields.integer("desired_count"), s.fields.integer("running_count")
	return &CloudECS{
		AsOf: s.asOf(), Cluster: s.fields.name("cluster_name"), Service: s.fields.name("service_name"),
		Desired: desired, Running: running, MinRunning: running,
		BelowDesired: cloudWhen(desired != nil && running != nil && *running < *desired, s.span),
		CPU:          s.stat("cpu_utilization_max"), Memory: s.stat("memory_utilization_max"),
	}
}

// alb reads response times under either of their names.
func (s cloudSight) alb() *CloudALB {
	avg, p95 := s.stat("target_response_time_avg_seconds"), s.stat("target_response_time_p95_seconds")
	if avg == nil {
		avg = s.stat("target_response_time_avg")
	}
	if p95 == nil {
		p95 = s.stat("target_response_time_p95")
	}
	return &CloudALB{
		AsOf: s.asOf(), TargetGroup: s.fields.name("target_group_name"),
		Healthy: s.stat("healthy_host_count"), Unhealthy: s.stat("unhealthy_host_count"),
		Target5xx: s.counter("target_5xx_count_5m"), ResponseAvg: avg, ResponseP95: p95,
	}
}

func (b CloudBackend) merge(o CloudBackend) CloudBackend {
	return CloudBackend{
		CloudSection: b.CloudSection.merge(o.CloudSection),
		ECS:          b.ECS.merge(o.ECS), ALB: b.ALB.merge(o.ALB), CloudFront5xx: b.CloudFront5xx.merge(o.CloudFront5xx),
	}
}

func (e *CloudECS) merge(o *CloudECS) *CloudECS {
	if e == nil || o == nil {
		return cloudEither(e, o)
	}
	last := *e
	if cloudLater(e.AsOf, o.AsOf) {
		last = *o
	}
	last.MinRunning = cloudMin(e.MinRunning, o.MinRunning)
	last.BelowDesired = e.BelowDesired.Add(o.BelowDesired)
	last.CPU, last.Memory = e.CPU.merge(o.CPU), e.Memory.merge(o.Memory)
	return &last
}

func (a *CloudALB) merge(o *CloudALB) *CloudALB {
	if a == nil || o == nil {
		return cloudEither(a, o)
	}
	last := *a
	if cloudLater(a.AsOf, o.AsOf) {
		last = *o
	}
	last.Healthy, last.Unhealthy = a.Healthy.merge(o.Healthy), a.Unhealthy.merge(o.Unhealthy)
	last.Target5xx = a.Target5xx.merge(o.Target5xx)
	last.ResponseAvg, last.ResponseP95 = a.ResponseAvg.merge(o.ResponseAvg), a.ResponseP95.merge(o.ResponseP95)
	return &last
}

// cloudEither is the one that is there, nil without any.
func cloudEither[T any](a, b *T) *T {
	if a == nil {
		return b
	}
	return a
}
