package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

const (
	fieldFreshness   = "data_freshness"
	sourceWeighted   = "weighted"
	suffixWeighted   = "_weighted_penalty"
	reasonRiskLevel  = "risk_level"
	reasonPipeline   = "pipeline_status"
	pipelineCritical = "critical"
	pipelineWarning  = "warning"
)

// decide applies the factory rules F1 to F4. F2 comes first, because what it
// covers is taken out of the others: one outage, one alert.
func (s factorySnapshot) decide() Decision {
	var d Decision
	pipelineAlerts := s.pipelineRule(&d)
	if s.Risk == nil {
		return d
	}
	causes, gates := s.remaining(&d, pipelineAlerts)
	s.levelRule(&d, causes, gates, pipelineAlerts)
	for _, c := range causes {
		if c.Severity == string(Danger) {
			s.causeRule(&d, c)
		}
	}
	for _, g := range gates {
		if g.level() == string(Danger) {
			s.gateRule(&d, g)
		}
	}
	return d
}

// base is the alert of this snapshot that a rule completes.
func (s factorySnapshot) base(severity Severity, reason, because string) Alert {
	a := Alert{
		Scope: s.FactoryID, SourceType: SourceFactory, Severity: severity, Reason: reason, Status: s.pipeline(),
		FingerprintStatus: partSnapshot, SourceUpdatedAt: s.updatedAt(), Because: because,
		SourceKey: factory.SnapshotKey(s.FactoryID, s.updatedAt()),
	}
	if s.Risk != nil {
		a.Score = s.Risk.Score
	}
	return a
}

// pipelineRule is F2: the data pipeline is late or silent.
func (s factorySnapshot) pipelineRule(d *Decision) bool {
	severity := Warning
	switch s.pipeline() {
	case pipelineCritical:
		severity = Danger
	case pipelineWarning:
	default:
		return false
	}
	a := s.base(severity, reasonPipeline, "F2: pipeline_status is "+s.pipeline())
	a.FingerprintStatus = ""
	if s.PipelineStatus.Age != nil {
		a.Details.Causes = []Cause{{Field: fieldFreshness, Reason: "latest_infra_state_age_seconds", Value: numberValue(*s.PipelineStatus.Age), Severity: string(severity)}}
	}
	d.raise(a)
	return true
}

// remaining are the causes and gates that F1, F3 and F4 look at: without those
// of the pipeline when F2 applies, and without weighted causes of a field that
// has a gate, which tells the same more exactly.
func (s factorySnapshot) remaining(d *Decision, pipelineAlerts bool) ([]Cause, []Gate) {
	var gates []Gate
	gated := map[string]string{}
	for _, g := range s.Risk.Gates {
		if pipelineAlerts && ofFreshness(g.Field, g.Name, g.Reason) {
			s.suppressDanger(d, g.level(), g.reason(), "F4", whyPipeline)
			continue
		}
		gates = append(gates, g)
		if g.Field != "" {
			gated[g.Field] = g.reason()
		}
	}
	var fresh, causes []Cause
	for _, c := range s.Risk.TopCauses {
		if pipelineAlerts && ofFreshness(c.Field, c.Reason) {
			s.suppressDanger(d, c.Severity, c.reason(), "F3", whyPipeline)
			continue
		}
		fresh = append(fresh, c)
	}
	for _, c := range fresh {
		if gate := gated[c.Field]; gate != "" && c.weighted() {
			s.suppressDanger(d, c.Severity, c.reason(), "F3", whyGate+":"+gate)
			continue
		}
		causes = append(causes, c)
	}
	if len(causes) == 0 {
		causes = fresh
	}
	return causes, gates
}

// suppressDanger records a candidate of F3 or F4; what is no danger was none.
func (s factorySnapshot) suppressDanger(d *Decision, level, reason, rule, why string) {
	if level == string(Danger) {
		d.suppress(s.base(Danger, reason, rule+": "+reason), why)
	}
}

// levelRule is F1: the risk level itself, named by its greatest cause.
func (s factorySnapshot) levelRule(d *Decision, causes []Cause, gates []Gate, pipelineAlerts bool) {
	if s.Risk.Level != string(Warning) && s.Risk.Level != string(Danger) {
		return
	}
	reason := reasonRiskLevel
	if top := greatest(causes); top != nil {
		reason = cmp.Or(top.reason(), reasonRiskLevel)
	}
	a := s.base(Severity(s.Risk.Level), reason, "F1: risk.level is "+s.Risk.Level)
	if len(causes) == 0 && pipelineAlerts {
		d.suppress(a, whyPipeline)
		return
	}
	a.Details.Causes, a.Details.Gates = causes, gates
	d.raise(a)
}

func (s factorySnapshot) causeRule(d *Decision, c Cause) {
	a := s.base(Danger, c.reason(), fmt.Sprintf("F3: cause %s is danger", c.reason()))
	a.Details.Causes = []Cause{c}
	d.raise(a)
}

func (s factorySnapshot) gateRule(d *Decision, g Gate) {
	a := s.base(Danger, g.reason(), fmt.Sprintf("F4: gate %s is danger", g.reason()))
	a.Details.Gates = []Gate{g}
	d.raise(a)
}

// greatest is the cause with the greatest contribution, the first of equal ones.
func greatest(causes []Cause) *Cause {
	if len(causes) == 0 {
		return nil
	}
	top := slices.MaxFunc(causes, func(a, b Cause) int { return a.contribution().Cmp(b.contribution()) })
	return &top
}

func ofFreshness(field string, names ...string) bool {
	if field == fieldFreshness {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, fieldFreshness) || strings.HasPrefix(name, reasonPipeline)
	})
}

func (c Cause) reason() string { return cmp.Or(c.Reason, c.Field) }

func (c Cause) weighted() bool {
	return c.Source == sourceWeighted || (c.Source == "" && strings.HasSuffix(c.Reason, suffixWeighted))
}

func (c Cause) contribution() exact.Decimal {
	if c.Contribution == nil {
		return exact.Decimal{}
	}
	return *c.Contribution
}

func (g Gate) reason() string { return cmp.Or(g.Name, g.Reason, g.Field) }

func (g Gate) level() string { return cmp.Or(g.Level, g.Severity) }

func numberValue(n int64) factory.Value {
	number := exact.FromInt(n)
	return factory.Value{Number: &number}
}
