package alert

import (
	"encoding/json"
	"fmt"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// factorySnapshot is what the factory rules read of a state_snapshot. It takes
// older shapes too.
type factorySnapshot struct {
	FactoryID      string           `json:"factory_id"`
	UpdatedAt      *factory.Millis  `json:"updated_at"`
	PipelineStatus *factoryPipeline `json:"pipeline_status"`
	Risk           *factoryRisk     `json:"risk"`
}

type factoryPipeline struct {
	Status string `json:"status"`
	Age    *int64 `json:"latest_infra_state_age_seconds"`
}

type factoryRisk struct {
	Score        *exact.Decimal  `json:"score"`
	Level        string          `json:"level"`
	TopCauses    []Cause         `json:"top_causes"`
	Gates        []Gate          `json:"gates"`
	CalculatedAt *factory.Millis `json:"calculated_at"`
}

// ParseFactory decides on the JSON of a state_snapshot, or of any part of one
// that has factory_id and updated_at or risk.calculated_at.
func ParseFactory(body []byte) (Decision, error) {
	var s factorySnapshot
	if err := json.Unmarshal(body, &s); err != nil {
		return Decision{}, fmt.Errorf("read state snapshot: %w", typed(err))
	}
	if err := factory.CheckFactoryID(s.FactoryID); err != nil {
		return Decision{}, fmt.Errorf("read state snapshot: %w", err)
	}
	if s.updatedAt().IsZero() {
		return Decision{}, fmt.Errorf("read state snapshot: %w", invalid("updated_at", "is required, or risk.calculated_at"))
	}
	return s.decide(), nil
}

// Factory decides on the current state of a factory.
func Factory(latest factory.Latest) Decision {
	if quiet(latest) {
		return Decision{}
	}
	s := factorySnapshot{FactoryID: latest.FactoryID, UpdatedAt: &latest.UpdatedAt}
	if p := latest.PipelineStatus; p != nil {
		s.PipelineStatus = &factoryPipeline{Status: string(p.Status), Age: p.LatestInfraStateAgeSeconds}
	}
	if r := latest.Risk; r != nil {
		s.Risk = &factoryRisk{Score: &r.Score, Level: string(r.Level), CalculatedAt: r.CalculatedAt}
		for _, c := range r.TopCauses {
			s.Risk.TopCauses = append(s.Risk.TopCauses, Cause{
				Field: c.Field, Reason: c.Reason, Value: c.Value, Contribution: &c.Contribution, Severity: string(c.Severity), Source: c.Source,
			})
		}
		for _, g := range r.Gates {
			s.Risk.Gates = append(s.Risk.Gates, Gate{Name: g.Name, Level: string(g.Level), Field: g.Field, Value: g.Value})
		}
	}
	return s.decide()
}

// quiet tells that no factory rule can hold, without building anything: nearly
// all snapshots are normal, and they come every few seconds.
func quiet(latest factory.Latest) bool {
	if p := latest.PipelineStatus; p != nil && p.Status != factory.Normal {
		return false
	}
	r := latest.Risk
	if r == nil {
		return true
	}
	if r.Level != factory.LevelSafe {
		return false
	}
	for _, c := range r.TopCauses {
		if c.Severity == factory.LevelDanger {
			return false
		}
	}
	for _, g := range r.Gates {
		if g.Level == factory.LevelDanger {
			return false
		}
	}
	return true
}

func (s factorySnapshot) updatedAt() factory.Millis {
	switch {
	case s.UpdatedAt != nil:
		return *s.UpdatedAt
	case s.Risk != nil && s.Risk.CalculatedAt != nil:
		return *s.Risk.CalculatedAt
	}
	return factory.Millis{}
}

func (s factorySnapshot) pipeline() string {
	if s.PipelineStatus == nil {
		return ""
	}
	return s.PipelineStatus.Status
}
