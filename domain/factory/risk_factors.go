package factory

import (
	"fmt"
	"strings"

	"millrace/domain/exact"
)

type riskInput struct {
	state    FactoryState
	infra    *InfraState
	pipeline PipelineStatus
}

// share is a ratio kept as a fraction, so that only the final contribution is
// rounded. It is clamped to 0..1 when used.
type share struct {
	part, whole exact.Decimal
}

var (
	zero = exact.Decimal{}
	one  = exact.FromInt(1)
	all  = share{part: one, whole: one}
)

func (s share) clamp() share {
	switch {
	case s.whole.Sign() <= 0 || s.part.Sign() <= 0:
		return share{part: zero, whole: one}
	case s.part.AtLeast(s.whole):
		return all
	}
	return s
}

// ramp rises linearly from 0 at start to 1 at end; end may lie below start.
func ramp(value, start, end exact.Decimal) share {
	part, whole := value.Sub(start), end.Sub(start)
	if whole.Sign() < 0 {
		part, whole = start.Sub(value), start.Sub(end)
	}
	return share{part: part, whole: whole}
}

// factor is one weighted part of the risk score. ratio returns the observed
// value too.
type factor struct {
	field      string
	weight     exact.Decimal
	needsInfra bool
	ratio      func(riskInput) (share, Value)
}

// Fields that factors and gates speak of.
const (
	fieldTemperature = "temperature"
	fieldHumidity    = "humidity"
	fieldPressure    = "pressure"
	fieldAI          = "ai_event_rate"
	fieldNodes       = "node_status"
	fieldPods        = "pod_health"
	fieldDevices     = "device_availability"
	fieldStorage     = "storage_pressure"
	fieldNetwork     = "network_reachability"
	fieldFreshness   = "data_freshness"
)

var factors = []factor{
	{fieldTemperature, exact.FromInt(10), false, temperatureRatio},
	{fieldHumidity, exact.FromInt(5), false, humidityRatio},
	{fieldPressure, exact.FromInt(5), false, pressureRatio},
	{fieldAI, exact.FromInt(15), false, aiRatio},
	{fieldNodes, exact.FromInt(20), true, nodeRatio},
	{fieldPods, exact.FromInt(15), true, podRatio},
	{fieldDevices, exact.FromInt(10), true, deviceRatio},
	{fieldStorage, exact.FromInt(5), true, storageRatio},
	{fieldNetwork, exact.FromInt(5), true, networkRatio},
	{fieldFreshness, exact.FromInt(10), false, freshnessRatio},
}

func weightOf(field string) exact.Decimal {
	for _, f := range factors {
		if f.field == field {
			return f.weight
		}
	}
	return zero
}

func weightedCauses(in riskInput) []Cause {
	causes := make([]Cause, 0, len(factors))
	for _, f := range factors {
		if f.needsInfra && in.infra == nil {
			continue
		}
		ratio, value := f.ratio(in)
		ratio = ratio.clamp()
		if ratio.part.Sign() == 0 {
			continue
		}
		causes = append(causes, weightedCause(f, ratio, value))
	}
	return causes
}

func weightedCause(f factor, ratio share, value Value) Cause {
	cause := Cause{
		Field: f.field, Reason: f.field + "_weighted_penalty", Value: value,
		Contribution: f.weight.Mul(ratio.part).Quo(ratio.whole, 2),
		Severity:     LevelWarning, Source: sourceWeighted,
	}
	if cause.Contribution.AtLeast(severeContribution) {
		cause.Severity = LevelDanger
	}
	return cause
}

// rampOf is the ramp of a sensor value; one that was not measured costs nothing.
func rampOf(value *exact.Decimal, start, end exact.Decimal) (share, Value) {
	if value == nil {
		return share{}, Value{}
	}
	return ramp(*value, start, end), numberValue(*value)
}

var (
	temperatureFrom, temperatureTo   = exact.FromInt(32), exact.FromInt(38)
	humidityFrom, humidityTo         = exact.FromInt(70), exact.FromInt(85)
	pressureLowFrom, pressureLowTo   = exact.FromInt(990), exact.FromInt(970)
	pressureHighFrom, pressureHighTo = exact.FromInt(1030), exact.FromInt(1050)
	storageFrom, storageTo           = exact.FromInt(75), exact.FromInt(90)
	soundSurcharge                   = exact.MustParse("0.05")
)

func temperatureRatio(in riskInput) (share, Value) {
	return rampOf(in.state.TemperatureCelsius, temperatureFrom, temperatureTo)
}

func humidityRatio(in riskInput) (share, Value) {
	return rampOf(in.state.HumidityPercent, humidityFrom, humidityTo)
}

func pressureRatio(in riskInput) (share, Value) {
	pressure := in.state.PressureHPA
	if pressure != nil && pressure.AtLeast(pressureHighFrom) {
		return rampOf(pressure, pressureHighFrom, pressureHighTo)
	}
	return rampOf(pressure, pressureLowFrom, pressureLowTo)
}

func aiRatio(in riskInput) (share, Value) {
	ratio, value := zero, Value{}
	if score := in.state.maxAIScore(); score != nil {
		ratio, value = exact.Max(zero, *score), numberValue(*score)
	}
	if in.state.heardSomething() {
		ratio = ratio.Add(soundSurcharge)
	}
	return share{part: ratio, whole: one}, value
}

// maxAIScore is the greatest of the known AI scores, nil when none is known.
func (s FactoryState) maxAIScore() *exact.Decimal {
	var greatest *exact.Decimal
	for _, score := range []*exact.Decimal{s.FireScore, s.FallScore, s.BendScore} {
		if score != nil && (greatest == nil || greatest.Less(*score)) {
			greatest = score
		}
	}
	return greatest
}

func (s FactoryState) heardSomething() bool {
	return s.AbnormalSound != "" && s.AbnormalSound != NoSound
}

func nodeRatio(in riskInput) (share, Value) {
	return missingShare(in.infra.NodesReady, in.infra.NodesTotal)
}

func podRatio(in riskInput) (share, Value) {
	return missingShare(in.infra.PodsReady, in.infra.PodsTotal)
}

func missingShare(ready, total int64) (share, Value) {
	return share{part: exact.FromInt(total - ready), whole: exact.FromInt(total)}, readyOfTotal(ready, total)
}

func readyOfTotal(ready, total int64) Value { return textValue(fmt.Sprintf("%d/%d", ready, total)) }

func deviceRatio(in riskInput) (share, Value) {
	down, present := in.infra.unavailableDevices()
	value := "all_available"
	if len(down) > 0 {
		value = strings.Join(down, ",")
	}
	return share{part: exact.FromInt(int64(len(down))), whole: exact.FromInt(int64(present))}, textValue(value)
}

func (s InfraState) unavailableDevices() (down []string, present int) {
	for _, name := range RequiredDevices {
		device, ok := s.Devices[name]
		if !ok {
			continue
		}
		present++
		if !device.Available {
			down = append(down, name)
		}
	}
	return down, present
}

func storageRatio(in riskInput) (share, Value) {
	var highest *exact.Decimal
	for _, node := range in.infra.Nodes {
		if disk := node.DiskUsagePercent; disk != nil && (highest == nil || highest.Less(*disk)) {
			highest = disk
		}
	}
	return rampOf(highest, storageFrom, storageTo)
}

// networkRatio is the share of nodes known to be cut off; nodes of unknown
// reachability are left out.
func networkRatio(in riskInput) (share, Value) {
	var bad, known int64
	states := make([]string, 0, len(in.infra.Nodes))
	for _, node := range in.infra.Nodes {
		states = append(states, node.NetworkReachability)
		if node.NetworkReachability == unknown {
			continue
		}
		known++
		if node.cutOff() {
			bad++
		}
	}
	return share{part: exact.FromInt(bad), whole: exact.FromInt(known)}, textValue(bounded(strings.Join(states, ","), MaxLabel))
}

// cutOff tells whether a node is known to be out of reach.
func (n Node) cutOff() bool {
	switch n.NetworkReachability {
	case "ok", "reachable", "ready", unknown:
		return false
	}
	return true
}

func freshnessRatio(in riskInput) (share, Value) {
	status, age := in.pipeline.Status, in.pipeline.LatestInfraStateAgeSeconds
	if status == "" {
		return share{}, Value{}
	}
	if status == Critical || age == nil {
		return all, ageValue(age)
	}
	return ramp(exact.FromInt(*age), exact.FromInt(staleWarningSeconds), exact.FromInt(staleCriticalSeconds)), ageValue(age)
}
