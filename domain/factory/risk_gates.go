package factory

import (
	"strings"

	"millrace/domain/exact"
)

var (
	aiCritical         = exact.MustParse("0.95")
	aiWarning          = exact.MustParse("0.8")
	aiWarningWithSound = exact.MustParse("0.6")
)

// openGates are the gates whose condition holds, in the order of the design.
func openGates(in riskInput) []Gate {
	gates := append([]Gate{}, climateGates(in.state)...)
	gates = append(gates, aiGates(in.state)...)
	if in.infra != nil {
		gates = append(gates, readinessGates(nodeGates, in.infra.NodesReady, in.infra.NodesTotal)...)
		gates = append(gates, readinessGates(podGates, in.infra.PodsReady, in.infra.PodsTotal)...)
		gates = append(gates, deviceGates(in)...)
	}
	return append(gates, freshnessGates(in.pipeline)...)
}

func climateGates(state FactoryState) []Gate {
	var gates []Gate
	if t := state.TemperatureCelsius; t != nil && t.AtLeast(temperatureTo) {
		gates = append(gates, Gate{Name: "temperature_critical", Level: LevelWarning, Field: fieldTemperature, Value: numberValue(*t)})
	}
	if h := state.HumidityPercent; h != nil && h.AtLeast(humidityTo) {
		gates = append(gates, Gate{Name: "humidity_critical", Level: LevelWarning, Field: fieldHumidity, Value: numberValue(*h)})
	}
	return gates
}

func aiGates(state FactoryState) []Gate {
	score := state.maxAIScore()
	if score == nil {
		return nil
	}
	gate := Gate{Field: fieldAI, Value: numberValue(*score)}
	switch {
	case score.AtLeast(aiCritical):
		gate.Name, gate.Level = "ai_score_critical", LevelDanger
	case score.AtLeast(aiWarning), score.AtLeast(aiWarningWithSound) && state.heardSomething():
		gate.Name, gate.Level = "ai_score_warning", LevelWarning
	default:
		return nil
	}
	return []Gate{gate}
}

// readinessGate is a pair of gates over "how many of them are ready".
type readinessGate struct {
	field, none, some string
	noneIsZero        bool
}

var (
	nodeGates = readinessGate{field: fieldNodes, none: "nodes_all_not_ready", some: "nodes_partially_not_ready", noneIsZero: true}
	podGates  = readinessGate{field: fieldPods, none: "pods_all_unready", some: "pods_partially_unready"}
)

func readinessGates(g readinessGate, ready, total int64) []Gate {
	switch {
	case total <= 0 || ready >= total:
		return nil
	case ready <= 0:
		gate := Gate{Name: g.none, Level: LevelDanger, Field: g.field, Value: readyOfTotal(ready, total)}
		if g.noneIsZero {
			gate.ScoreCap = new(exact.Decimal)
		}
		return []Gate{gate}
	}
	return []Gate{{Name: g.some, Level: LevelWarning, Field: g.field, Value: readyOfTotal(ready, total)}}
}

// deviceGates warn of a lost sensor; it is a danger when the climate sensor is
// gone and indeed nothing was measured.
func deviceGates(in riskInput) []Gate {
	down, _ := in.infra.unavailableDevices()
	if len(down) == 0 {
		return nil
	}
	gate := Gate{Name: "required_device_unavailable", Level: LevelWarning, Field: fieldDevices, Value: textValue(strings.Join(down, ","))}
	if down[0] == RequiredDevices[0] && in.state.SampleCount == 0 {
		gate.Level = LevelDanger
	}
	return []Gate{gate}
}

func freshnessGates(pipeline PipelineStatus) []Gate {
	gate := Gate{Field: fieldFreshness, Level: LevelDanger}
	age := pipeline.LatestInfraStateAgeSeconds
	switch {
	case age != nil && *age > staleOutageSeconds:
		gate.Name, gate.Value, gate.ScoreCap = "pipeline_status_outage", textValue("stale_over_300s"), new(exact.Decimal)
	case pipeline.Status == Critical:
		gate.Name, gate.Value = "pipeline_status_critical", textValue(string(Critical))
	case pipeline.Status == Warning:
		gate.Name, gate.Level, gate.Value = "pipeline_status_warning", LevelWarning, textValue(string(Warning))
	default:
		return nil
	}
	return []Gate{gate}
}
