package cloudinfra

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	workflows "millrace/workflows/cloudinfra"
)

const podMetricsSource = "metrics.k8s.io:ListPods"

func (c Collector) probePods(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.Pods], error) {
	source := workflows.SourceOf(cloudinfra.ProbePods)
	client, err := c.Kubernetes.Connect(ctx)
	if err != nil {
		return workflows.Found[cloudinfra.Pods]{}, c.fail(source, err)
	}
	var counts podCounts
	if err := each(ctx, client.Resource(podResource), counts.add); err != nil {
		c.Kubernetes.Forget()
		return workflows.Found[cloudinfra.Pods]{}, c.fail(source, err)
	}
	pods := counts.pods()
	var used []cloudinfra.PodUsage
	var errors []cloudinfra.Error
	err = each(ctx, client.Resource(podMetricsResource), func(object map[string]any) { used = append(used, podUsage(object)) })
	if err != nil && !absent(err) {
		errors = append(errors, c.errorOf(podMetricsSource, err))
	}
	pods.TopByCPU = c.top(used, func(a, b cloudinfra.PodUsage) int { return b.CPUMillicores.Cmp(a.CPUMillicores) })
	pods.TopByMemory = c.top(used, func(a, b cloudinfra.PodUsage) int { return b.MemoryMiB.Cmp(a.MemoryMiB) })
	return found(pods, errors...), nil
}

// podCounts counts pods by phase and the restarts of their containers.
type podCounts struct {
	running, pending, failed, unknown, succeeded, restarts int64
}

func (n *podCounts) add(pod map[string]any) {
	switch text(pod, "status", "phase") {
	case "Running":
		n.running++
	case "Pending":
		n.pending++
	case "Failed":
		n.failed++
	case "Succeeded":
		n.succeeded++
	default:
		n.unknown++
	}
	for _, container := range list(pod, "status", "containerStatuses") {
		restarts, _, _ := unstructured.NestedInt64(container, "restartCount") // none where it is missing
		n.restarts += restarts
	}
}

func (n *podCounts) pods() cloudinfra.Pods {
	return cloudinfra.Pods{
		Running: &n.running, Pending: &n.pending, Failed: &n.failed, Unknown: &n.unknown, Succeeded: &n.succeeded, RestartCount: &n.restarts,
	}
}

func podUsage(object map[string]any) cloudinfra.PodUsage {
	var millicores, bytes exact.Decimal
	for _, container := range list(object, "containers") {
		used := usageOf(container, "usage")
		if used.millicores != nil {
			millicores = millicores.Add(*used.millicores)
		}
		if used.bytes != nil {
			bytes = bytes.Add(*used.bytes)
		}
	}
	return cloudinfra.PodUsage{
		Namespace: text(object, "metadata", "namespace"), Pod: text(object, "metadata", "name"),
		CPUMillicores: millicores.Round(usagePlaces), MemoryMiB: cloudinfra.Mebibytes(bytes),
	}
}

// usagePlaces are the decimal places of millicores that are kept.
const usagePlaces = 2

// top are the first pods in an order; ties are broken by name.
func (c Collector) top(used []cloudinfra.PodUsage, order func(a, b cloudinfra.PodUsage) int) []cloudinfra.PodUsage {
	sorted := slices.SortedFunc(slices.Values(used), func(a, b cloudinfra.PodUsage) int {
		return cmp.Or(order(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return append([]cloudinfra.PodUsage{}, sorted[:min(len(sorted), c.Settings.TopPods)]...)
}
