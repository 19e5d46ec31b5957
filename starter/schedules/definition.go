// Package schedules makes the Temporal schedules of the product what they should
// be.
package schedules

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millrace/platform/config"
	"millrace/workflows/artifact"
	"millrace/workflows/cloudinfra"
	"millrace/workflows/factory"
	"millrace/workflows/names"
	"millrace/workflows/observability"
	"millrace/workflows/report"
)

// Definition is what one schedule should be. Its runs are workflows {ID}-{time}.
type Definition struct {
	ID       string
	Workflow string
	Input    any
	Summary  string
	// TaskQueue is scheduled where it is empty.
	TaskQueue string
	// Every and Offset are in UTC: runs are due at whole multiples of Every plus
	// Offset.
	Every, Offset time.Duration
	// Daily, where set, is instead of them the local time of a run each day.
	Daily   *TimeOfDay
	Overlap enums.ScheduleOverlapPolicy
	// CatchUp is how late a run may start after an outage; Temporal's default is a
	// year.
	CatchUp time.Duration
}

// TimeOfDay is a time in an IANA zone, whatever the zone's clocks do. Where they
// skip it there is no run that day, and the next one makes up for it.
type TimeOfDay struct {
	Hour, Minute int
	Zone         string
}

// Definitions are all schedules; reports says when the daily report is made.
func Definitions(reports config.ReportTime) []Definition {
	return append(fixed(), daily(reports))
}

// daily is the schedule of the daily report. Its settings have been checked.
func daily(reports config.ReportTime) Definition {
	hour, minute, _ := reports.Clock()
	return Definition{
		ID: names.ScheduleDailyReport, Workflow: names.DailyReport, TaskQueue: names.QueueReports,
		Input:   report.DailyInput{Timezone: reports.Timezone, ReportType: report.ReportType},
		Summary: "Report on the local day before", Daily: &TimeOfDay{Hour: hour, Minute: minute, Zone: reports.Timezone},
		// Days in an outage are made up for: by runs that start late, and by each run
		// for the day before its own, which buffering one run may drop.
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchUp: report.CatchUp,
	}
}

// fixed are the schedules that no setting changes.
func fixed() []Definition {
	return []Definition{
		{
			ID: names.ScheduleFactoryRefresh, Workflow: names.FactoryRefresh,
			Summary: "Judge every factory again, heard of or not", Every: time.Minute,
			// A sampler speaks of now: one at a time, and nothing to make up for.
			Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, CatchUp: time.Minute,
		},
		{
			ID: names.ScheduleGraphAggregate, Workflow: names.GraphAggregate, Input: factory.AggregateInput{},
			Summary: "Aggregate the five-minute buckets that are over", Every: 5 * time.Minute,
			// Two minutes after a bucket its last messages are there. A run also makes
			// up for what buffering one run dropped.
			Offset: 2 * time.Minute, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchUp: factory.GraphCatchUp,
		},
		{
			ID: names.ScheduleRawReconcile, Workflow: names.RawReconcile, Input: factory.ReconcileRequest{},
			Summary: "Enqueue what was received and never processed", Every: time.Hour,
			// Each run overlaps the one before: one that is missed or skipped costs
			// nothing. The offset keeps it apart from the aggregation.
			Offset: 4 * time.Minute, Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, CatchUp: 10 * time.Minute,
		},
		{
			ID: names.ScheduleCloudInfraFast, Workflow: names.CloudInfraFast, Input: cloudinfra.Input{},
			Summary: "Look at what the product runs on", Every: time.Minute,
			Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, CatchUp: time.Minute,
		},
		{
			ID: names.ScheduleCloudInfraSlow, Workflow: names.CloudInfraSlow, Input: cloudinfra.Input{},
			Summary: "Look at the cluster and at how fresh the objects are", Every: 5 * time.Minute,
			Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, CatchUp: time.Minute,
		},
		{
			ID: names.ScheduleSignalRollup, Workflow: names.SignalRollup, Input: observability.RollupInput{},
			Summary: "Count the signals of applications and judge their alert rules", Every: 5 * time.Minute,
			// A run counts all that is pending, so that one that is dropped costs nothing.
			Offset: time.Minute, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchUp: observability.RollupCatchUp,
		},
		{
			ID: names.ScheduleSignalReconcile, Workflow: names.SignalReconcile, Input: observability.ReconcileInput{},
			Summary: "Check that aggregates are what the signals add up to", Every: 24 * time.Hour,
			// A run checks the day before its own too, for what buffering one run dropped.
			Offset: 2 * time.Hour, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchUp: observability.ReconcileCatchUp,
		},
		{
			ID: names.ScheduleArtifactArchive, Workflow: names.ArtifactArchive, Input: artifact.SweepRequest{},
			Summary: "Archive what lifecycles that ended early did not", Every: 24 * time.Hour,
			// A run does all that is left to do, whenever it comes.
			Offset: 3 * time.Hour, Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, CatchUp: 48 * time.Hour,
		},
	}
}

func (d Definition) spec() client.ScheduleSpec {
	if d.Daily != nil {
		return client.ScheduleSpec{Calendars: []client.ScheduleCalendarSpec{d.Daily.calendar()}, TimeZoneName: d.Daily.Zone}
	}
	return client.ScheduleSpec{
		Intervals: []client.ScheduleIntervalSpec{{Every: d.Every, Offset: d.Offset}}, TimeZoneName: "UTC",
	}
}

func (t TimeOfDay) calendar() client.ScheduleCalendarSpec {
	at := func(n int) []client.ScheduleRange { return []client.ScheduleRange{{Start: n}} }
	return client.ScheduleCalendarSpec{Hour: at(t.Hour), Minute: at(t.Minute), Second: at(0)}
}

func (d Definition) taskQueue() string {
	if d.TaskQueue == "" {
		return names.QueueScheduled
	}
	return d.TaskQueue
}

func (d Definition) action() *client.ScheduleWorkflowAction {
	action := &client.ScheduleWorkflowAction{ID: d.ID, Workflow: d.Workflow, TaskQueue: d.taskQueue(), StaticSummary: d.Summary}
	if d.Input != nil {
		action.Args = []any{d.Input}
	}
	return action
}

func (d Definition) policy() *client.SchedulePolicies {
	return &client.SchedulePolicies{Overlap: d.Overlap, CatchupWindow: d.CatchUp}
}

func (d Definition) options() client.ScheduleOptions {
	return client.ScheduleOptions{
		ID: d.ID, Spec: d.spec(), Action: d.action(), Overlap: d.Overlap, CatchupWindow: d.CatchUp,
		Note: d.Summary, Memo: map[string]any{"purpose": d.Summary},
	}
}

// aspects are the parts of a schedule that are kept as defined, in a form that
// can be compared and shown. Whether it is paused is the operator's business.
func aspects(s client.Schedule) map[string]string {
	all := map[string]string{}
	show := func(name string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(err.Error())
		}
		all[name] = string(text)
	}
	if s.Spec != nil {
		show("calendars", len(s.Spec.Calendars)+len(s.Spec.CronExpressions)+len(s.Spec.Skip))
		intervals := make([]string, len(s.Spec.Intervals))
		for i, interval := range s.Spec.Intervals {
			intervals[i] = interval.Every.String() + "+" + interval.Offset.String()
		}
		show("interval", intervals)
		show("time of day", timesOfDay(s.Spec.Calendars))
		show("zone", s.Spec.TimeZoneName)
		show("jitter", s.Spec.Jitter.String())
		show("bounds", []bool{s.Spec.StartAt.IsZero(), s.Spec.EndAt.IsZero()})
	}
	if s.Policy != nil {
		show("overlap", s.Policy.Overlap.String())
		show("catch-up window", s.Policy.CatchupWindow.String())
		show("pause on failure", s.Policy.PauseOnFailure)
	}
	if action, ok := s.Action.(*client.ScheduleWorkflowAction); ok {
		show("workflow", action.Workflow)
		show("workflow id", action.ID)
		show("task queue", action.TaskQueue)
		show("summary", action.StaticSummary)
		show("input", inputOf(action.Args))
	}
	return all
}

// timesOfDay are the local times of calendars. A calendar of other days than
// every one says so.
func timesOfDay(calendars []client.ScheduleCalendarSpec) []string {
	times := make([]string, len(calendars))
	for i, c := range calendars {
		times[i] = ranges(c.Hour) + ":" + ranges(c.Minute) + ":" + ranges(c.Second)
		if !everyDay(c) {
			times[i] += " on some days"
		}
	}
	return times
}

// everyDay tells whether a calendar is for all days, as Temporal describes one:
// its defaults are filled in.
func everyDay(c client.ScheduleCalendarSpec) bool {
	whole := func(given []client.ScheduleRange, first, last int) bool {
		return len(given) == 0 || (len(given) == 1 && given[0].Start == first && given[0].End == last && given[0].Step <= 1)
	}
	return whole(c.DayOfMonth, 1, 31) && whole(c.Month, 1, 12) && whole(c.DayOfWeek, 0, 6) && len(c.Year) == 0
}

func ranges(given []client.ScheduleRange) string {
	texts := make([]string, len(given))
	for i, r := range given {
		texts[i] = fmt.Sprintf("%02d", r.Start)
		if r.End > r.Start {
			texts[i] += fmt.Sprintf("-%02d/%d", r.End, max(r.Step, 1))
		}
	}
	return strings.Join(texts, ",")
}

// inputOf is the JSON of a workflow's arguments, which a described schedule has
// as encoded payloads.
func inputOf(args []any) []json.RawMessage {
	texts := make([]json.RawMessage, len(args))
	for i, arg := range args {
		if payload, ok := arg.(*commonpb.Payload); ok {
			texts[i] = payload.GetData()
			continue
		}
		text, err := json.Marshal(arg)
		if err != nil {
			text = []byte("null")
		}
		texts[i] = text
	}
	return texts
}
