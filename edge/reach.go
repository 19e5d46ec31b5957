package main

import (
	"log/slog"
	"strings"
	"sync"

	"millrace/domain/artifact"
	"millrace/edge/jobs"
	"millrace/platform/mqtt"
)

// reach gives a factory a connection of its own for its jobs. Its client id is the
// same after a restart, so that the broker keeps what comes meanwhile.
func (c *simulateCommand) reach(p *plant, log *slog.Logger) error {
	drills := jobs.NewDrillFile(c.OutboxDir)
	if c.JobDrill != "" {
		if err := drills.Set(c.JobDrill); err != nil {
			return err
		}
	}
	memory, err := jobs.OpenMemory(c.beside(p.id + "-jobs.json"))
	if err != nil {
		return err
	}
	clientID := "edge-jobs-" + p.id
	of := func(text string) string { return strings.ReplaceAll(text, factoryMark, p.id) }
	if c.ClientID != "" {
		clientID = of(c.ClientID) + "-jobs"
	}
	p.line = &mqtt.Subscriber{
		Config: mqtt.Config{
			Broker:   mqtt.Broker{Endpoint: c.Endpoint, Port: c.Port, CAFile: of(c.CAFile), CertFile: of(c.CertFile), KeyFile: of(c.KeyFile)},
			ClientID: clientID, KeepAlive: c.KeepAlive.duration(), Timeout: c.Timeout.duration(), Session: true,
		},
		Filter: artifact.JobFilter(p.id), MinDelay: c.MinDelay.duration(), MaxDelay: c.MaxDelay.duration(), Log: log,
	}
	p.device = jobs.NewDevice(p.id, memory, p.line, log)
	p.line.Take = p.device.Take
	watch := &jobDrillWatch{file: drills, log: log}
	p.device.Drill = watch.drill
	return nil
}

// jobDrillWatch reads the drill file and logs each change.
type jobDrillWatch struct {
	file jobs.DrillFile
	log  *slog.Logger

	mu      sync.Mutex
	last    jobs.Drill
	lastErr string
}

func (w *jobDrillWatch) drill() jobs.Drill {
	now, err := w.file.Drill()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && err.Error() != w.lastErr {
		w.log.Error("job drill ignored", "error", err)
		w.lastErr = err.Error()
	}
	if now != w.last {
		w.log.Warn("job drill changed", "from", w.last.Kind, "to", now.Kind)
		w.last = now
	}
	return now
}
