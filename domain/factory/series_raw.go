package factory

import (
	"slices"

	"millrace/domain/exact"
)

// RawPoint is an element of a short history: the state at one moment, with the
// values that charts need flattened. What is unknown is null.
type RawPoint struct {
	Timestamp             Millis         `json:"timestamp"`
	Risk                  *Risk          `json:"risk"`
	FactoryState          *FactoryState  `json:"factory_state"`
	InfraState            *InfraState    `json:"infra_state"`
	RiskScore             *exact.Decimal `json:"risk_score"`
	RiskLevel             *Level         `json:"risk_level"`
	TopCauseNames         []string       `json:"top_cause_names"`
	TemperatureCelsiusAvg *exact.Decimal `json:"temperature_celsius_avg"`
	HumidityPercentAvg    *exact.Decimal `json:"humidity_percent_avg"`
	PressureHPAAvg        *exact.Decimal `json:"pressure_hpa_avg"`
	FireScore             *exact.Decimal `json:"fire_score"`
	FallScore             *exact.Decimal `json:"fall_score"`
	BendScore             *exact.Decimal `json:"bend_score"`
	NodeSummary           *NodeSummary   `json:"node_summary"`
	Nodes                 []Node         `json:"nodes"`
}

// RawSeries is the answer to a query of raw rows, oldest first: at most
// plan.Limit of them, the newest.
func RawSeries(rows []Latest, plan ReadPlan) []RawPoint {
	points := make([]RawPoint, 0, len(rows))
	for i := range rows {
		if sk := HistorySK(rows[i].UpdatedAt); sk >= plan.FromSK && sk <= plan.ToSK {
			points = append(points, rawPoint(&rows[i]))
		}
	}
	slices.SortStableFunc(points, func(a, b RawPoint) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return newest(points, plan.Limit)
}

func rawPoint(row *Latest) RawPoint {
	point := RawPoint{
		Timestamp: row.UpdatedAt, Risk: row.Risk, FactoryState: row.FactoryState, InfraState: row.InfraState,
		TopCauseNames: []string{}, Nodes: []Node{},
	}
	if risk := row.Risk; risk != nil {
		point.RiskScore, point.RiskLevel = &risk.Score, &risk.Level
		for _, cause := range risk.TopCauses {
			point.TopCauseNames = append(point.TopCauseNames, cause.Reason)
		}
	}
	if state := row.FactoryState; state != nil {
		point.TemperatureCelsiusAvg, point.HumidityPercentAvg, point.PressureHPAAvg = state.TemperatureCelsius, state.HumidityPercent, state.PressureHPA
		point.FireScore, point.FallScore, point.BendScore = state.FireScore, state.FallScore, state.BendScore
	}
	if infra := row.InfraState; infra != nil {
		point.NodeSummary = &infra.NodeSummary
		point.Nodes = append(point.Nodes, infra.Nodes...)
	}
	return point
}

// newest are the last limit elements of a list, all of them when limit is 0.
func newest[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[len(list)-limit:]
	}
	return list
}
