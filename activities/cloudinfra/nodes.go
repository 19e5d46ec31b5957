package cloudinfra

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	workflows "millrace/workflows/cloudinfra"
)

// maxItems bounds the nodes and applications that are listed by name; all count.
const maxItems = 100

const nodeMetricsSource = "metrics.k8s.io:ListNodes"

func (c Collector) probeNodes(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.Nodes], error) {
	source := workflows.SourceOf(cloudinfra.ProbeNodes)
	client, err := c.Kubernetes.Connect(ctx)
	if err != nil {
		return workflows.Found[cloudinfra.Nodes]{}, c.fail(source, err)
	}
	var items []cloudinfra.Node
	allocatable := map[string]usage{}
	err = each(ctx, client.Resource(nodeResource), func(object map[string]any) {
		name := text(object, "metadata", "name")
		items = append(items, cloudinfra.Node{Name: name, Ready: ready(object)})
		allocatable[name] = usageOf(object, "status", "allocatable")
	})
	if err != nil {
		c.Kubernetes.Forget()
		return workflows.Found[cloudinfra.Nodes]{}, c.fail(source, err)
	}
	used := map[string]usage{}
	var errors []cloudinfra.Error
	err = each(ctx, client.Resource(nodeMetricsResource), func(object map[string]any) {
		used[text(object, "metadata", "name")] = usageOf(object, "usage")
	})
	if err != nil && !absent(err) {
		errors = append(errors, c.errorOf(nodeMetricsSource, err))
	}
	return found(nodesOf(items, used, allocatable), errors...), nil
}

// ready tells whether a node's Ready condition is true.
func ready(node map[string]any) bool {
	for _, condition := range list(node, "status", "conditions") {
		if text(condition, "type") == "Ready" {
			return text(condition, "status") == "True"
		}
	}
	return false
}

func nodesOf(items []cloudinfra.Node, used, allocatable map[string]usage) cloudinfra.Nodes {
	var readyNodes int64
	for i, node := range items {
		if node.Ready {
			readyNodes++
		}
		items[i].CPUPercent = percent(used[node.Name].millicores, allocatable[node.Name].millicores)
		items[i].MemoryPercent = percent(used[node.Name].bytes, allocatable[node.Name].bytes)
	}
	// Nodes that are not ready come first, so that a cut never hides them.
	slices.SortFunc(items, func(a, b cloudinfra.Node) int {
		if a.Ready != b.Ready {
			if a.Ready {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return cloudinfra.Nodes{Ready: &readyNodes, Total: aws.Int64(int64(len(items))), Items: append([]cloudinfra.Node{}, items[:min(len(items), maxItems)]...)}
}

// usage is an amount of CPU and memory; what can't be read is nil.
type usage struct{ millicores, bytes *exact.Decimal }

func usageOf(object map[string]any, path ...string) usage {
	var u usage
	if cpu, err := cloudinfra.Millicores(text(object, append(slices.Clip(path), "cpu")...)); err == nil {
		u.millicores = &cpu
	}
	if memory, err := cloudinfra.Bytes(text(object, append(slices.Clip(path), "memory")...)); err == nil {
		u.bytes = &memory
	}
	return u
}

func percent(share, whole *exact.Decimal) *exact.Decimal {
	if share == nil || whole == nil {
		return nil
	}
	return cloudinfra.Percent(*share, *whole)
}
