package cloudinfra

import "slices"

// Probe names one independent look at the infrastructure.
type Probe string

// The probes of the fast collector.
const (
	ProbeECS              Probe = "ecs"
	ProbeALB              Probe = "alb"
	ProbeCloudFront       Probe = "cloudfront"
	ProbeBackendMetrics   Probe = "backend_metrics"
	ProbeRedis            Probe = "redis"
	ProbeRDS              Probe = "rds"
	ProbeDatastoreMetrics Probe = "datastore_metrics"
	ProbePipelineMetrics  Probe = "pipeline_metrics"
	ProbeDLQ              Probe = "dlq"
	ProbeSchedulers       Probe = "schedulers"
	ProbeTaskQueues       Probe = "temporal_task_queues"
	ProbeSchedules        Probe = "temporal_schedules"
	ProbeQueues           Probe = "queues"
	ProbeFreshness        Probe = "factory_freshness"
)

// The probes of the slow collector.
const (
	ProbeCluster     Probe = "eks_cluster"
	ProbeNodegroups  Probe = "eks_nodegroups"
	ProbeAutoscaling Probe = "autoscaling"
	ProbeNodes       Probe = "eks_nodes"
	ProbePods        Probe = "eks_pods"
	ProbeArgoCD      Probe = "argocd"
	ProbeStorage     Probe = "storage_freshness"
)

// Probes of each section.
var (
	backendProbes   = []Probe{ProbeECS, ProbeALB, ProbeCloudFront, ProbeBackendMetrics}
	datastoreProbes = []Probe{ProbeRedis, ProbeRDS, ProbeDatastoreMetrics}
	pipelineProbes  = []Probe{ProbePipelineMetrics, ProbeDLQ, ProbeSchedulers, ProbeTaskQueues, ProbeSchedules, ProbeQueues}
	freshnessProbes = []Probe{ProbeFreshness}
	eksProbes       = []Probe{ProbeCluster, ProbeNodegroups, ProbeAutoscaling, ProbeNodes, ProbePods, ProbeArgoCD}
	storageProbes   = []Probe{ProbeStorage}
)

// ProbeState tells what became of a probe in a run. It is shown with every half,
// so that a collector that lost its settings does not go unnoticed.
type ProbeState string

// The states of probes.
const (
	ProbeOK            ProbeState = "ok"
	ProbeFailed        ProbeState = "failed"
	ProbeNotConfigured ProbeState = "not_configured"
)

// Failure is what a probe could not measure.
type Failure struct {
	Probe Probe `json:"probe"`
	Error Error `json:"error"`
}

// Outcome is which probes a run made and what they could not measure.
type Outcome struct {
	Configured []Probe   `json:"configured"`
	Failures   []Failure `json:"failures,omitempty"`
}

// Fail notes what a probe could not measure.
func (o *Outcome) Fail(p Probe, errors ...Error) {
	for _, e := range errors {
		o.Failures = append(o.Failures, Failure{Probe: p, Error: e})
	}
}

// Has tells whether a probe is configured.
func (o Outcome) Has(probes ...Probe) bool {
	for _, p := range probes {
		if slices.Contains(o.Configured, p) {
			return true
		}
	}
	return false
}

// maxErrors bounds the errors of a section.
const maxErrors = 20

func (o Outcome) errors(probes ...Probe) []Error {
	errors := []Error{}
	for _, p := range probes {
		for _, f := range o.Failures {
			if f.Probe == p && len(errors) < maxErrors {
				errors = append(errors, f.Error)
			}
		}
	}
	return errors
}

func (o Outcome) failed(p Probe) bool { return len(o.errors(p)) > 0 }

func (o Outcome) states(sections ...[]Probe) map[Probe]ProbeState {
	states := map[Probe]ProbeState{}
	for _, probes := range sections {
		for _, p := range probes {
			switch {
			case !o.Has(p):
				states[p] = ProbeNotConfigured
			case o.failed(p):
				states[p] = ProbeFailed
			default:
				states[p] = ProbeOK
			}
		}
	}
	return states
}
