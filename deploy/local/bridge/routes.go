package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Destinations are where the rules put things.
type Destinations struct {
	// Bucket gets the bodies.
	Bucket string `json:"bucket"`
	// TelemetryQueueURL gets the telemetry envelopes.
	TelemetryQueueURL string `json:"queue_url"`
	// RuleErrorsQueueURL gets the error records.
	RuleErrorsQueueURL string `json:"rule_errors_queue_url"`
	// JobResultsQueueURL gets the envelopes of job results.
	JobResultsQueueURL string `json:"job_results_queue_url"`
}

// Change points the rules elsewhere while the bridge runs. Empty fields stay as they are.
type Change struct {
	// Factory limits the change to one factory's messages; empty means those of every factory
	// that has no destinations of its own.
	Factory string `json:"factory_id"`
	Destinations
}

// Routes are the destinations in force, safe for use by many goroutines.
type Routes struct {
	mu      sync.RWMutex
	base    Destinations
	special map[string]Destinations
	file    string
}

// NewRoutes returns routes that send everything to base. When file is not empty changes are kept
// in it and those found there are applied, so that they survive a restart of the bridge.
func NewRoutes(base Destinations, file string) (*Routes, error) {
	r := &Routes{base: base, special: make(map[string]Destinations), file: file}
	if file == "" {
		return r, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	kept := stored{Base: base}
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, fmt.Errorf("parse routes in %s: %w", file, err)
	}
	r.base = kept.Base
	if kept.Special != nil {
		r.special = kept.Special
	}
	return r, nil
}

type stored struct {
	Base    Destinations            `json:"base"`
	Special map[string]Destinations `json:"factories"`
}

// Of returns the destinations of a factory's messages.
func (r *Routes) Of(factory string) Destinations {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if d, ok := r.special[factory]; ok {
		return d
	}
	return r.base
}

// Apply makes a change and keeps it.
func (r *Routes) Apply(c Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Factory == "" {
		r.base = merge(r.base, c.Destinations)
	} else {
		was, ok := r.special[c.Factory]
		if !ok {
			was = r.base
		}
		r.special[c.Factory] = merge(was, c.Destinations)
	}
	return r.save()
}

func (r *Routes) save() error {
	if r.file == "" {
		return nil
	}
	data, err := json.Marshal(stored{Base: r.base, Special: r.special})
	if err != nil {
		return fmt.Errorf("encode routes: %w", err)
	}
	if err := os.WriteFile(r.file+".new", data, 0o600); err != nil {
		return fmt.Errorf("keep routes: %w", err)
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		return fmt.Errorf("keep routes: %w", err)
	}
	return nil
}

func merge(was, change Destinations) Destinations {
	for _, f := range []struct{ to, from *string }{
		{&was.Bucket, &change.Bucket},
		{&was.TelemetryQueueURL, &change.TelemetryQueueURL},
		{&was.RuleErrorsQueueURL, &change.RuleErrorsQueueURL},
		{&was.JobResultsQueueURL, &change.JobResultsQueueURL},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	return was
}
