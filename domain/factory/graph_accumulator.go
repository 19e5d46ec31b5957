package factory

import (
	"maps"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Units of the summarised metrics.
const (
	unitCelsius = "celsius"
	unitPercent = "percent"
	unitHPA     = "hPa"
	unitScore   = "score"
)

// Accumulator gathers the samples of one factory and bucket. Whatever lies
// outside the bucket by source time (for risk: by calculation time) is left out,
// whatever was added before changes nothing, and the order does not matter. It
// is not safe for concurrent use.
type Accumulator struct {
	factoryID string
	start     time.Time
	rules     GraphRules

	messages     map[string]struct{}
	factoryTimes map[int64]struct{}
	infraSeen    map[Order]struct{}

	temperature, humidity, pressure series
	fire, fall, bend                series
	risk                            series
	cluster                         usageSeries
	nodes                           map[string]*nodeSeries
}

// usageSeries are the samples of the three usage metrics.
type usageSeries struct{ cpu, memory, disk series }

func newUsageSeries() usageSeries {
	return usageSeries{cpu: series{}, memory: series{}, disk: series{}}
}

func (u usageSeries) empty() bool { return len(u.cpu)+len(u.memory)+len(u.disk) == 0 }

func (u usageSeries) usage() Usage {
	return Usage{
		CPUUsagePercent:    u.cpu.summary(unitPercent),
		MemoryUsagePercent: u.memory.summary(unitPercent),
		DiskUsagePercent:   u.disk.summary(unitPercent),
	}
}

type nodeSeries struct {
	usageSeries
	role   string
	roleOf Order
}

// NewAccumulator starts the aggregate of the bucket that start lies in.
func NewAccumulator(factoryID string, start time.Time, rules GraphRules) *Accumulator {
	return &Accumulator{
		factoryID: factoryID, start: BucketStart(start), rules: rules,
		messages: map[string]struct{}{}, factoryTimes: map[int64]struct{}{}, infraSeen: map[Order]struct{}{},
		temperature: series{}, humidity: series{}, pressure: series{},
		fire: series{}, fall: series{}, bend: series{},
		risk: series{}, cluster: newUsageSeries(), nodes: map[string]*nodeSeries{},
	}
}

func (a *Accumulator) covers(at time.Time) bool {
	return !at.Before(a.start) && at.Before(a.start.Add(BucketLength))
}

// AddHistory takes a HISTORY#STATE row: both blocks and the risk.
func (a *Accumulator) AddHistory(row *Latest) {
	if row.FactoryState != nil {
		a.AddFactoryState(row.FactoryState)
	}
	if row.InfraState != nil {
		a.AddInfraState(row.InfraState)
	}
	a.AddSnapshot(row)
}

// AddSnapshot takes the risk of a HISTORY#STATE row or a state_snapshot object,
// by its calculation time, and nothing else.
func (a *Accumulator) AddSnapshot(row *Latest) {
	if row.Risk == nil || row.Risk.CalculatedAt == nil || !a.covers(row.Risk.CalculatedAt.Time) {
		return
	}
	a.risk.add(Order{At: row.Risk.CalculatedAt.Time}, &row.Risk.Score)
}

// AddFactoryState takes the block of a history row or of a processed object.
func (a *Accumulator) AddFactoryState(state *FactoryState) {
	order := state.ID()
	if !a.covers(order.At) {
		return
	}
	a.messages[order.MessageID] = struct{}{}
	a.factoryTimes[order.At.UnixNano()] = struct{}{}
	a.temperature.add(order, state.TemperatureCelsius)
	a.humidity.add(order, state.HumidityPercent)
	a.pressure.add(order, state.PressureHPA)
	a.fire.add(order, state.FireScore)
	a.fall.add(order, state.FallScore)
	a.bend.add(order, state.BendScore)
}

// AddInfraState takes the block of a history row or of a processed object.
func (a *Accumulator) AddInfraState(state *InfraState) {
	order := state.ID()
	order.At = order.At.UTC()
	if _, known := a.infraSeen[order]; known || !a.covers(order.At) {
		return
	}
	a.infraSeen[order] = struct{}{}
	a.messages[order.MessageID] = struct{}{}
	nodes := state.fit().Nodes
	a.cluster.cpu.add(order, simpleMean(nodes, func(n *Node) *exact.Decimal { return n.CPUUsagePercent }))
	a.cluster.memory.add(order, simpleMean(nodes, func(n *Node) *exact.Decimal { return n.MemoryUsagePercent }))
	a.cluster.disk.add(order, simpleMean(nodes, func(n *Node) *exact.Decimal { return n.DiskUsagePercent }))
	for _, node := range nodes {
		a.addNode(order, node)
	}
}

func (a *Accumulator) addNode(order Order, node Node) {
	known, ok := a.nodes[node.NodeID]
	if !ok {
		known = &nodeSeries{usageSeries: newUsageSeries()}
		a.nodes[node.NodeID] = known
	}
	if !ok || order.Compare(known.roleOf) > 0 {
		known.role, known.roleOf = node.Role, order
	}
	known.cpu.add(order, node.CPUUsagePercent)
	known.memory.add(order, node.MemoryUsagePercent)
	known.disk.add(order, node.DiskUsagePercent)
}

// Graph is the aggregate of what was added so far. All its times follow from the
// bucket's, so that a later run writes the same document.
func (a *Accumulator) Graph() Graph {
	end := BucketEnd(a.start)
	return Graph{
		PK: PK(a.factoryID), SK: GraphSK(a.start),
		ItemType: GraphItemType, FactoryID: a.factoryID, SchemaVersion: GraphSchemaVersion,
		BucketMinutes: BucketMinutes, BucketStart: a.start, BucketEnd: end,
		Sensor: SensorSummary{
			TemperatureCelsius: a.temperature.summary(unitCelsius),
			HumidityPercent:    a.humidity.summary(unitPercent),
			PressureHPA:        a.pressure.summary(unitHPA),
		},
		Risk: RiskSummary{Score: byCalculation(a.risk.summary(unitScore))},
		AIDetection: detection(a.rules.AIThreshold, AIByType{
			FireScore: a.fire.aiSummary(a.rules.AIThreshold),
			FallScore: a.fall.aiSummary(a.rules.AIThreshold),
			BendScore: a.bend.aiSummary(a.rules.AIThreshold),
		}),
		Infra:     a.infra(),
		Quality:   a.quality(end),
		CreatedAt: end, UpdatedAt: end,
		TTL: a.start.Add(a.rules.Keep).Unix(),
	}
}

func (a *Accumulator) infra() InfraSummary {
	summary := InfraSummary{Usage: a.cluster.usage()}
	for _, nodeID := range slices.Sorted(maps.Keys(a.nodes)) {
		node := a.nodes[nodeID]
		switch {
		case node.empty():
		case len(summary.Nodes) == MaxNodes:
			summary.NodesCut++
		default:
			summary.Nodes = append(summary.Nodes, NodeUsage{NodeID: nodeID, Role: node.role, Usage: node.usage()})
		}
	}
	return summary
}

func (a *Accumulator) quality(end Millis) GraphQuality {
	sources, states, expected := int64(len(a.messages)), int64(len(a.factoryTimes)), a.rules.expectedCount()
	rate := exact.FromInt(states).Quo(exact.FromInt(expected), graphPlaces)
	return GraphQuality{
		SourceDataset: graphDataset,
		SourceCount:   sources, FactoryStateCount: states, ExpectedCount: expected,
		CollectionRate:          exact.Min(rate, one),
		MissingCount:            max(0, expected-states),
		IsEmpty:                 sources == 0,
		IsPartial:               states < expected,
		InfraValuesFromSnapshot: true,
		SourceWindowStartSK:     HistorySK(MillisOf(a.start)),
		SourceWindowEndSK:       HistorySK(end),
	}
}
