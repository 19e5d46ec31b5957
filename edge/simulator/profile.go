package simulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Profile is what a simulated factory is like.
type Profile struct {
	Name            string
	EnvironmentType string
	InputModuleType string
	// StateNode is the node that sends factory_state.
	StateNode string

	Temperature, Humidity, Pressure Band

	Nodes      []NodeProfile
	NodeJitter Usage
	Workloads  []WorkloadProfile

	AI     AIPlan
	Sensor SensorPlan
	Infra  InfraPlan
	Gap    GapPlan
}

// Usage is a share of a node's CPU, memory and disk, in percent.
type Usage struct {
	CPU, Memory, Disk Centi
}

// NodeProfile is a node of the simulated cluster and its usual load.
type NodeProfile struct {
	ID, Role string
	Base     Usage
}

// WorkloadProfile is a pod of the simulated cluster.
type WorkloadProfile struct {
	Namespace, Name, Node string
}

// Interval is how long something lasts or how far two events lie apart; it is
// drawn uniformly, both ends included, in milliseconds.
type Interval struct {
	Min, Max time.Duration
}

func (i Interval) draw(rng *rand.Rand) time.Duration {
	const unit = time.Millisecond
	return i.Min + time.Duration(rng.Int64N(int64((i.Max-i.Min)/unit)+1))*unit
}

func (i Interval) check(what string) error {
	if i.Min <= 0 || i.Max < i.Min {
		return fmt.Errorf("%s: must be positive and its minimum no more than its maximum", what)
	}
	return nil
}

// AIPlan says when and how the AI workloads detect something; an event is one
// factory_state.
type AIPlan struct {
	Every Interval
	Kinds []AIKind
	Sound string
}

// AIKind is one kind of detection: how many of the three scores rise, and to
// what, in steps of a tenth.
type AIKind struct {
	Name                 string
	MinScores, MaxScores int
	Low, High            Centi
}

// SensorPlan says when and how a sensor reads out of range, and for how long.
type SensorPlan struct {
	Every Interval
	Hold  time.Duration
	Kinds []SensorKind
}

// SensorKind is one kind of out-of-range reading.
type SensorKind struct {
	Name      string
	Reading   Reading
	Low, High Centi
}

// Reading is one of the things that a sensor measures.
type Reading int

// The readings of the climate sensor.
const (
	Temperature Reading = iota
	Humidity
	Pressure
)

// InfraPlan says when and how the cluster breaks; an event is one infra_state.
type InfraPlan struct {
	Every Interval
	Kinds []InfraKind
}

// InfraKind is one kind of broken cluster.
type InfraKind struct {
	Name   string
	effect effect
}

// GapPlan says when infra_state fails to come and for how long, from one
// message to the next; the lengths take turns.
type GapPlan struct {
	Every   Interval
	Lengths []Interval
}

// Check reports everything that is wrong with a profile.
func (p Profile) Check() error {
	var problems []error
	note := func(err error) { problems = append(problems, err) }
	if len(p.AI.Kinds) > 0 {
		note(p.AI.Every.check("AI event interval"))
	}
	if len(p.Sensor.Kinds) > 0 {
		note(p.Sensor.Every.check("sensor event interval"))
	}
	if len(p.Infra.Kinds) > 0 {
		note(p.Infra.Every.check("infra event interval"))
	}
	for _, length := range p.Gap.Lengths {
		note(p.Gap.Every.check("pipeline gap interval"))
		note(length.check("pipeline gap length"))
	}
	for _, band := range []struct {
		what   string
		jitter Centi
	}{
		{"temperature jitter", p.Temperature.Jitter},
		{"humidity jitter", p.Humidity.Jitter},
		{"pressure jitter", p.Pressure.Jitter},
		{"node CPU jitter", p.NodeJitter.CPU},
		{"node memory jitter", p.NodeJitter.Memory},
		{"node disk jitter", p.NodeJitter.Disk},
	} {
		if band.jitter < 0 {
			note(fmt.Errorf("%s: must not be negative", band.what))
		}
	}
	return errors.Join(problems...)
}
