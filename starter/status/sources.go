package status

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"millrace/domain/factory"
	"millrace/platform/queue"
	storage "millrace/storage/factory"
)

// Sources are what a report is gathered from.
type Sources struct {
	Temporal client.Client
	Store    storage.Store
	SQS      queue.API
	// QueueURLs are the queues that are shown; those of dead letters are in DLQs.
	QueueURLs, DLQs []string
	Factories       []string
	// ScheduleIDs are the schedules that should exist.
	ScheduleIDs []string
	// ConsumerID is the workflow id of a consumer, and DrainIDs those of the drains
	// of the other queues.
	ConsumerID func(n int) string
	DrainIDs   []string
	// OldestAge tells how old the oldest message of a queue is, and whether that
	// is known; nil where there is no CloudWatch.
	OldestAge func(ctx context.Context, queueURL string) (age time.Duration, known bool, err error)
	Now       func() time.Time
}

// atOnce bounds the requests to one service side by side.
const atOnce = 8

// each fills a slice of results, one for each name, side by side. A failure
// leaves what is known of that one and all others.
func each[T any](from []string, ask func(string) (T, error)) ([]T, error) {
	results, failures := make([]T, len(from)), make([]error, len(from))
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for i, name := range from {
		asking.Go(func() error {
			results[i], failures[i] = ask(name)
			return nil
		})
	}
	_ = asking.Wait() // failures are kept one by one
	return results, errors.Join(failures...)
}

func (s Sources) schedules(ctx context.Context, now time.Time) ([]Schedule, error) {
	return each(s.ScheduleIDs, func(id string) (Schedule, error) { return s.schedule(ctx, id, now) })
}

func (s Sources) schedule(ctx context.Context, id string, now time.Time) (Schedule, error) {
	description, err := s.Temporal.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return Schedule{ID: id, State: StateMissing}, nil
	case err != nil:
		return Schedule{ID: id, State: StateUnknown}, err
	}
	schedule := Schedule{ID: id, State: StateActive, Missed: description.Info.NumActionsMissedCatchupWindow}
	if next := description.Info.NextActionTimes; len(next) > 0 {
		schedule.NextRunAt = new(next[0].UTC())
	}
	last := description.Info.CreatedAt
	if runs := description.Info.RecentActions; len(runs) > 0 {
		run := runs[len(runs)-1]
		// Not its nominal time: a backfill's lie in the past.
		last = run.ActualTime
		schedule.LastRunAt = new(last.UTC())
		if schedule.LastRunStatus, err = s.runStatus(ctx, run.StartWorkflowResult); err != nil {
			return schedule, err
		}
	}
	if description.Schedule.State.Paused {
		schedule.State, schedule.Note = StatePaused, description.Schedule.State.Note
		return schedule, nil
	}
	schedule.LatenessSeconds = lateness(last, description.Schedule.Spec, now)
	return schedule, nil
}

// lateness is how long the run after the last one is overdue.
func lateness(last time.Time, spec *client.ScheduleSpec, now time.Time) int64 {
	if spec == nil || len(spec.Intervals) == 0 {
		return 0
	}
	return max(0, int64(now.Sub(last.Add(spec.Intervals[0].Every))/time.Second))
}

func (s Sources) runStatus(ctx context.Context, run *client.ScheduleWorkflowExecution) (string, error) {
	if run == nil {
		return "", nil
	}
	description, err := s.Temporal.DescribeWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID)
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return "", nil
	case err != nil:
		return "", err
	}
	return description.Status.String(), nil
}

// maxConsumers bounds the search for consumers.
const maxConsumers = 1000

// workflows are the consumers, as many as there are without a gap, and the drains.
func (s Sources) workflows(ctx context.Context) ([]Workflow, error) {
	var all []Workflow
	for n := range maxConsumers {
		consumer, err := s.workflow(ctx, s.ConsumerID(n))
		if err != nil {
			return all, err
		}
		if n > 0 && consumer.State == StateMissing {
			break
		}
		all = append(all, consumer)
	}
	for _, id := range s.DrainIDs {
		drain, err := s.workflow(ctx, id)
		if all = append(all, drain); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (s Sources) workflow(ctx context.Context, id string) (Workflow, error) {
	description, err := s.Temporal.DescribeWorkflow(ctx, id, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return Workflow{ID: id, State: StateMissing}, nil
	case err != nil:
		return Workflow{ID: id, State: StateUnknown}, err
	}
	info := description.RawResponse.GetWorkflowExecutionInfo()
	workflow := Workflow{ID: id, State: StateActive, StartedAt: instant(info.GetStartTime())}
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		workflow.State = info.GetStatus().String()
	}
	for _, pending := range description.RawResponse.GetPendingActivities() {
		workflow.Activity, workflow.Attempt = pending.GetActivityType().GetName(), pending.GetAttempt()
		workflow.LastHeartbeatAt = instant(pending.GetLastHeartbeatTime())
		workflow.LastFailure = pending.GetLastFailure().GetMessage()
	}
	return workflow, nil
}

func instant(at *timestamppb.Timestamp) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.AsTime())
}

func (s Sources) queues(ctx context.Context) ([]Queue, error) {
	return each(s.QueueURLs, func(url string) (Queue, error) {
		shown := Queue{Name: path.Base(url), IsDLQ: slices.Contains(s.DLQs, url)}
		depth, err := queue.Queue{Client: s.SQS, URL: url}.Depth(ctx)
		if err != nil {
			return shown, err
		}
		shown.MessagesVisible, shown.MessagesInFlight = &depth.Visible, &depth.InFlight
		shown.OldestAgeSeconds, err = s.oldestAge(ctx, url, depth)
		return shown, err
	})
}

// oldestAge is 0 for an empty queue, whatever CloudWatch last heard.
func (s Sources) oldestAge(ctx context.Context, url string, depth queue.Depth) (*int64, error) {
	if depth.Visible+depth.InFlight == 0 {
		return new(int64(0)), nil
	}
	if s.OldestAge == nil {
		return nil, nil
	}
	age, known, err := s.OldestAge(ctx, url)
	if err != nil || !known {
		return nil, err
	}
	return new(int64(age / time.Second)), nil
}

func (s Sources) factories(ctx context.Context, now time.Time) ([]Factory, error) {
	states, err := s.Store.BatchLatest(ctx, s.Factories)
	if err != nil {
		return nil, err
	}
	all := make([]Factory, len(s.Factories))
	for i, id := range s.Factories {
		all[i] = Factory{FactoryID: id}
		if state, found := states[id]; found {
			all[i] = factoryOf(state, now)
		}
	}
	return all, nil
}

func factoryOf(state factory.Latest, now time.Time) Factory {
	pipeline := factory.EvaluatePipeline(state.LastInfraStateAt, state.LastFactoryStateAt, now)
	shown := Factory{
		FactoryID: state.FactoryID, Found: true, UpdatedAt: new(state.UpdatedAt.UTC()), PipelineStatus: pipeline.Status,
		FactoryStateAgeSeconds: pipeline.LatestFactoryStateAgeSeconds, InfraStateAgeSeconds: pipeline.LatestInfraStateAgeSeconds,
	}
	if state.Risk != nil {
		shown.RiskLevel, shown.RiskScore = string(state.Risk.Level), &state.Risk.Score
	}
	return shown
}
