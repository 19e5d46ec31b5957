package report

import "millrace/domain/exact"

// CloudPipeline are the figures of what moves data, by name.
type CloudPipeline struct {
	CloudSection
	Lambdas    map[string]CloudLambda   `json:"lambdas,omitempty"`
	DynamoDB   *CloudTable              `json:"dynamodb,omitempty"`
	Queues     map[string]CloudQueue    `json:"queues,omitempty"`
	Schedulers map[string]cloudMinutes  `json:"disabled_scheduler_minutes,omitempty"`
	TaskQueues map[string]CloudBacklog  `json:"temporal_task_queues,omitempty"`
	Schedules  map[string]CloudSchedule `json:"temporal_schedules,omitempty"`
}

// CloudLambda are the figures of a function.
type CloudLambda struct {
	Invocations CloudCounter `json:"invocations"`
	Errors      CloudCounter `json:"errors"`
	Throttles   CloudCounter `json:"throttles"`
	DurationP95 *CloudStat   `json:"duration_p95_ms"`
}

// CloudTable are the figures of the DynamoDB table.
type CloudTable struct {
	ReadThrottles  CloudCounter `json:"read_throttle_events"`
	WriteThrottles CloudCounter `json:"write_throttle_events"`
	SystemErrors   CloudCounter `json:"system_errors"`
}

// CloudQueue are the figures of a queue.
type CloudQueue struct {
	IsDLQ    bool       `json:"is_dlq"`
	Visible  *CloudStat `json:"messages_visible"`
	InFlight *CloudStat `json:"messages_in_flight,omitempty"`
	// DeadLetters are the minutes in which a queue of dead letters was not empty.
	DeadLetters exact.Decimal `json:"dead_letter_minutes"`
}

// CloudBacklog are the figures of a Temporal task queue.
type CloudBacklog struct {
	Count      *CloudStat    `json:"backlog_count"`
	AgeSeconds *CloudStat    `json:"backlog_age_seconds"`
	Late       exact.Decimal `json:"over_threshold_minutes"`
}

// CloudSchedule are the figures of a Temporal schedule.
type CloudSchedule struct {
	LatenessSeconds *CloudStat    `json:"lateness_seconds"`
	Late            exact.Decimal `json:"late_minutes"`
	Paused          exact.Decimal `json:"paused_minutes"`
}

func (s cloudSight) pipeline() CloudPipeline {
	p := CloudPipeline{CloudSection: s.section(), Queues: s.queues()}
	p.Lambdas = cloudNamed(s.fields.children("lambdas"), "name", func(f cloudFields) CloudLambda {
		l := cloudSight{fields: f, at: s.at, span: s.span, path: s.path + "/lambdas/" + f.name("name"), counted: s.counted}
		return CloudLambda{
			Invocations: l.counter("invocations_5m"), Errors: l.counter("errors_5m"),
			Throttles: l.counter("throttles_5m"), DurationP95: l.stat("duration_p95_ms"),
		}
	})
	if t, ok := s.child("dynamodb"); ok {
		p.DynamoDB = &CloudTable{
			ReadThrottles: t.counter("read_throttle_events_5m"), WriteThrottles: t.counter("write_throttle_events_5m"), SystemErrors: t.counter("system_errors_5m"),
		}
	}
	p.Schedulers = cloudNamed(s.fields.children("schedulers"), "name", func(f cloudFields) cloudMinutes {
		return cloudMinutes{cloudWhen(f.name("state") != "ENABLED", s.span)}
	})
	temporal := s.fields.child("temporal")
	p.TaskQueues = cloudNamed(temporal.children("task_queues"), "name", func(f cloudFields) CloudBacklog {
		return CloudBacklog{
			Count: cloudMeasured(f.number("backlog_count")), AgeSeconds: cloudMeasured(f.number("backlog_age_seconds")),
			Late: cloudWhen(s.says("temporal_backlog_age>=threshold:"+f.name("name")), s.span),
		}
	})
	p.Schedules = cloudNamed(temporal.children("schedules"), "id", func(f cloudFields) CloudSchedule {
		return CloudSchedule{
			LatenessSeconds: cloudMeasured(f.number("lateness_seconds")),
			Late:            cloudWhen(s.says("schedule_late:"+f.name("id")), s.span), Paused: cloudWhen(f.flag("paused"), s.span),
		}
	})
	return p
}

// queues are this product's queues and the queue of dead letters that is watched
// by its name.
func (s cloudSight) queues() map[string]CloudQueue {
	read := func(dlq bool) func(cloudFields) CloudQueue {
		return func(f cloudFields) CloudQueue {
			q := CloudQueue{
				IsDLQ: dlq || f.flag("is_dlq"), Visible: cloudMeasured(f.number("messages_visible")), InFlight: cloudMeasured(f.number("messages_in_flight")),
			}
			q.DeadLetters = cloudWhen(q.IsDLQ && q.Visible.above(), s.span)
			return q
		}
	}
	queues := cloudNamed(s.fields.children("queues"), "name", read(false))
	if dlq := s.fields.child("dlq"); dlq != nil {
		queues = cloudMergeMaps(cloudNamed([]cloudFields{dlq}, "queue_name", read(true)), queues, CloudQueue.merge)
	}
	return queues
}

// cloudNamed reads a list into a map by name; of two with one name the first counts.
func cloudNamed[V any](list []cloudFields, key string, read func(cloudFields) V) map[string]V {
	if len(list) == 0 {
		return nil
	}
	values := make(map[string]V, len(list))
	for _, f := range list {
		name := f.name(key)
		if name == "" {
			name = "unnamed"
		}
		if _, have := values[name]; !have {
			values[name] = read(f)
		}
	}
	return values
}

func (p CloudPipeline) merge(o CloudPipeline) CloudPipeline {
	return CloudPipeline{
		CloudSection: p.CloudSection.merge(o.CloudSection),
		Lambdas:      cloudMergeMaps(p.Lambdas, o.Lambdas, CloudLambda.merge), DynamoDB: p.DynamoDB.merge(o.DynamoDB), Queues: cloudMergeMaps(p.Queues, o.Queues, CloudQueue.merge),
		Schedulers: cloudMergeMaps(p.Schedulers, o.Schedulers, cloudMinutes.merge),
		TaskQueues: cloudMergeMaps(p.TaskQueues, o.TaskQueues, CloudBacklog.merge), Schedules: cloudMergeMaps(p.Schedules, o.Schedules, CloudSchedule.merge),
	}
}

func (l CloudLambda) merge(o CloudLambda) CloudLambda {
	return CloudLambda{
		Invocations: l.Invocations.merge(o.Invocations), Errors: l.Errors.merge(o.Errors),
		Throttles: l.Throttles.merge(o.Throttles), DurationP95: l.DurationP95.merge(o.DurationP95),
	}
}

func (t *CloudTable) merge(o *CloudTable) *CloudTable {
	if t == nil || o == nil {
		return cloudEither(t, o)
	}
	return &CloudTable{
		ReadThrottles: t.ReadThrottles.merge(o.ReadThrottles), WriteThrottles: t.WriteThrottles.merge(o.WriteThrottles),
		SystemErrors: t.SystemErrors.merge(o.SystemErrors),
	}
}

func (q CloudQueue) merge(o CloudQueue) CloudQueue {
	return CloudQueue{
		IsDLQ: q.IsDLQ || o.IsDLQ, Visible: q.Visible.merge(o.Visible), InFlight: q.InFlight.merge(o.InFlight),
		DeadLetters: q.DeadLetters.Add(o.DeadLetters),
	}
}

func (b CloudBacklog) merge(o CloudBacklog) CloudBacklog {
	return CloudBacklog{Count: b.Count.merge(o.Count), AgeSeconds: b.AgeSeconds.merge(o.AgeSeconds), Late: b.Late.Add(o.Late)}
}

func (c CloudSchedule) merge(o CloudSchedule) CloudSchedule {
	return CloudSchedule{LatenessSeconds: c.LatenessSeconds.merge(o.LatenessSeconds), Late: c.Late.Add(o.Late), Paused: c.Paused.Add(o.Paused)}
}
