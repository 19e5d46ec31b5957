package cloudinfra

import (
	"time"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// FactoryState is a factory as the fast collector sees it. A factory that was
// never seen has the pipeline status unknown and nothing else.
type FactoryState struct {
	FactoryID        string          `json:"factory_id"`
	PipelineStatus   Status          `json:"pipeline_status"`
	InfraAgeSeconds  *int64          `json:"latest_infra_state_age_seconds"`
	LastInfraStateAt *time.Time      `json:"last_infra_state_at"`
	RiskScore        *exact.Decimal  `json:"risk_score"`
	RiskLevel        factory.Level   `json:"risk_level,omitempty"`
	TopCauses        []factory.Cause `json:"top_causes"`
}

// maxCauses bounds the causes shown of a factory.
const maxCauses = 3

// Freshness judges a factory at now, latest being nil for one never seen. The
// stored pipeline status is not believed: whoever should have renewed it may be
// down too.
func Freshness(factoryID string, latest *factory.Latest, now time.Time) FactoryState {
	if latest == nil {
		return FactoryState{FactoryID: factoryID, PipelineStatus: Unknown, TopCauses: []factory.Cause{}}
	}
	pipeline := factory.EvaluatePipeline(latest.LastInfraStateAt, latest.LastFactoryStateAt, now)
	state := FactoryState{
		FactoryID: factoryID, PipelineStatus: Status(pipeline.Status),
		InfraAgeSeconds: pipeline.LatestInfraStateAgeSeconds, LastInfraStateAt: latest.LastInfraStateAt, TopCauses: []factory.Cause{},
	}
	if risk := latest.Risk; risk != nil {
		state.RiskScore, state.RiskLevel = &risk.Score, risk.Level
		state.TopCauses = append(state.TopCauses, risk.TopCauses[:min(len(risk.TopCauses), maxCauses)]...)
	}
	return state
}
