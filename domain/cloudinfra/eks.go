package cloudinfra

import (
	"time"

	"millrace/domain/exact"
)

// EKSManagement is the section of the Kubernetes cluster.
type EKSManagement struct {
	Section
	Cluster     *Cluster     `json:"cluster,omitempty"`
	Nodegroups  []Nodegroup  `json:"nodegroups,omitempty"`
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	Nodes       *Nodes       `json:"nodes,omitempty"`
	Pods        *Pods        `json:"pods,omitempty"`
	ArgoCD      *ArgoCD      `json:"argocd,omitempty"`
}

// Cluster is an EKS cluster.
type Cluster struct {
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	Version   string     `json:"version,omitempty"`
	CreatedAt *time.Time `json:"created_at"`
}

// Nodegroup is a managed node group.
type Nodegroup struct {
	Name              string   `json:"name"`
	Status            string   `json:"status"`
	DesiredSize       *int64   `json:"desired_size"`
	MinSize           *int64   `json:"min_size"`
	MaxSize           *int64   `json:"max_size"`
	InstanceTypes     []string `json:"instance_types"`
	CapacityType      string   `json:"capacity_type,omitempty"`
	HealthIssues      []string `json:"health_issues"`
	AutoscalingGroups []string `json:"autoscaling_groups"`
}

// Autoscaling are the Auto Scaling groups of all node groups together.
type Autoscaling struct {
	Groups           []string `json:"groups"`
	DesiredCapacity  int64    `json:"desired_capacity"`
	HealthyInstances int64    `json:"healthy_instances"`
	TotalInstances   int64    `json:"total_instances"`
}

// Nodes are the nodes of the cluster. Items are bounded, the counts are not.
type Nodes struct {
	Status Status `json:"status"`
	Ready  *int64 `json:"ready"`
	Total  *int64 `json:"total"`
	Items  []Node `json:"items"`
}

// Node is a Kubernetes node. Without a metrics server its utilisation is null.
type Node struct {
	Name          string         `json:"name"`
	Ready         bool           `json:"ready"`
	CPUPercent    *exact.Decimal `json:"cpu_utilization_percent"`
	MemoryPercent *exact.Decimal `json:"memory_utilization_percent"`
}

// Pods are all pods of the cluster by phase.
type Pods struct {
	Status       Status     `json:"status"`
	Running      *int64     `json:"running"`
	Pending      *int64     `json:"pending"`
	Failed       *int64     `json:"failed"`
	Unknown      *int64     `json:"unknown"`
	Succeeded    *int64     `json:"succeeded"`
	RestartCount *int64     `json:"restart_count_total"`
	TopByCPU     []PodUsage `json:"top_by_cpu"`
	TopByMemory  []PodUsage `json:"top_by_memory"`
}

// PodUsage is what a pod's containers use together.
type PodUsage struct {
	Namespace     string        `json:"namespace"`
	Pod           string        `json:"pod"`
	CPUMillicores exact.Decimal `json:"cpu_millicores"`
	MemoryMiB     exact.Decimal `json:"memory_mib"`
}

// ArgoCD are the applications of Argo CD. Without its resource definition the
// status is unknown and the counts are null.
type ArgoCD struct {
	Status    Status      `json:"status"`
	Total     *int64      `json:"applications_total"`
	Synced    *int64      `json:"synced"`
	OutOfSync *int64      `json:"out_of_sync"`
	Healthy   *int64      `json:"healthy"`
	Degraded  *int64      `json:"degraded"`
	Apps      []ArgoCDApp `json:"apps"`
}

// ArgoCDApp is one application.
type ArgoCDApp struct {
	Name         string `json:"name"`
	SyncStatus   string `json:"sync_status"`
	HealthStatus string `json:"health_status"`
}

// States of EKS resources.
const (
	active   = "ACTIVE"
	creating = "CREATING"
	updating = "UPDATING"
)

func evaluateEKS(r SlowReport) EKSManagement {
	if !r.Has(eksProbes...) {
		return EKSManagement{Section: notConfigured()}
	}
	s := EKSManagement{Cluster: r.Cluster, Nodegroups: r.Nodegroups, Autoscaling: r.Autoscaling}
	var v verdict
	if c := s.Cluster; c != nil {
		v.part(ofResource(c.Status, "eks_cluster_status="+c.Status)...)
	}
	for _, g := range s.Nodegroups {
		v.part(append(ofResource(g.Status, "eks_nodegroup_status="+g.Status+":"+g.Name),
			warns(len(g.HealthIssues) > 0, "eks_nodegroup_health_issues>0:"+g.Name))...)
	}
	if a := s.Autoscaling; a != nil {
		v.part(
			isCritical(a.DesiredCapacity > 0 && a.HealthyInstances == 0, "autoscaling_healthy_instances=0"),
			warns(a.HealthyInstances > 0 && a.HealthyInstances < a.DesiredCapacity, "autoscaling_healthy_instances<desired_capacity"),
		)
	}
	s.Nodes = v.nodes(r)
	s.Pods = v.pods(r)
	s.ArgoCD = v.argocd(r)
	s.Section = v.section(r.errors(eksProbes...))
	return s
}

func ofResource(status, reason string) []finding {
	changing := status == creating || status == updating
	return []finding{warns(changing, reason), isCritical(status != active && !changing, reason)}
}

// nodes judges the nodes. Of a cluster without any nothing is known: it may be
// meant to have none.
func (v *verdict) nodes(r SlowReport) *Nodes {
	if !r.Has(ProbeNodes) {
		return nil
	}
	if r.Nodes == nil || r.Nodes.Ready == nil || r.Nodes.Total == nil || *r.Nodes.Total == 0 {
		v.states = append(v.states, Unknown)
		return greyNodes(r.Nodes)
	}
	n := *r.Nodes
	n.Status = v.part(
		isCritical(*n.Ready == 0, "nodes_ready=0"),
		warns(*n.Ready > 0 && *n.Ready < *n.Total, "nodes_ready<total"),
	)
	return &n
}

func greyNodes(measured *Nodes) *Nodes {
	n := Nodes{Items: []Node{}}
	if measured != nil {
		n = *measured
	}
	n.Status = Unknown
	return &n
}

// criticalPods is how many failed pods are critical (factory.md, 11.18).
const criticalPods = 2

func (v *verdict) pods(r SlowReport) *Pods {
	switch {
	case !r.Has(ProbePods):
		return nil
	case r.Pods == nil:
		v.states = append(v.states, Unknown)
		return &Pods{Status: Unknown, TopByCPU: []PodUsage{}, TopByMemory: []PodUsage{}}
	}
	p := *r.Pods
	failed := valueOf(p.Failed)
	p.Status = v.part(
		isCritical(failed >= criticalPods, "pods_failed>=2"),
		warns(failed > 0 && failed < criticalPods, "pods_failed=1"),
		warns(valueOf(p.Pending) > 0, "pods_pending>0"),
		warns(valueOf(p.Unknown) > 0, "pods_unknown>0"),
	)
	return &p
}

func (v *verdict) argocd(r SlowReport) *ArgoCD {
	switch {
	case !r.Has(ProbeArgoCD):
		return nil
	case r.ArgoCD == nil || r.ArgoCD.Total == nil:
		v.states = append(v.states, Unknown)
		return &ArgoCD{Status: Unknown, Apps: []ArgoCDApp{}}
	}
	a := *r.ArgoCD
	a.Status = v.part(
		isCritical(valueOf(a.Degraded) > 0, "argocd_degraded>0"),
		warns(valueOf(a.OutOfSync) > 0, "argocd_out_of_sync>0"),
	)
	return &a
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
