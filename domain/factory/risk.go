package factory

import (
	"cmp"
	"slices"

	"millrace/domain/exact"
)

// RiskVersion names the rules of this file and of risk_factors.go and
// risk_gates.go.
const RiskVersion = "risk-v0.2.0"

// Level is a band of the risk score or the severity of a cause.
type Level string

// The levels, best first.
const (
	LevelSafe    Level = "safe"
	LevelWarning Level = "warning"
	LevelDanger  Level = "danger"
)

var levelRank = map[Level]int{LevelSafe: 0, LevelWarning: 1, LevelDanger: 2}

// Bands of the score: real-valued, so that 84.5 is warning and 49.5 danger.
var (
	perfect     = exact.FromInt(100)
	safeFrom    = exact.FromInt(85)
	warningFrom = exact.FromInt(50)
	warningCap  = exact.FromInt(84)
	dangerCap   = exact.FromInt(49)
)

// LevelOf is the band that a score lies in.
func LevelOf(score exact.Decimal) Level {
	switch {
	case score.AtLeast(safeFrom):
		return LevelSafe
	case score.AtLeast(warningFrom):
		return LevelWarning
	}
	return LevelDanger
}

// Risk is the judgement of a factory: 100 is safest, 0 most dangerous.
type Risk struct {
	Score              exact.Decimal `json:"score"`
	BaseScore          exact.Decimal `json:"base_score"`
	Level              Level         `json:"level"`
	BaseLevel          Level         `json:"base_level"`
	TopCauses          []Cause       `json:"top_causes"`
	Gates              []Gate        `json:"gates"`
	CalculatedAt       *Millis       `json:"calculated_at,omitempty"`
	CalculationVersion string        `json:"calculation_version,omitempty"`
}

// Cause is one reason why the score is below 100.
type Cause struct {
	Field        string        `json:"field"`
	Reason       string        `json:"reason"`
	Value        Value         `json:"value"`
	Contribution exact.Decimal `json:"contribution"`
	Severity     Level         `json:"severity"`
	Source       string        `json:"source"`
}

// Gate is a condition that caps the score whatever the weighted sum says.
type Gate struct {
	Name     string         `json:"name"`
	Level    Level          `json:"level"`
	Field    string         `json:"field"`
	Value    Value          `json:"value"`
	ScoreCap *exact.Decimal `json:"score_cap,omitempty"`
}

// Sources of a cause.
const (
	sourceWeighted = "weighted"
	sourceGate     = "gate"
)

const maxTopCauses = 5

// severeContribution is the weighted penalty from which a cause is a danger.
var severeContribution = exact.FromInt(20)

// EvaluateRisk scores a factory. infra is nil when no infra_state is known: its
// factors and gates are skipped then, freshness is always judged.
func EvaluateRisk(state FactoryState, infra *InfraState, pipeline PipelineStatus) Risk {
	in := riskInput{state: state, infra: infra, pipeline: pipeline}
	causes := weightedCauses(in)
	base := perfect
	for _, cause := range causes {
		base = base.Sub(cause.Contribution)
	}
	base = exact.Max(exact.Decimal{}, base).Round(2)
	gates := openGates(in)
	score := capScore(base, gates).Round(2)
	for _, gate := range gates {
		causes = append(causes, gateCause(gate, base.Sub(score)))
	}
	return Risk{
		Score: score, BaseScore: base,
		Level: LevelOf(score), BaseLevel: LevelOf(base),
		TopCauses: topCauses(causes), Gates: gates,
	}
}

func capScore(base exact.Decimal, gates []Gate) exact.Decimal {
	score := base
	for _, gate := range gates {
		levelCap := warningCap
		if gate.Level == LevelDanger {
			levelCap = dangerCap
		}
		score = exact.Min(score, levelCap)
		if gate.ScoreCap != nil {
			score = exact.Min(score, *gate.ScoreCap)
		}
	}
	return score
}

func gateCause(gate Gate, drop exact.Decimal) Cause {
	return Cause{
		Field: gate.Field, Reason: gate.Name, Value: gate.Value,
		Contribution: exact.Max(drop, weightOf(gate.Field)).Round(2),
		Severity:     gate.Level, Source: sourceGate,
	}
}

// topCauses are the worst causes first; equal ones keep the order of evaluation.
func topCauses(causes []Cause) []Cause {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(levelRank[b.Severity], levelRank[a.Severity]), b.Contribution.Cmp(a.Contribution))
	})
	if len(causes) > maxTopCauses {
		causes = causes[:maxTopCauses]
	}
	return slices.Clip(causes)
}
