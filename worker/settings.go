package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/platform/config"
	"millrace/workflows/names"
)

// settings are everything that the worker can be told.
type settings struct {
	config.Logging   `embed:"" group:"Operation"`
	config.Metrics   `embed:"" group:"Operation"`
	config.Stores    `embed:"" group:"Stores"`
	config.Queues    `embed:"" group:"Stores"`
	config.Factories `embed:"" group:"Factories"`
	TaskQueues       taskQueues         `embed:"" group:"Temporal"`
	Deployment       deployment         `embed:"" group:"Temporal"`
	Retention        retention          `embed:"" group:"Factories"`
	Monitoring       monitoringSettings `embed:"" group:"Monitoring"`
	CloudInfra       config.CloudInfra  `embed:"" group:"Cloud infrastructure"`
	Alerts           alertSettings      `embed:"" group:"Alerts"`
	Artifacts        artifactSettings   `embed:"" group:"Artifacts"`
	IoT              config.IoT         `embed:"" group:"Artifacts"`
	Report           config.Report      `embed:"" group:"Reports"`
}

// taskQueues says which task queues are polled and how the worker leaves them.
type taskQueues struct {
	Names       []string      `name:"queues" help:"Task queues to work on." default:"artifacts,telemetry,scheduled,alerts,reports" env:"MILLRACE_WORKER_QUEUES"`
	StopTimeout time.Duration `help:"How long running activities may finish after SIGTERM." default:"45s" env:"MILLRACE_WORKER_STOP_TIMEOUT"`
}

// deployment switches Worker Versioning on.
type deployment struct {
	DeploymentName string `help:"Worker deployment that this worker belongs to." default:"millrace" env:"MILLRACE_WORKER_DEPLOYMENT"`
	BuildID        string `name:"build-id" help:"Version of this build; where set, Worker Versioning is on and running workflows stay with their version." env:"MILLRACE_WORKER_BUILD_ID"`
}

// retention says how long read models live and how they are counted.
type retention struct {
	HistoryTTL     time.Duration `name:"history-ttl" help:"How long HISTORY#STATE items live." default:"2h" env:"MILLRACE_HISTORY_TTL"`
	GraphTTL       time.Duration `name:"graph-ttl" help:"How long GRAPH#5M items live." default:"48h" env:"MILLRACE_GRAPH_TTL"`
	SampleInterval time.Duration `help:"How often a factory sends factory_state." default:"3s" env:"MILLRACE_SAMPLE_INTERVAL"`
	AIThreshold    string        `name:"ai-score-threshold" help:"AI score from which a detection is counted." default:"0.7" env:"MILLRACE_AI_SCORE_THRESHOLD"`
}

var knownQueues = []string{
	names.QueueArtifacts, names.QueueScripts, names.QueueTelemetry, names.QueueScheduled, names.QueueAlerts, names.QueueReports,
}

// Validate refuses settings that can't work, all of them in one error.
func (s *settings) Validate() error {
	problems := []error{s.Stores.Validate(), s.Factories.Validate(), s.Retention.check(), s.CloudInfra.Validate(), s.Alerts.check(), s.Artifacts.check(), s.Report.Validate(), s.IoT.Validate()}
	for _, name := range s.TaskQueues.Names {
		if !slices.Contains(knownQueues, name) {
			problems = append(problems, fmt.Errorf("MILLRACE_WORKER_QUEUES: %q is none of %v", name, knownQueues))
		}
	}
	if slices.Contains(s.TaskQueues.Names, names.QueueTelemetry) {
		for variable, url := range map[string]string{
			"MILLRACE_TELEMETRY_QUEUE_URL": s.TelemetryQueueURL, "MILLRACE_RULE_ERRORS_QUEUE_URL": s.RuleErrorsQueueURL,
		} {
			if url == "" {
				problems = append(problems, fmt.Errorf("%s: is required to work on task queue %s", variable, names.QueueTelemetry))
			}
		}
	}
	if s.TaskQueues.StopTimeout <= 0 {
		problems = append(problems, errors.New("MILLRACE_WORKER_STOP_TIMEOUT: must be positive"))
	}
	return errors.Join(problems...)
}

// minHistoryTTL leaves the aggregation time to read a bucket's history.
const minHistoryTTL = 30 * time.Minute

func (r retention) check() error {
	var problems []error
	if r.HistoryTTL < minHistoryTTL {
		problems = append(problems, fmt.Errorf("MILLRACE_HISTORY_TTL: must be at least %s", minHistoryTTL))
	}
	if r.GraphTTL <= 0 {
		problems = append(problems, errors.New("MILLRACE_GRAPH_TTL: must be positive"))
	}
	if r.SampleInterval <= 0 {
		problems = append(problems, errors.New("MILLRACE_SAMPLE_INTERVAL: must be positive"))
	}
	if _, err := exact.Parse(r.AIThreshold); err != nil {
		problems = append(problems, fmt.Errorf("MILLRACE_AI_SCORE_THRESHOLD: %w", err))
	}
	return errors.Join(problems...)
}

// graphRules are the rules of the aggregation; the settings have been checked.
func (r retention) graphRules() factory.GraphRules {
	return factory.GraphRules{Keep: r.GraphTTL, SampleInterval: r.SampleInterval, AIThreshold: exact.MustParse(r.AIThreshold)}
}
