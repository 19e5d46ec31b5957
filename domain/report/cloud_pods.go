package report

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// CloudPod is the most that a pod used at once.
type CloudPod struct {
	Namespace     string        `json:"namespace"`
	Pod           string        `json:"pod"`
	CPUMillicores exact.Decimal `json:"cpu_millicores_max"`
	MemoryMiB     exact.Decimal `json:"memory_mib_max"`
}

// CloudPods are the figures of the pods. Running is the last known.
type CloudPods struct {
	AsOf       *time.Time    `json:"as_of"`
	Samples    CloudCounts   `json:"samples"`
	Running    *int64        `json:"running"`
	MaxPending *int64        `json:"pending_max"`
	MaxFailed  *int64        `json:"failed_max"`
	MaxUnknown *int64        `json:"unknown_max"`
	Unhealthy  exact.Decimal `json:"unhealthy_pod_minutes"`
	// Restarts are the span between the least and the greatest total of restarts.
	Restarts    int64  `json:"restarts"`
	RestartsMin *int64 `json:"restart_count_total_min"`
	RestartsMax *int64 `json:"restart_count_total_max"`
	// TopByCPU and TopByMemory begin with the pod that used the most.
	TopByCPU    []CloudPod `json:"top_by_cpu"`
	TopByMemory []CloudPod `json:"top_by_memory"`
}

func (s cloudSight) pods(section cloudSight) *CloudPods {
	pending, failed, lost := s.fields.integer("pending"), s.fields.integer("failed"), s.fields.integer("unknown")
	restarts := s.fields.integer("restart_count_total")
	return &CloudPods{
		AsOf: s.asOf(), Samples: cloudOneStatus(s.partStatus(section)), Running: s.fields.integer("running"),
		MaxPending: pending, MaxFailed: failed, MaxUnknown: lost,
		Unhealthy:   cloudWhen(cloudValue(pending)+cloudValue(failed)+cloudValue(lost) > 0, s.span),
		RestartsMin: restarts, RestartsMax: restarts,
		TopByCPU: topPods(s.fields.children("top_by_cpu"), byCPU), TopByMemory: topPods(s.fields.children("top_by_memory"), byMemory),
	}
}

func topPods(list []cloudFields, order func(a, b CloudPod) int) []CloudPod {
	var pods []CloudPod
	for _, f := range list {
		pod := CloudPod{Namespace: f.name("namespace"), Pod: f.name("pod")}
		if cpu := f.number("cpu_millicores"); cpu != nil {
			pod.CPUMillicores = *cpu
		}
		if memory := f.number("memory_mib"); memory != nil {
			pod.MemoryMiB = *memory
		}
		pods = append(pods, pod)
	}
	return mergePods(nil, pods, order)
}

// maxPods bounds each list of pods. The day's greatest are among those of their
// hours, so that nothing is lost by it.
const maxPods = 10

// mergePods is the union of two lists with the most that each pod used, in order.
func mergePods(a, b []CloudPod, order func(a, b CloudPod) int) []CloudPod {
	merged := map[[2]string]CloudPod{}
	for _, pod := range slices.Concat(a, b) {
		key := [2]string{pod.Namespace, pod.Pod}
		if have, ok := merged[key]; ok {
			pod.CPUMillicores, pod.MemoryMiB = exact.Max(have.CPUMillicores, pod.CPUMillicores), exact.Max(have.MemoryMiB, pod.MemoryMiB)
		}
		merged[key] = pod
	}
	pods := make([]CloudPod, 0, len(merged))
	for _, pod := range merged {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, order)
	return pods[:min(len(pods), maxPods)]
}

func byCPU(a, b CloudPod) int {
	return cmp.Or(b.CPUMillicores.Cmp(a.CPUMillicores), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
}

func byMemory(a, b CloudPod) int {
	return cmp.Or(b.MemoryMiB.Cmp(a.MemoryMiB), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
}

func (p *CloudPods) merge(o *CloudPods) *CloudPods {
	if p == nil || o == nil {
		return cloudEither(p, o)
	}
	last := *p
	if cloudLater(p.AsOf, o.AsOf) {
		last = *o
	}
	last.Samples = p.Samples.merge(o.Samples)
	last.MaxPending, last.MaxFailed, last.MaxUnknown = cloudMax(p.MaxPending, o.MaxPending), cloudMax(p.MaxFailed, o.MaxFailed), cloudMax(p.MaxUnknown, o.MaxUnknown)
	last.Unhealthy = p.Unhealthy.Add(o.Unhealthy)
	last.RestartsMin, last.RestartsMax = cloudMin(p.RestartsMin, o.RestartsMin), cloudMax(p.RestartsMax, o.RestartsMax)
	last.Restarts = cloudValue(last.RestartsMax) - cloudValue(last.RestartsMin)
	last.TopByCPU, last.TopByMemory = mergePods(p.TopByCPU, o.TopByCPU, byCPU), mergePods(p.TopByMemory, o.TopByMemory, byMemory)
	return &last
}
