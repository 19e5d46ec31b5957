package cloudinfra

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeTaskQueues(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[[]cloudinfra.TaskQueue], error) {
	return gather(c.Settings.WatchedTaskQueues, workflows.SourceOf(cloudinfra.ProbeTaskQueues), c, func(name string) (cloudinfra.TaskQueue, error) {
		return c.backlog(ctx, name)
	})
}

// backlog adds up the workflow and the activity tasks that wait in a task queue.
func (c Collector) backlog(ctx context.Context, name string) (cloudinfra.TaskQueue, error) {
	queue, namespace := cloudinfra.TaskQueue{Name: name}, activity.GetInfo(ctx).Namespace
	var oldest time.Duration
	for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		out, err := c.TaskQueues.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name}, TaskQueueType: kind, ReportStats: true,
		})
		if err != nil {
			return cloudinfra.TaskQueue{}, fmt.Errorf("task queue %s: %w", name, err)
		}
		queue.BacklogCount += out.GetStats().GetApproximateBacklogCount()
		oldest = max(oldest, out.GetStats().GetApproximateBacklogAge().AsDuration())
	}
	age := exact.FromInt(int64(oldest / time.Second))
	queue.BacklogAge = &age
	return queue, nil
}

// maxSchedules bounds the schedules that are watched where all are.
const maxSchedules = 50

// describeWithin bounds one description, which is a query to the schedule's own
// workflow and hangs while that moves to another host: two tries fit into a
// probe.
const describeWithin = 2 * time.Second

// everySchedule asks for all schedules that there are.
const everySchedule = "*"

func (c Collector) probeSchedules(ctx context.Context, req workflows.ProbeRequest) (workflows.Found[[]cloudinfra.Schedule], error) {
	ids, err := c.scheduleIDs(ctx)
	if err != nil {
		return workflows.Found[[]cloudinfra.Schedule]{}, c.fail("temporal:ListSchedules", err)
	}
	return gather(ids, workflows.SourceOf(cloudinfra.ProbeSchedules), c, func(id string) (cloudinfra.Schedule, error) {
		ctx, cancel := context.WithTimeout(ctx, describeWithin)
		defer cancel()
		description, err := c.Schedules.GetHandle(ctx, id).Describe(ctx)
		if err != nil {
			return cloudinfra.Schedule{}, fmt.Errorf("schedule %s: %w", id, err)
		}
		return scheduleOf(id, description, req.AsOf), nil
	})
}

func (c Collector) scheduleIDs(ctx context.Context) ([]string, error) {
	if len(c.Settings.WatchedSchedules) != 1 || c.Settings.WatchedSchedules[0] != everySchedule {
		return c.Settings.WatchedSchedules, nil
	}
	var ids []string
	all, err := c.Schedules.List(ctx, client.ScheduleListOptions{PageSize: maxSchedules})
	if err != nil {
		return nil, err
	}
	for all.HasNext() && len(ids) < maxSchedules {
		entry, err := all.Next()
		if err != nil {
			return nil, err
		}
		ids = append(ids, entry.ID)
	}
	return ids, nil
}

// scheduleOf judges a schedule at now. One that was made, changed or resumed
// since it last ran is only late from then on.
func scheduleOf(id string, d *client.ScheduleDescription, now time.Time) cloudinfra.Schedule {
	interval := intervalOf(d)
	schedule := cloudinfra.Schedule{ID: id, IntervalSeconds: int64(interval / time.Second)}
	if d.Schedule.State != nil {
		schedule.Paused = d.Schedule.State.Paused
	}
	since := d.Info.CreatedAt
	if d.Info.LastUpdateAt.After(since) {
		since = d.Info.LastUpdateAt
	}
	if n := len(d.Info.RecentActions); n > 0 {
		last := d.Info.RecentActions[n-1].ActualTime.UTC()
		schedule.LastRunAt = &last
		if last.After(since) {
			since = last
		}
	}
	if interval > 0 && !schedule.Paused {
		schedule.LatenessSeconds = cloudinfra.Lateness(since, interval, now)
	}
	return schedule
}

// intervalOf is the time between two runs: the shortest interval of the spec, or
// what lies between the next two runs of a calendar; 0 where neither is known.
func intervalOf(d *client.ScheduleDescription) time.Duration {
	var shortest time.Duration
	if d.Schedule.Spec != nil {
		for _, interval := range d.Schedule.Spec.Intervals {
			if shortest == 0 || interval.Every < shortest {
				shortest = interval.Every
			}
		}
	}
	if next := d.Info.NextActionTimes; shortest == 0 && len(next) > 1 {
		shortest = next[1].Sub(next[0])
	}
	return shortest
}
