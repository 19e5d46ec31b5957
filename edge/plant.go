package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"millrace/edge/jobs"
	"millrace/edge/outbox"
	"millrace/edge/publisher"
	"millrace/edge/simulator"
	"millrace/platform/mqtt"
)

// plant is one simulated factory: its generator and, if wanted, its publisher,
// which share the outbox.
type plant struct {
	id        string
	runner    *simulator.Runner
	publisher *publisher.Publisher
	// device and line are the factory's jobs and its connection for them; nil when
	// it takes none.
	device *jobs.Device
	line   *mqtt.Subscriber
	unlock func()
}

// Run simulates until the context ends or the duration is over.
func (c *simulateCommand) Run(ctx context.Context, s site) error {
	plants, err := c.plants(s)
	defer func() {
		for _, p := range plants {
			p.unlock()
		}
	}()
	if err != nil {
		return err
	}
	s.log.Info("simulating", "factories", len(plants), "seed", c.Seed, "speed", c.speed(), "publish", c.Publish)
	if c.Start != "" {
		return each(plants, func(p *plant) error { return p.fill(ctx, c.start, c.Duration) })
	}
	working := ctx
	if c.Duration > 0 {
		var stop context.CancelFunc
		working, stop = context.WithTimeout(ctx, c.Duration)
		defer stop()
	}
	return each(plants, func(p *plant) error { return p.work(ctx, working) })
}

// each does the same for all plants at once.
func each(plants []*plant, do func(*plant) error) error {
	errs := make([]error, len(plants))
	var group sync.WaitGroup
	for i, p := range plants {
		group.Go(func() { errs[i] = do(p) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// plants builds all factories; those built before an error are returned with it.
func (c *simulateCommand) plants(s site) ([]*plant, error) {
	var plants []*plant
	observe := observer(s.registry)
	for _, id := range c.factories() {
		p, err := c.plant(id, s.log.With("factory_id", id))
		if err != nil {
			return plants, fmt.Errorf("simulate %s: %w", id, err)
		}
		if p.publisher != nil {
			p.publisher.Observe = observe
		}
		plants = append(plants, p)
	}
	return plants, nil
}

func (c *simulateCommand) plant(id string, log *slog.Logger) (p *plant, err error) {
	box, unlock, err := c.openOutbox(id, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	drills := simulator.NewDrillFile(c.OutboxDir)
	if c.Drill != "" {
		if err := drills.Set(simulator.Drill(c.Drill)); err != nil {
			return nil, err
		}
	}
	watch := &drillWatch{file: drills, log: log, last: simulator.DrillNone}
	file := c.sequenceFile(id)
	sequence, err := file.Load()
	if err != nil {
		return nil, err
	}
	options := c.options(id, sequence)
	p = &plant{id: id, unlock: unlock}
	if c.takesJobs() {
		if err := c.reach(p, log); err != nil {
			return nil, err
		}
		options.Adjustment = p.device.Memory.Adjustment
	}
	generator, err := simulator.NewGenerator(options)
	if err != nil {
		return nil, err
	}
	p.runner = simulator.NewRunner(generator, box, log)
	p.runner.Store = file.Store
	p.runner.Dropping = func() bool { return watch.is(simulator.DrillDrop) }
	if c.Publish {
		p.publisher, err = c.publisher(id, hostname(), box, log)
		if err != nil {
			return nil, err
		}
		p.publisher.Paused = func() bool { return watch.is(simulator.DrillBacklog) }
	}
	return p, nil
}

func (c *simulateCommand) openOutbox(id string, log *slog.Logger) (*outbox.Dir, func(), error) {
	var options []outbox.Option
	if c.Relaxed {
		options = append(options, outbox.WithoutSync())
	}
	if c.Publish {
		return openToPublish(c.outboxOf(id), log, options...)
	}
	box, err := outbox.Open(c.outboxOf(id), options...)
	return box, func() {}, err
}

// fill writes the messages of a span of time at once, and publishes them once.
func (p *plant) fill(ctx context.Context, start time.Time, span time.Duration) error {
	p.runner.Fill(ctx, start, span)
	return p.finish(ctx)
}

// work generates and publishes until the working context ends. When that was
// for the duration only, what is left is still published.
func (p *plant) work(ctx, working context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { p.runner.Run(working) })
	if p.publisher != nil {
		group.Go(func() { p.publisher.Loop(working) })
	}
	if p.device != nil {
		group.Go(func() { p.device.Run(working) })
		group.Go(func() { p.line.Run(working) })
	}
	group.Wait()
	return p.finish(ctx)
}

func (p *plant) finish(ctx context.Context) error {
	p.runner.Log.Info("generated", "messages", p.runner.Written())
	if p.publisher == nil || ctx.Err() != nil {
		return nil
	}
	result, err := p.publisher.Once(ctx)
	p.publisher.Transport.Disconnect()
	p.runner.Log.Info("published the rest", "published", result.Published, "quarantined", result.Quarantined, "failed", result.Failed)
	return err
}

// drillWatch reads the drill file and logs each change.
type drillWatch struct {
	file simulator.DrillFile
	log  *slog.Logger

	mu      sync.Mutex
	last    simulator.Drill
	lastErr string
}

func (w *drillWatch) is(drill simulator.Drill) bool {
	now, err := w.file.Drill()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && err.Error() != w.lastErr {
		w.log.Error("drill ignored", "error", err)
		w.lastErr = err.Error()
	}
	if now != w.last {
		w.log.Warn("drill changed", "from", w.last, "to", now)
		w.last = now
	}
	return now == drill
}
