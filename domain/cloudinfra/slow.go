package cloudinfra

import "time"

// SlowReport is what the probes of the slow collector measured.
type SlowReport struct {
	Outcome
	Cluster     *Cluster         `json:"cluster,omitempty"`
	Nodegroups  []Nodegroup      `json:"nodegroups,omitempty"`
	Autoscaling *Autoscaling     `json:"autoscaling,omitempty"`
	Nodes       *Nodes           `json:"nodes,omitempty"`
	Pods        *Pods            `json:"pods,omitempty"`
	ArgoCD      *ArgoCD          `json:"argocd,omitempty"`
	Storage     []StorageFactory `json:"storage,omitempty"`
}

// Slow is the half of the read model that is renewed every five minutes.
type Slow struct {
	// Status is the worst of the sections.
	Status           Status               `json:"status"`
	EKSManagement    EKSManagement        `json:"eks_management"`
	StorageFreshness StorageFreshness     `json:"storage_freshness"`
	Probes           map[Probe]ProbeState `json:"probes,omitempty"`
	Errors           []Error              `json:"errors"`
}

// EvaluateSlow judges what was measured at now.
func EvaluateSlow(r SlowReport, t Thresholds, now time.Time) Slow {
	s := Slow{
		EKSManagement: evaluateEKS(r), StorageFreshness: evaluateStorage(r, t, now),
		Probes: r.states(eksProbes, storageProbes), Errors: []Error{},
	}
	s.Status = Worst(s.counted()...)
	for _, section := range s.sections() {
		s.Errors = append(s.Errors, section.Errors...)
	}
	return s
}

func (s *Slow) sections() []*Section {
	return []*Section{&s.EKSManagement.Section, &s.StorageFreshness.Section}
}

func (s *Slow) counted() []Status {
	if s == nil {
		return nil
	}
	return []Status{s.EKSManagement.Status, s.StorageFreshness.Status}
}

func (s *Slow) unknown() *Slow {
	if s == nil {
		return nil
	}
	grey := *s
	grey.Status = Unknown
	for _, section := range grey.sections() {
		section.Status, section.Reasons = Unknown, []string{}
	}
	return &grey
}
