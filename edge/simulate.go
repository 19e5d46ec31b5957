package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"millrace/edge/jobs"
	"millrace/edge/simulator"
)

// simulateCommand simulates one factory or, to make load, many.
type simulateCommand struct {
	outboxSettings
	publishSettings
	overrides

	Factory   string   `help:"Factory to simulate." default:"factory-b" env:"MILLRACE_SIMULATE_FACTORY,AEGIS_FACTORY_ID"`
	Profile   string   `help:"What it is like: factory-a, factory-b or factory-c. Default: its own profile, else factory-b's." env:"MILLRACE_SIMULATE_PROFILE" placeholder:"NAME"`
	Factories int      `help:"Simulate this many factories, factory-001 and on, each with its own outbox below the outbox directory." placeholder:"N"`
	Seed      uint64   `help:"Same seed, same start: same messages. 0 draws one and logs it." env:"MILLRACE_SIMULATE_SEED" placeholder:"N"`
	Scenario  string   `help:"normal, or node_down: some nodes are down all the time." enum:"normal,node_down,nodes_down" default:"normal" env:"AEGIS_DUMMY_SCENARIO"`
	DownNodes []string `help:"Nodes that are down in the scenario node_down. Default: the worker." env:"AEGIS_DUMMY_SCENARIO_DOWN_NODES" placeholder:"NODE"`
	Sequence  string   `name:"sequence-file" help:"Keeps the publish sequence number. Default: {factory}-publish-sequence beside the outbox." env:"MILLRACE_SIMULATE_SEQUENCE_FILE" placeholder:"FILE"`

	Speed    float64       `help:"Messages come this many times as fast; events keep their pace." default:"1"`
	Rate     float64       `help:"Messages a second of all factories together, instead of --speed." placeholder:"N"`
	Start    string        `help:"Write at once the messages of --duration from this time (RFC 3339) on, and end." placeholder:"TIME"`
	Duration time.Duration `help:"End after this time." placeholder:"TIME"`
	Relaxed  bool          `name:"no-fsync" help:"Don't wait for the disk: for load tests only."`

	Publish bool   `help:"Also publish the outbox."`
	Drill   string `help:"Begin an outage drill, or end it with none: drop stops generating, backlog stops publishing. While running, write the name into the file .drill of the outbox, or remove that." enum:",none,drop,backlog" default:"" placeholder:"NAME"`

	JobDrill string `help:"Have jobs go wrong: fail, silent (done and not answered), slow=DURATION, duplicate (answered twice), or end it with none. While running, write it into the file .job-drill of the outbox, or remove that." default:"" placeholder:"DRILL"`

	start time.Time
}

// Validate reports everything that is wrong with the settings.
func (c *simulateCommand) Validate() error {
	var problems []error
	if c.Publish {
		problems = append(problems, c.check())
	}
	if c.Factories < 0 {
		problems = append(problems, errors.New("--factories: must not be negative"))
	}
	if c.Factories > 1 && c.Publish {
		for name, value := range map[string]string{"CERT_FILE": c.CertFile, "KEY_FILE": c.KeyFile} {
			if !strings.Contains(value, factoryMark) {
				problems = append(problems, fmt.Errorf("MILLRACE_IOT_%s: must contain %s, for each factory has its own", name, factoryMark))
			}
		}
		if c.ClientID != "" && !strings.Contains(c.ClientID, factoryMark) {
			problems = append(problems, fmt.Errorf("MILLRACE_IOT_CLIENT_ID: must contain %s, for it must be unique", factoryMark))
		}
	}
	if _, known := simulator.Profiles()[c.Profile]; c.Profile != "" && !known {
		problems = append(problems, errors.New("--profile: must be factory-a, factory-b or factory-c"))
	}
	if c.Rate < 0 || c.Duration < 0 {
		problems = append(problems, errors.New("--rate and --duration: must not be negative"))
	}
	if _, err := jobs.ParseDrill(c.JobDrill); err != nil {
		problems = append(problems, fmt.Errorf("--job-drill: %w", err))
	}
	problems = append(problems, c.checkStart())
	return errors.Join(problems...)
}

func (c *simulateCommand) checkStart() (err error) {
	if c.Start == "" {
		return nil
	}
	if c.Duration == 0 {
		return errors.New("--start: needs --duration")
	}
	if c.start, err = time.Parse(time.RFC3339, c.Start); err != nil {
		return errors.New("--start: must be an RFC 3339 time such as 2026-11-30T00:00:00Z")
	}
	return nil
}

// factories are the ids to simulate.
func (c *simulateCommand) factories() []string {
	if c.Factories == 0 {
		return []string{c.Factory}
	}
	ids := make([]string, c.Factories)
	for i := range ids {
		ids[i] = fmt.Sprintf("factory-%03d", i+1)
	}
	return ids
}

// outboxOf is where a factory leaves its messages.
func (c *simulateCommand) outboxOf(factoryID string) string {
	if c.Factories == 0 {
		return c.OutboxDir
	}
	return filepath.Join(c.OutboxDir, factoryID)
}

// speed follows from the rate when there is one.
func (c *simulateCommand) speed() float64 {
	if c.Rate == 0 {
		return c.Speed
	}
	usual := float64(len(c.factories())) * (1/simulator.StateInterval.Seconds() + 1/simulator.InfraInterval.Seconds())
	return c.Rate / usual
}

// profile is what a factory is like, with the overrides of the environment.
func (c *simulateCommand) profile(factoryID string) simulator.Profile {
	profiles := simulator.Profiles()
	for _, name := range []string{c.Profile, factoryID} {
		if p, ok := profiles[name]; ok {
			return c.apply(p)
		}
	}
	return c.apply(profiles["factory-b"])
}

func (c *simulateCommand) seed() uint64 {
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	return c.Seed
}

func (c *simulateCommand) options(factoryID string, sequence int64) simulator.Options {
	scenario := c.Scenario
	if scenario == "nodes_down" {
		scenario = simulator.ScenarioNodeDown
	}
	return simulator.Options{
		FactoryID:  factoryID,
		Profile:    c.profile(factoryID),
		Seed:       c.seed(),
		InstanceID: "edge-simulator",
		Speed:      c.speed(),
		Scenario:   scenario,
		DownNodes:  c.DownNodes,
		Sequence:   sequence,
	}
}

// sequenceFile keeps a factory's publish sequence number.
func (c *simulateCommand) sequenceFile(factoryID string) simulator.SequenceFile {
	path := strings.ReplaceAll(c.Sequence, factoryMark, factoryID)
	if path == "" {
		path = c.beside(factoryID + "-publish-sequence")
	}
	return simulator.NewSequenceFile(path)
}

// beside is the path of a file beside the outbox.
func (c *simulateCommand) beside(name string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(c.OutboxDir)), name)
}

// takesJobs tells whether the factory is one that can be reached: it publishes,
// and it goes on.
func (c *simulateCommand) takesJobs() bool { return c.Publish && c.Start == "" }
