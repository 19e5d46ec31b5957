// Package status tells an operator how the product is doing: its schedules, its
// long-running workflows, its queues and how fresh each factory is.
package status

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Report is what status shows. What could not be found out is in Problems.
type Report struct {
	At        time.Time  `json:"at"`
	Schedules []Schedule `json:"schedules"`
	Workflows []Workflow `json:"workflows"`
	Queues    []Queue    `json:"queues"`
	Factories []Factory  `json:"factories"`
	Problems  []string   `json:"problems"`
}

// Schedule is one schedule. LatenessSeconds is how long its next run is overdue.
type Schedule struct {
	ID              string     `json:"id"`
	State           string     `json:"state"`
	Note            string     `json:"note,omitempty"`
	LastRunAt       *time.Time `json:"last_run_at"`
	LastRunStatus   string     `json:"last_run_status,omitempty"`
	NextRunAt       *time.Time `json:"next_run_at"`
	LatenessSeconds int64      `json:"lateness_seconds"`
	Missed          int        `json:"missed"`
}

// States of schedules and workflows.
const (
	StateActive  = "active"
	StatePaused  = "paused"
	StateMissing = "missing"
	StateUnknown = "unknown"
)

// Workflow is one long-running workflow and the activity that it waits for.
type Workflow struct {
	ID              string     `json:"id"`
	State           string     `json:"state"`
	StartedAt       *time.Time `json:"started_at"`
	Activity        string     `json:"activity,omitempty"`
	Attempt         int32      `json:"attempt,omitempty"`
	LastHeartbeatAt *time.Time `json:"last_heartbeat_at"`
	LastFailure     string     `json:"last_failure,omitempty"`
}

// Queue is one SQS queue; what nobody knows is nil.
type Queue struct {
	Name             string `json:"name"`
	MessagesVisible  *int64 `json:"messages_visible"`
	MessagesInFlight *int64 `json:"messages_in_flight"`
	OldestAgeSeconds *int64 `json:"oldest_age_seconds"`
	IsDLQ            bool   `json:"is_dlq"`
}

// Factory is how fresh and how safe one factory is. Ages are judged now, the
// risk is the stored one. Found is false for a factory that never sent anything.
type Factory struct {
	FactoryID              string         `json:"factory_id"`
	Found                  bool           `json:"found"`
	UpdatedAt              *time.Time     `json:"updated_at"`
	FactoryStateAgeSeconds *int64         `json:"factory_state_age_seconds"`
	InfraStateAgeSeconds   *int64         `json:"infra_state_age_seconds"`
	PipelineStatus         factory.Health `json:"pipeline_status,omitempty"`
	RiskLevel              string         `json:"risk_level,omitempty"`
	RiskScore              *exact.Decimal `json:"risk_score"`
}

// Gather asks all sources side by side. One that fails leaves its part unknown
// and says so.
func (s Sources) Gather(ctx context.Context) Report {
	report := Report{At: s.Now().UTC(), Problems: []string{}}
	parts := []struct {
		name   string
		gather func() error
	}{
		{"schedules", func() (err error) { report.Schedules, err = s.schedules(ctx, report.At); return err }},
		{"workflows", func() (err error) { report.Workflows, err = s.workflows(ctx); return err }},
		{"queues", func() (err error) { report.Queues, err = s.queues(ctx); return err }},
		{"factories", func() (err error) { report.Factories, err = s.factories(ctx, report.At); return err }},
	}
	problems := make([]string, len(parts))
	var gathering errgroup.Group
	for i, part := range parts {
		gathering.Go(func() error {
			if err := part.gather(); err != nil {
				problems[i] = fmt.Sprintf("%s: %v", part.name, err)
			}
			return nil
		})
	}
	_ = gathering.Wait() // failures are problems
	for _, problem := range problems {
		if problem != "" {
			report.Problems = append(report.Problems, problem)
		}
	}
	return report
}
