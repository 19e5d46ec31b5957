package simulator

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"millrace/domain/factory"
)

// Nominal times between messages.
const (
	StateInterval = 3 * time.Second
	InfraInterval = 20 * time.Second
)

// Scenarios of a simulated factory.
const (
	ScenarioNormal   = "normal"
	ScenarioNodeDown = "node_down"
)

// Options are the settings of one simulated factory.
type Options struct {
	FactoryID string
	Profile   Profile
	// Seed and FactoryID decide what is drawn.
	Seed uint64
	// InstanceID is written as data_plane_instance_id.
	InstanceID string
	// Speed divides the time between messages; events keep their own pace.
	Speed float64
	// Scenario is ScenarioNormal or ScenarioNodeDown.
	Scenario string
	// DownNodes are the nodes that are down in ScenarioNodeDown; the last one when
	// there are none.
	DownNodes []string
	// Sequence is the last publish sequence number used.
	Sequence int64
	// Adjustment, where set, is what jobs changed at the factory by now.
	Adjustment func() Adjustment
}

// Check reports everything that is wrong with the options.
func (o Options) Check() error {
	problems := []error{factory.CheckFactoryID(o.FactoryID), o.Profile.Check()}
	if o.Speed <= 0 || time.Duration(float64(StateInterval)/o.Speed) < time.Microsecond {
		problems = append(problems, errors.New("speed: must be positive and at most 3000000"))
	}
	if o.Scenario != ScenarioNormal && o.Scenario != ScenarioNodeDown {
		problems = append(problems, fmt.Errorf("scenario: must be %s or %s", ScenarioNormal, ScenarioNodeDown))
	}
	for _, id := range o.DownNodes {
		known := slices.ContainsFunc(o.Profile.Nodes, func(n NodeProfile) bool { return n.ID == id })
		if !known {
			problems = append(problems, fmt.Errorf("down nodes: %s has no node %q", o.Profile.Name, id))
		}
	}
	return errors.Join(problems...)
}

// Message is a generated message in its canonical wire form.
type Message struct {
	ID         string
	SourceType factory.SourceType
	Wire       []byte
}

// Generator makes the messages of one factory. It has no clock of its own: the
// same options and the same times give the same messages.
type Generator struct {
	options  Options
	rng      *rand.Rand
	sequence int64

	state, infra               schedule
	ai, sensor, broken, silent rotation
	held                       heldReading
	lastInfra                  time.Duration
	seen                       map[string]string
	stampLayout                string
}

// heldReading is a sensor event that goes on for a while.
type heldReading struct {
	until   time.Duration
	reading Reading
	value   Centi
}

// NewGenerator is a generator at the start of its run.
func NewGenerator(options Options) (*Generator, error) {
	if err := options.Check(); err != nil {
		return nil, fmt.Errorf("simulate %s: %w", options.FactoryID, err)
	}
	if options.Scenario == ScenarioNodeDown && len(options.DownNodes) == 0 {
		options.DownNodes = []string{options.Profile.Nodes[len(options.Profile.Nodes)-1].ID}
	}
	name := fnv.New64a()
	name.Write([]byte(options.FactoryID)) // It never fails.
	rng := rand.New(rand.NewPCG(options.Seed, name.Sum64()))
	p := options.Profile
	g := &Generator{
		options:  options,
		rng:      rng,
		sequence: options.Sequence,
		state:    schedule{every: faster(StateInterval, options.Speed)},
		infra:    schedule{every: faster(InfraInterval, options.Speed)},
		ai:       newRotation(p.AI.Every, len(p.AI.Kinds), rng),
		sensor:   newRotation(p.Sensor.Every, len(p.Sensor.Kinds), rng),
		broken:   newRotation(p.Infra.Every, len(p.Infra.Kinds), rng),
		silent:   newRotation(p.Gap.Every, len(p.Gap.Lengths), rng),
		seen:     map[string]string{},
	}
	g.stampLayout = stampSeconds
	if g.state.every < time.Second {
		g.stampLayout = stampMicros
	}
	return g, nil
}

// Timestamps have second precision by contract; messages that come faster need
// a fraction, or their ids would collide.
const (
	stampSeconds = "2006-01-02T15:04:05Z"
	stampMicros  = "2006-01-02T15:04:05.000000Z"
)

func faster(interval time.Duration, speed float64) time.Duration {
	return time.Duration(float64(interval) / speed)
}

// Due is how long after the start the next message is due. In a gap of the
// pipeline it may turn out that there is none.
func (g *Generator) Due() time.Duration { return min(g.state.due, g.infra.due) }

// Sequence is the last publish sequence number used.
func (g *Generator) Sequence() int64 { return g.sequence }

// Produce returns the messages that are due when the given time has elapsed
// since the start and the clock shows now.
func (g *Generator) Produce(elapsed time.Duration, now time.Time) ([]Message, error) {
	var messages []Message
	stamp := func(at time.Duration) string { return now.Add(at - elapsed).UTC().Format(g.stampLayout) }
	if at, ok := g.state.tick(elapsed); ok {
		m, err := g.message(factory.SourceFactoryState, g.options.Profile.StateNode, stamp(at), g.statePayload(at))
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	if at, ok := g.infra.tick(elapsed); ok && !g.fallSilent(at) {
		m, err := g.message(factory.SourceInfraState, clusterNode, stamp(at), g.infraPayload(at, stamp(at)))
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// clusterNode is the node_id of messages about the whole cluster.
const clusterNode = "cluster"

func (g *Generator) message(source factory.SourceType, nodeID, stamp string, payload any) (Message, error) {
	id := factory.NewMessageID(g.options.FactoryID, source, nodeID, stamp)
	wire, err := factory.EncodeWire(envelope{
		SchemaVersion:       factory.SchemaVersion,
		MessageID:           id,
		FactoryID:           g.options.FactoryID,
		NodeID:              nodeID,
		EnvironmentType:     g.options.Profile.EnvironmentType,
		InputModuleType:     g.options.Profile.InputModuleType,
		SourceType:          source,
		SourceTimestamp:     stamp,
		DataPlaneInstanceID: g.options.InstanceID,
		Payload:             payload,
	})
	return Message{ID: id, SourceType: source, Wire: wire}, err
}
