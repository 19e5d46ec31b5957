package cloudinfra

import "slices"

// Status is the state of a part, a section or the whole infrastructure.
type Status string

// The states. Unknown could not be measured: grey on a screen, never red.
// NotConfigured is not watched at all and counts for nothing.
const (
	Normal        Status = "normal"
	Warning       Status = "warning"
	Critical      Status = "critical"
	Unknown       Status = "unknown"
	NotConfigured Status = "not_configured"
)

var badness = map[Status]int{Normal: 0, Unknown: 1, Warning: 2, Critical: 3}

// Worst is the worst of several states: critical, warning, unknown, normal. What
// is not configured is left out, and the worst of nothing is unknown. A state
// that is none of these counts as unknown.
func Worst(states ...Status) Status {
	worst, rank := Unknown, -1
	for _, s := range states {
		if s == NotConfigured {
			continue
		}
		b, known := badness[s]
		if !known {
			s, b = Unknown, badness[Unknown]
		}
		if b > rank {
			worst, rank = s, b
		}
	}
	return worst
}

// Section is what every section has. Reasons tell why it is not normal and are
// empty when it is normal or unknown; Errors are what could not be measured.
type Section struct {
	Status  Status   `json:"status" doc:"normal, warning, critical, unknown or not_configured."`
	Reasons []string `json:"reasons" doc:"Why the section is not normal."`
	Errors  []Error  `json:"errors" doc:"What could not be measured."`
}

// verdict gathers the states of a section's parts and why they are not normal.
type verdict struct {
	states  []Status
	reasons []string
}

// part judges one part: the worst of what was found in it, normal for nothing.
func (v *verdict) part(found ...finding) Status {
	status := Normal
	for _, f := range found {
		if !f.holds {
			continue
		}
		status = Worst(status, f.status)
		v.reasons = appendOnce(v.reasons, f.reason)
	}
	v.states = append(v.states, status)
	return status
}

// finding is a check of a part: where it holds, the part has this status.
type finding struct {
	holds  bool
	status Status
	reason string
}

func warns(holds bool, reason string) finding { return finding{holds, Warning, reason} }

func isCritical(holds bool, reason string) finding { return finding{holds, Critical, reason} }

// section ends a section. Errors make it unknown at most: what was measured to
// be worse stays visible, whatever else failed.
func (v verdict) section(errors []Error) Section {
	states := v.states
	if len(errors) > 0 || len(states) == 0 {
		states = append(slices.Clip(states), Unknown)
	}
	s := Section{Status: Worst(states...), Reasons: v.reasons, Errors: errors}
	if s.Status == Unknown || s.Status == Normal || s.Reasons == nil {
		s.Reasons = []string{}
	}
	if s.Errors == nil {
		s.Errors = []Error{}
	}
	return s
}

func notConfigured() Section {
	return Section{Status: NotConfigured, Reasons: []string{}, Errors: []Error{}}
}

func appendOnce(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
