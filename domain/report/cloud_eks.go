package report

import (
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// CloudEKS are the figures of the Kubernetes cluster. Each slow snapshot stands
// for five minutes.
type CloudEKS struct {
	CloudSection
	Cluster     *CloudCluster             `json:"cluster,omitempty"`
	Nodegroups  map[string]CloudNodegroup `json:"nodegroups,omitempty"`
	Autoscaling *CloudScaling             `json:"autoscaling,omitempty"`
	Nodes       *CloudNodes               `json:"nodes,omitempty"`
	Pods        *CloudPods                `json:"pods,omitempty"`
	ArgoCD      *CloudArgoCD              `json:"argocd,omitempty"`
}

// CloudCluster is the cluster as it was last seen.
type CloudCluster struct {
	AsOf    *time.Time `json:"as_of"`
	Name    string     `json:"name"`
	Status  string     `json:"status"`
	Version string     `json:"version"`
	// Inactive are the minutes in which it was not ACTIVE.
	Inactive exact.Decimal `json:"not_active_minutes"`
}

// CloudNodegroup are the figures of a node group; Status is the last known.
type CloudNodegroup struct {
	AsOf     *time.Time    `json:"as_of"`
	Status   string        `json:"status"`
	Inactive exact.Decimal `json:"not_active_minutes"`
	Issues   exact.Decimal `json:"health_issue_minutes"`
}

// CloudScaling are the figures of the Auto Scaling groups.
type CloudScaling struct {
	AsOf       *time.Time    `json:"as_of"`
	Desired    *int64        `json:"desired_capacity"`
	Healthy    *int64        `json:"healthy_instances"`
	MinHealthy *int64        `json:"healthy_instances_min"`
	Unhealthy  exact.Decimal `json:"unhealthy_instance_minutes"`
}

// CloudNodes are the figures of the nodes. Ready and Total are the last known.
type CloudNodes struct {
	AsOf     *time.Time    `json:"as_of"`
	Samples  CloudCounts   `json:"samples"`
	Ready    *int64        `json:"ready"`
	Total    *int64        `json:"total"`
	MinReady *int64        `json:"ready_min"`
	NotReady exact.Decimal `json:"not_ready_node_minutes"`
	// NotReadyBy has the minutes of each node that was not ready.
	NotReadyBy map[string]cloudMinutes `json:"not_ready_nodes,omitempty"`
	CPU        *CloudStat              `json:"cpu_utilization_percent"`
	Memory     *CloudStat              `json:"memory_utilization_percent"`
}

const resourceActive = "ACTIVE"

func (s cloudSight) eks() CloudEKS {
	e := CloudEKS{CloudSection: s.section()}
	if c := s.fields.child("cluster"); c != nil {
		status := c.name("status")
		e.Cluster = &CloudCluster{
			AsOf: s.asOf(), Name: c.name("name"), Status: status, Version: c.name("version"), Inactive: cloudWhen(inactive(status), s.span),
		}
	}
	groups := s.fields.children("nodegroups")
	if one := s.fields.child("nodegroup"); one != nil && len(groups) == 0 {
		groups = []cloudFields{one} // of older snapshots
	}
	e.Nodegroups = cloudNamed(groups, "name", func(f cloudFields) CloudNodegroup {
		status := f.name("status")
		issues, _ := f["health_issues"].([]any)
		return CloudNodegroup{
			AsOf: s.asOf(), Status: status, Inactive: cloudWhen(inactive(status), s.span), Issues: cloudWhen(len(issues) > 0, s.span),
		}
	})
	if a := s.fields.child("autoscaling"); a != nil {
		desired, healthy := a.integer("desired_capacity"), a.integer("healthy_instances")
		short := desired != nil && healthy != nil && *healthy < *desired
		e.Autoscaling = &CloudScaling{AsOf: s.asOf(), Desired: desired, Healthy: healthy, MinHealthy: healthy, Unhealthy: cloudWhen(short, s.span)}
	}
	if part, ok := s.child("nodes"); ok {
		e.Nodes = part.nodes(s)
	}
	if part, ok := s.child("pods"); ok {
		e.Pods = part.pods(s)
	}
	if part, ok := s.child("argocd"); ok {
		e.ArgoCD = part.argocd(s)
	}
	return e
}

func inactive(status string) bool { return status != "" && status != resourceActive }

// partStatus is the status of a part of the cluster; one without is as good as
// its section, as the alert rules have it.
func (s cloudSight) partStatus(section cloudSight) cloudinfra.Status {
	_, has := s.fields["status"]
	if !has && section.fields.status("status") == cloudinfra.Normal {
		return cloudinfra.Normal
	}
	return s.fields.status("status")
}

func (s cloudSight) nodes(section cloudSight) *CloudNodes {
	ready, total := s.fields.integer("ready"), s.fields.integer("total")
	n := &CloudNodes{
		AsOf: s.asOf(), Samples: cloudOneStatus(s.partStatus(section)), Ready: ready, Total: total, MinReady: ready,
		NotReady: cloudWhen(ready != nil && total != nil && *ready < *total, s.span),
	}
	for _, item := range s.fields.children("items") {
		if value, known := item["ready"].(bool); known && !value {
			n.NotReadyBy = cloudMergeMaps(n.NotReadyBy, map[string]cloudMinutes{item.name("name"): {s.span}}, cloudMinutes.merge)
		}
		n.CPU = n.CPU.merge(cloudMeasured(item.number("cpu_utilization_percent")))
		n.Memory = n.Memory.merge(cloudMeasured(item.number("memory_utilization_percent")))
	}
	return n
}

func (e CloudEKS) merge(o CloudEKS) CloudEKS {
	return CloudEKS{
		CloudSection: e.CloudSection.merge(o.CloudSection), Cluster: e.Cluster.merge(o.Cluster),
		Nodegroups: cloudMergeMaps(e.Nodegroups, o.Nodegroups, CloudNodegroup.merge), Autoscaling: e.Autoscaling.merge(o.Autoscaling),
		Nodes: e.Nodes.merge(o.Nodes), Pods: e.Pods.merge(o.Pods), ArgoCD: e.ArgoCD.merge(o.ArgoCD),
	}
}

func (c *CloudCluster) merge(o *CloudCluster) *CloudCluster {
	if c == nil || o == nil {
		return cloudEither(c, o)
	}
	last := *c
	if cloudLater(c.AsOf, o.AsOf) {
		last = *o
	}
	last.Inactive = c.Inactive.Add(o.Inactive)
	return &last
}

func (g CloudNodegroup) merge(o CloudNodegroup) CloudNodegroup {
	last := g
	if cloudLater(g.AsOf, o.AsOf) {
		last = o
	}
	last.Inactive, last.Issues = g.Inactive.Add(o.Inactive), g.Issues.Add(o.Issues)
	return last
}

func (a *CloudScaling) merge(o *CloudScaling) *CloudScaling {
	if a == nil || o == nil {
		return cloudEither(a, o)
	}
	last := *a
	if cloudLater(a.AsOf, o.AsOf) {
		last = *o
	}
	last.MinHealthy, last.Unhealthy = cloudMin(a.MinHealthy, o.MinHealthy), a.Unhealthy.Add(o.Unhealthy)
	return &last
}

func (n *CloudNodes) merge(o *CloudNodes) *CloudNodes {
	if n == nil || o == nil {
		return cloudEither(n, o)
	}
	last := *n
	if cloudLater(n.AsOf, o.AsOf) {
		last = *o
	}
	last.Samples, last.MinReady = n.Samples.merge(o.Samples), cloudMin(n.MinReady, o.MinReady)
	last.NotReady, last.NotReadyBy = n.NotReady.Add(o.NotReady), cloudMergeMaps(n.NotReadyBy, o.NotReadyBy, cloudMinutes.merge)
	last.CPU, last.Memory = n.CPU.merge(o.CPU), n.Memory.merge(o.Memory)
	return &last
}
