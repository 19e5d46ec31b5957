package report

import (
	"context"
	"slices"
	"time"

	"millrace/domain/report"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Planner works out what a run has to do from the settings.
type Planner struct {
	Store    storage.Store
	Settings report.Settings
	// Writing is how long after the context was stored a model may write.
	Writing time.Duration
	Now     func() time.Time
}

// maxTargets bounds the targets of one run.
const maxTargets = 500

// PlanReport names the day, its hours and the targets of a run.
func (p Planner) PlanReport(ctx context.Context, req workflows.PlanRequest) (workflows.Plan, error) {
	defer beating(ctx)()
	zone := req.Timezone
	if zone == "" {
		zone = p.Settings.Timezone
	}
	day, err := dayOf(req.Date, req.At, zone)
	if err != nil {
		return workflows.Plan{}, failure(err)
	}
	if day.Window().Start.After(p.Now()) {
		return workflows.Plan{}, failure(&report.InvalidError{Field: "report_date", Rule: "must have begun in the timezone"})
	}
	previous, err := report.PreviousDay(day.Window().Start, zone)
	if err != nil {
		return workflows.Plan{}, failure(err)
	}
	plan := workflows.Plan{
		Date: day.Date(), Timezone: day.Timezone(), Previous: previous.Date(), Targets: []string{}, WritingSeconds: int64(p.Writing / time.Second),
	}
	for _, hour := range day.Hours() {
		plan.Hours = append(plan.Hours, hour.Label)
	}
	if len(req.Targets) > maxTargets {
		return workflows.Plan{}, failure(&report.InvalidError{Field: "targets", Rule: "must be at most 500"})
	}
	p.addTargets(&plan, req.Targets)
	if req.MakeUp {
		plan.Missed, err = p.missed(ctx, previous.Date())
	}
	return plan, failure(err)
}

func dayOf(date string, at time.Time, zone string) (report.Day, error) {
	if date != "" {
		return report.ParseDay(date, zone)
	}
	return report.PreviousDay(at, zone)
}

// all are the targets of the settings.
func (p Planner) all() []string {
	return append(slices.Clone(p.Settings.FactoryIDs), report.CloudTarget)
}

func (p Planner) addTargets(plan *workflows.Plan, asked []string) {
	all := p.all()
	if len(asked) == 0 {
		asked = all
	}
	for _, target := range asked {
		switch {
		case !slices.Contains(all, target):
			if !slices.Contains(plan.Unknown, target) {
				plan.Unknown = append(plan.Unknown, target)
			}
		case !slices.Contains(plan.Targets, target):
			plan.Targets = append(plan.Targets, target)
		}
	}
}

// missed are the targets without a report on a day.
func (p Planner) missed(ctx context.Context, date string) ([]workflows.TargetDate, error) {
	entries, err := p.Store.Day(ctx, date)
	if err != nil {
		return nil, err
	}
	var missed []workflows.TargetDate
	for _, target := range p.all() {
		written := slices.ContainsFunc(entries, func(e storage.Entry) bool { return e.Target == target && e.Report && e.Metadata })
		if !written {
			missed = append(missed, workflows.TargetDate{Target: target, Date: date})
		}
	}
	return missed, nil
}
