package cloudinfra

import (
	"fmt"
	"time"

	"millrace/domain/exact"
)

// DataPipeline is the section of what moves data: functions, tables, queues and
// this product's own task queues and schedules.
type DataPipeline struct {
	Section
	Lambdas    []Lambda    `json:"lambdas,omitempty"`
	DynamoDB   *DynamoDB   `json:"dynamodb,omitempty"`
	DLQ        *DLQ        `json:"dlq,omitempty"`
	Schedulers []Scheduler `json:"schedulers,omitempty"`
	Temporal   *Temporal   `json:"temporal,omitempty"`
	Queues     []Queue     `json:"queues,omitempty"`
}

// Lambda is a function. Counters are those of five minutes, null where
// CloudWatch has none.
type Lambda struct {
	Name        string         `json:"name"`
	Invocations *exact.Decimal `json:"invocations_5m"`
	Errors      *exact.Decimal `json:"errors_5m"`
	Throttles   *exact.Decimal `json:"throttles_5m"`
	DurationP95 *exact.Decimal `json:"duration_p95_ms"`
}

// DynamoDB is a table. Counters are those of five minutes.
type DynamoDB struct {
	TableName      string         `json:"table_name,omitempty"`
	ReadThrottles  *exact.Decimal `json:"read_throttle_events_5m"`
	WriteThrottles *exact.Decimal `json:"write_throttle_events_5m"`
	SystemErrors   *exact.Decimal `json:"system_errors_5m"`
}

// DLQ is a queue of dead letters.
type DLQ struct {
	QueueName        string         `json:"queue_name,omitempty"`
	MessagesVisible  *int64         `json:"messages_visible"`
	OldestAgeSeconds *exact.Decimal `json:"oldest_message_age_seconds"`
}

// Scheduler is a schedule of EventBridge Scheduler.
type Scheduler struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Temporal is what this product's work waits in.
type Temporal struct {
	TaskQueues []TaskQueue `json:"task_queues,omitempty"`
	Schedules  []Schedule  `json:"schedules,omitempty"`
}

// TaskQueue is a Temporal task queue: workflow and activity tasks together, and
// the age of the oldest.
type TaskQueue struct {
	Name         string         `json:"name"`
	BacklogCount int64          `json:"backlog_count"`
	BacklogAge   *exact.Decimal `json:"backlog_age_seconds"`
}

// Schedule is a Temporal schedule. Lateness is by how much its next run is
// overdue, never negative.
type Schedule struct {
	ID              string     `json:"id"`
	LastRunAt       *time.Time `json:"last_run_at"`
	IntervalSeconds int64      `json:"interval_seconds"`
	LatenessSeconds int64      `json:"lateness_seconds"`
	Paused          bool       `json:"paused"`
}

// Queue is an SQS queue of this product.
type Queue struct {
	Name             string `json:"name"`
	MessagesVisible  int64  `json:"messages_visible"`
	MessagesInFlight int64  `json:"messages_in_flight"`
	IsDLQ            bool   `json:"is_dlq"`
}

// Lateness is by how much a schedule's next run is overdue at now, in whole
// seconds: since is when it last ran, or began to be what it is.
func Lateness(since time.Time, interval time.Duration, now time.Time) int64 {
	return max(0, int64(now.Sub(since.Add(interval))/time.Second))
}

const (
	dlqReason      = "dlq_messages_visible>0"
	stateOfEnabled = "ENABLED"
)

func evaluatePipeline(r FastReport, t Thresholds) DataPipeline {
	if !r.Has(pipelineProbes...) {
		return DataPipeline{Section: notConfigured()}
	}
	s := DataPipeline{Lambdas: r.Lambdas, DynamoDB: r.DynamoDB, DLQ: r.DLQ, Schedulers: r.Schedulers, Queues: r.Queues}
	if len(r.TaskQueues)+len(r.Schedules) > 0 {
		s.Temporal = &Temporal{TaskQueues: r.TaskQueues, Schedules: r.Schedules}
	}
	var v verdict
	v.lambdas(s.Lambdas)
	if d := s.DynamoDB; d != nil {
		v.part(
			isCritical(positive(d.SystemErrors), "dynamodb_system_errors_5m>0"),
			warns(positive(d.ReadThrottles), "dynamodb_read_throttle_events_5m>0"),
			warns(positive(d.WriteThrottles), "dynamodb_write_throttle_events_5m>0"),
		)
	}
	if d := s.DLQ; d != nil {
		v.part(warns(d.MessagesVisible != nil && *d.MessagesVisible > 0, dlqReason))
	}
	v.schedulers(s.Schedulers, r.Has(ProbeSchedulers))
	v.temporal(r.TaskQueues, r.Schedules, t)
	for _, q := range s.Queues {
		v.part(warns(q.IsDLQ && q.MessagesVisible > 0, dlqReason))
	}
	s.Section = v.section(r.errors(pipelineProbes...))
	return s
}

func (v *verdict) lambdas(functions []Lambda) {
	for _, f := range functions {
		v.part(warns(positive(f.Errors), "lambda_errors_5m>0:"+f.Name), warns(positive(f.Throttles), "lambda_throttles_5m>0:"+f.Name))
	}
}

// schedulers are unknown when none is found of those that should be there.
func (v *verdict) schedulers(found []Scheduler, wanted bool) {
	if wanted && len(found) == 0 {
		v.states = append(v.states, Unknown)
	}
	for _, s := range found {
		v.part(warns(s.State != stateOfEnabled, "scheduler_disabled:"+s.Name))
	}
}

func (v *verdict) temporal(queues []TaskQueue, schedules []Schedule, t Thresholds) {
	limit := exact.FromInt(int64(t.BacklogAge / time.Second))
	for _, q := range queues {
		v.part(warns(q.BacklogCount > 0 && atLeast(q.BacklogAge, limit), "temporal_backlog_age>=threshold:"+q.Name))
	}
	for _, s := range schedules {
		late := s.IntervalSeconds > 0 && s.LatenessSeconds >= t.ScheduleIntervals*s.IntervalSeconds
		v.part(warns(s.Paused, "schedule_paused:"+s.ID), warns(late && !s.Paused, "schedule_late:"+s.ID))
	}
}

// FactoryFreshness is the section of how fresh the factories' data are. It does
// not count for the overall status: a factory that is switched off for a test
// must not turn the platform red (factory.md, 11.16).
type FactoryFreshness struct {
	Section
	Factories []FactoryState `json:"factories"`
}

func evaluateFreshness(r FastReport) FactoryFreshness {
	if !r.Has(freshnessProbes...) {
		return FactoryFreshness{Section: notConfigured(), Factories: []FactoryState{}}
	}
	s := FactoryFreshness{Factories: r.Factories}
	if s.Factories == nil {
		s.Factories = []FactoryState{}
	}
	var v verdict
	for _, f := range s.Factories {
		if f.PipelineStatus == Unknown {
			v.states = append(v.states, Unknown)
			continue
		}
		reason := fmt.Sprintf("factory_pipeline_status:%s=%s", f.FactoryID, f.PipelineStatus)
		v.part(finding{f.PipelineStatus == Warning || f.PipelineStatus == Critical, f.PipelineStatus, reason})
	}
	s.Section = v.section(r.errors(freshnessProbes...))
	return s
}
