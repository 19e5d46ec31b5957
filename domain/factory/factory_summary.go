package factory

import (
	"time"

	"millrace/domain/exact"
)

// DisplayStatus is how a factory is shown at a glance.
type DisplayStatus string

// The display statuses. DisplayUnknown means that nothing can be said yet.
const (
	DisplaySafe    DisplayStatus = "safe"
	DisplayWarning DisplayStatus = "warning"
	DisplayDanger  DisplayStatus = "danger"
	DisplayUnknown DisplayStatus = "unknown"
)

// FactorySummary is a factory in the list of factories. What is unknown is null;
// the times are those at the source.
type FactorySummary struct {
	FactoryID          string         `json:"factory_id"`
	EnvironmentType    *string        `json:"environment_type"`
	RiskLevel          *Level         `json:"risk_level"`
	RiskScore          *exact.Decimal `json:"risk_score"`
	TopCauses          []Cause        `json:"top_causes"`
	UpdatedAt          Millis         `json:"updated_at"`
	PipelineStatus     *Health        `json:"pipeline_status"`
	DisplayStatus      DisplayStatus  `json:"display_status"`
	LastFactoryStateAt *time.Time     `json:"last_factory_state_at"`
	LastInfraStateAt   *time.Time     `json:"last_infra_state_at"`
	NodeReady          *int64         `json:"node_ready"`
	NodeTotal          *int64         `json:"node_total"`
	WorkloadReady      *int64         `json:"workload_ready"`
	WorkloadTotal      *int64         `json:"workload_total"`
}

// Summary is the factory's element in the list of factories.
func (l *Latest) Summary() FactorySummary {
	summary := FactorySummary{
		FactoryID: l.FactoryID, UpdatedAt: l.UpdatedAt,
		TopCauses: []Cause{}, DisplayStatus: l.displayStatus(),
	}
	if l.EnvironmentType != "" {
		summary.EnvironmentType = &l.EnvironmentType
	}
	if risk := l.Risk; risk != nil {
		summary.RiskLevel, summary.RiskScore = &risk.Level, &risk.Score
		summary.TopCauses = append(summary.TopCauses, risk.TopCauses...)
	}
	if pipeline := l.PipelineStatus; pipeline != nil {
		summary.PipelineStatus = &pipeline.Status
	}
	if state := l.FactoryState; state != nil {
		summary.LastFactoryStateAt = &state.SourceTimestamp
	}
	if infra := l.InfraState; infra != nil {
		workloads := infra.workloadCount()
		summary.LastInfraStateAt = &infra.SourceTimestamp
		summary.NodeReady, summary.NodeTotal = &infra.NodesReady, &infra.NodesTotal
		summary.WorkloadReady, summary.WorkloadTotal = &infra.PodsReady, &workloads
	}
	return summary
}

// workloadCount is the number of workloads that the agent named, kept or cut.
func (s *InfraState) workloadCount() int64 {
	count := len(s.Workloads)
	if s.Cut != nil {
		count += s.Cut.Workloads
	}
	return int64(count)
}

// displayStatus is the worse of the risk level and the state of the pipeline: a
// factory that looks safe by old data is not shown as safe.
func (l *Latest) displayStatus() DisplayStatus {
	var level, health int
	switch {
	case l.Risk == nil && l.PipelineStatus == nil:
		return DisplayUnknown
	case l.Risk != nil:
		level = levelRank[l.Risk.Level]
	}
	if l.PipelineStatus != nil {
		health = healthRank[l.PipelineStatus.Status]
	}
	return []DisplayStatus{DisplaySafe, DisplayWarning, DisplayDanger}[max(level, health)]
}

var healthRank = map[Health]int{Normal: 0, Warning: 1, Critical: 2}
