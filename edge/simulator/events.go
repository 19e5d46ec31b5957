package simulator

import (
	"time"

	"millrace/domain/factory"
)

func (g *Generator) statePayload(at time.Duration) statePayload {
	p := g.options.Profile
	sensor := sensorPayload{
		SampleCount: 1,
		Temperature: p.Temperature.draw(g.rng),
		Humidity:    p.Humidity.percent(g.rng),
		Pressure:    p.Pressure.draw(g.rng),
	}
	g.disturb(&sensor, at)
	if g.options.Adjustment != nil {
		g.options.Adjustment().change(&sensor)
	}
	return statePayload{
		AggregationWindowSeconds: int(StateInterval / time.Second),
		Sensor:                   sensor,
		AIResult:                 g.detect(at),
	}
}

// disturb puts the reading of a sensor event in place of the usual one, the
// same one as long as the event is held.
func (g *Generator) disturb(sensor *sensorPayload, at time.Duration) {
	plan := g.options.Profile.Sensor
	if i, ok := g.sensor.take(at, g.rng); ok {
		kind := plan.Kinds[i]
		g.held = heldReading{until: at + plan.Hold, reading: kind.Reading, value: between(g.rng, kind.Low, kind.High)}
	}
	if at >= g.held.until {
		return
	}
	switch g.held.reading {
	case Temperature:
		sensor.Temperature = g.held.value
	case Humidity:
		sensor.Humidity = g.held.value
	case Pressure:
		sensor.Pressure = g.held.value
	}
}

// tenth is the step of AI scores.
const tenth = 10

// detect is what the AI workloads saw and heard: nothing, unless an event is due.
func (g *Generator) detect(at time.Duration) aiPayload {
	result := aiPayload{SampleCount: 1, AbnormalSound: factory.NoSound}
	plan := g.options.Profile.AI
	i, ok := g.ai.take(at, g.rng)
	if !ok {
		return result
	}
	kind := plan.Kinds[i]
	result.AbnormalSound = plan.Sound
	scores := []*Centi{&result.FireScore, &result.FallScore, &result.BendScore}
	g.rng.Shuffle(len(scores), func(i, j int) { scores[i], scores[j] = scores[j], scores[i] })
	count := kind.MinScores + g.rng.IntN(kind.MaxScores-kind.MinScores+1)
	for _, score := range scores[:count] {
		*score = between(g.rng, kind.Low/tenth, kind.High/tenth) * tenth
	}
	return result
}

// fallSilent tells whether a gap of the pipeline swallows the infra_state that
// is due. A gap is measured as the cloud sees it, from the last message before
// it to the first one after it.
func (g *Generator) fallSilent(at time.Duration) bool {
	i, ok := g.silent.take(at, g.rng)
	if !ok {
		return false
	}
	length := g.options.Profile.Gap.Lengths[i].draw(g.rng)
	if end := g.lastInfra + length; end > at {
		g.infra.due = end
		return true
	}
	return false
}

func (g *Generator) infraPayload(at time.Duration, stamp string) infraPayload {
	g.lastInfra = at
	c := newCluster(g.options.Profile, g.rng)
	if i, ok := g.broken.take(at, g.rng); ok {
		g.options.Profile.Infra.Kinds[i].effect(c, g.rng)
	}
	if g.options.Scenario == ScenarioNodeDown {
		c.lose(g.options.DownNodes)
	}
	return infraPayload{
		Heartbeat:       g.heartbeat(),
		NodeSummary:     c.nodeSummary(),
		Nodes:           c.nodes,
		WorkloadSummary: c.workloadSummary(),
		Workloads:       c.workloads,
		Devices:         g.devices(c, stamp),
	}
}

const dummyInput = "dummy"

func (g *Generator) heartbeat() heartbeat {
	beat := heartbeat{AgentStatus: "alive", LastSpoolWriteStatus: "unknown"}
	if g.options.Profile.InputModuleType == dummyInput {
		g.sequence++
		beat.PublishSequence = g.sequence
		beat.ClusterStateSource = "synthetic"
		beat.DummyScenario = g.options.Scenario
	}
	return beat
}

// devices remembers when each device last answered.
func (g *Generator) devices(c *cluster, stamp string) map[string]device {
	devices := map[string]device{}
	for _, name := range deviceNames {
		if !c.gone[name] {
			g.seen[name] = stamp
		}
		d := device{Available: !c.gone[name]}
		if seen, ok := g.seen[name]; ok {
			d.LastSeenAt = &seen
		}
		devices[name] = d
	}
	return devices
}
