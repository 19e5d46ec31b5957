package cloudinfra

import "millrace/domain/exact"

// BackendRuntime is the section of what serves requests.
type BackendRuntime struct {
	Section
	ECS        *ECS        `json:"ecs,omitempty"`
	ALB        *ALB        `json:"alb,omitempty"`
	CloudFront *CloudFront `json:"cloudfront,omitempty"`
}

// ECS is a service of Elastic Container Service. A null was not measured.
type ECS struct {
	ClusterName  string `json:"cluster_name,omitempty"`
	ServiceName  string `json:"service_name,omitempty"`
	Status       string `json:"status,omitempty"`
	DesiredCount *int64 `json:"desired_count"`
	RunningCount *int64 `json:"running_count"`
	PendingCount *int64 `json:"pending_count"`
	ECSMetrics
}

// ECSMetrics are the newest minute of a service, in percent.
type ECSMetrics struct {
	CPUAvg    *exact.Decimal `json:"cpu_utilization_avg"`
	CPUMax    *exact.Decimal `json:"cpu_utilization_max"`
	MemoryAvg *exact.Decimal `json:"memory_utilization_avg"`
	MemoryMax *exact.Decimal `json:"memory_utilization_max"`
}

// ALB is a target group of a load balancer. Hosts are counted by state: draining
// ones leave on purpose and are no fault.
type ALB struct {
	TargetGroupName string `json:"target_group_name,omitempty"`
	TargetGroupARN  string `json:"target_group_arn,omitempty"`
	HealthyHosts    *int64 `json:"healthy_host_count"`
	UnhealthyHosts  *int64 `json:"unhealthy_host_count"`
	DrainingHosts   *int64 `json:"draining_host_count"`
	InitialHosts    *int64 `json:"initial_host_count"`
	UnusedHosts     *int64 `json:"unused_host_count"`
	UnknownHosts    *int64 `json:"unknown_host_count"`
	ALBMetrics
}

// ALBMetrics are the 5xx answers of five minutes and the response times of the
// newest minute in seconds. The times have two names each.
type ALBMetrics struct {
	Target5xx              *exact.Decimal `json:"target_5xx_count_5m"`
	ResponseTimeAvg        *exact.Decimal `json:"target_response_time_avg"`
	ResponseTimeP95        *exact.Decimal `json:"target_response_time_p95"`
	ResponseTimeAvgSeconds *exact.Decimal `json:"target_response_time_avg_seconds"`
	ResponseTimeP95Seconds *exact.Decimal `json:"target_response_time_p95_seconds"`
}

// WithTimes are the metrics with response times under both their names.
func (m ALBMetrics) WithTimes(avg, p95 *exact.Decimal) ALBMetrics {
	m.ResponseTimeAvg, m.ResponseTimeP95 = avg, p95
	m.ResponseTimeAvgSeconds, m.ResponseTimeP95Seconds = avg, p95
	return m
}

// CloudFront is a distribution; the rate is in percent of five minutes' requests.
type CloudFront struct {
	DistributionID string         `json:"distribution_id,omitempty"`
	ErrorRate5xx   *exact.Decimal `json:"error_rate_5xx_5m"`
}

func evaluateBackend(r FastReport, t Thresholds) BackendRuntime {
	if !r.Has(backendProbes...) {
		return BackendRuntime{Section: notConfigured()}
	}
	s := BackendRuntime{ECS: r.ECS, ALB: r.ALB, CloudFront: r.CloudFront}
	var v verdict
	if s.ECS != nil {
		v.ecs(*s.ECS, t)
	}
	if s.ALB != nil {
		v.alb(*s.ALB, t)
	}
	if s.CloudFront != nil {
		v.part(warns(atLeast(s.CloudFront.ErrorRate5xx, t.CloudFront5xx), "cloudfront_5xx_error_rate>=threshold"))
	}
	s.Section = v.section(r.errors(backendProbes...))
	return s
}

func (v *verdict) ecs(e ECS, t Thresholds) {
	none := e.DesiredCount != nil && e.RunningCount != nil && *e.DesiredCount > 0 && *e.RunningCount == 0
	few := e.DesiredCount != nil && e.RunningCount != nil && *e.RunningCount < *e.DesiredCount
	v.part(
		isCritical(none, "ecs_running_count=0"),
		warns(few && !none, "ecs_running_count<desired_count"),
		warns(atLeast(e.CPUMax, t.ECSCPU), "ecs_cpu_utilization_max>=threshold"),
		warns(atLeast(e.MemoryMax, t.ECSMemory), "ecs_memory_utilization_max>=threshold"),
	)
}

func (v *verdict) alb(a ALB, t Thresholds) {
	latency := a.ResponseTimeP95
	if latency == nil {
		latency = a.ResponseTimeAvg
	}
	v.part(
		isCritical(a.HealthyHosts != nil && *a.HealthyHosts == 0, "alb_healthy_host_count=0"),
		warns(positive(a.Target5xx), "alb_target_5xx_count_5m>0"),
		warns(atLeast(latency, t.ALBLatency), "alb_target_response_time>=threshold"),
	)
}

func atLeast(value *exact.Decimal, limit exact.Decimal) bool {
	return value != nil && value.AtLeast(limit)
}

func below(value *exact.Decimal, limit exact.Decimal) bool { return value != nil && value.Less(limit) }

func positive(value *exact.Decimal) bool { return value != nil && value.Sign() > 0 }
