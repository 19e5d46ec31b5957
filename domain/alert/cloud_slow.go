package alert

import (
	"cmp"
	"slices"
)

// slow applies the rules of the slow half.
func (r cloudRules) slow(half slowHalf) Decision {
	var d Decision
	errors := allErrors(half.Errors, half.sectionErrors()...)
	r.collectorErrors(&d, errors)
	r.generic(&d, "storage_freshness", half.Storage, "", nil)
	r.eks(&d, half.EKS, errors)
	return d
}

func (half slowHalf) sectionErrors() [][]CollectorError {
	var errors [][]CollectorError
	if s := half.Storage; s != nil {
		errors = append(errors, s.Errors)
	}
	eks := half.EKS
	if eks == nil {
		return errors
	}
	errors = append(errors, eks.Errors)
	for _, part := range eks.parts() {
		if part.section != nil {
			errors = append(errors, part.section.Errors)
		}
	}
	return errors
}

type eksPart struct {
	name    string
	section *section
}

func (s eksManagement) parts() []eksPart {
	return []eksPart{{"nodes", s.Nodes}, {"pods", s.Pods}, {"argocd", s.ArgoCD}}
}

func (r cloudRules) eks(d *Decision, s *eksManagement, errors []CollectorError) {
	const name = "eks_management"
	if s == nil {
		r.generic(d, name, nil, "", errors)
		return
	}
	if s.Status == statusNotConfigured {
		return
	}
	mark := len(d.Alerts)
	r.eksActive(d, s)
	if s.Autoscaling.Healthy.less(s.Autoscaling.Desired) {
		d.raise(r.alert(Danger, "autoscaling_unhealthy_instances", s.Status, "slow: healthy_instances is below desired_capacity", Details{Facts: []Fact{
			{TopicAutoscaling, "desired_capacity", s.Autoscaling.Desired.String()},
			{TopicAutoscaling, "healthy_instances", s.Autoscaling.Healthy.String()},
		}}))
	}
	for _, part := range s.parts() {
		r.eksPart(d, s, part, errors)
	}
	r.generic(d, name, &s.section, d.since(mark), errors)
}

// eksPart judges nodes, pods and applications. A part that was not looked at
// says nothing of its own; one without a status is as good as its section.
func (r cloudRules) eksPart(d *Decision, s *eksManagement, part eksPart, errors []CollectorError) {
	if part.section == nil {
		return
	}
	judged := *part.section
	if judged.Status == "" && s.Status == statusNormal {
		judged.Status = statusNormal
	}
	r.generic(d, part.name, &judged, "", errors)
}

const active = "ACTIVE"

func (r cloudRules) eksActive(d *Decision, s *eksManagement) {
	if c := s.Cluster; c.Status != "" && c.Status != active {
		d.raise(r.alert(Danger, "eks_cluster_not_active", c.Status, "slow: the cluster is "+c.Status, Details{Facts: []Fact{
			{TopicCluster, cmp.Or(c.Name, "cluster"), c.Status},
		}}))
	}
	groups := s.Nodegroups
	if s.Nodegroup != nil {
		groups = append(slices.Clip(groups), *s.Nodegroup)
	}
	var facts []Fact
	for _, g := range groups {
		if g.Status != "" && g.Status != active {
			facts = append(facts, Fact{TopicNodegroup, cmp.Or(g.Name, "nodegroup"), g.Status})
		}
	}
	if len(facts) > 0 {
		d.raise(r.alert(Danger, "eks_nodegroup_not_active", facts[0].Value, "slow: a node group is "+facts[0].Value, Details{Facts: facts}))
	}
}
