package report

import (
	"context"
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
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
		plan.Missed, err = p.missed(ctx, previous)
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

// missed are the targets without a report on a day that should have one: those
// with objects on it, and those that were reported on before. What was not there
// yet is owed nothing.
func (p Planner) missed(ctx context.Context, day report.Day) ([]workflows.TargetDate, error) {
	date := day.Date()
	entries, err := p.Store.Day(ctx, date)
	if err != nil {
		return nil, err
	}
	var missed []workflows.TargetDate
	for _, target := range p.all() {
		written := slices.ContainsFunc(entries, func(e storage.Entry) bool { return e.Target == target && e.Report && e.Metadata })
		if written {
			continue
		}
		owed := slices.ContainsFunc(entries, func(e storage.Entry) bool { return e.Target == target }) // begun
		if !owed {
			if owed, err = p.owed(ctx, day, target); err != nil {
				return nil, err
			}
		}
		if owed {
			missed = append(missed, workflows.TargetDate{Target: target, Date: date})
		}
	}
	return missed, nil
}

// owed tells whether a target has objects on a day, or a report on one of the days
// before.
func (p Planner) owed(ctx context.Context, day report.Day, target string) (bool, error) {
	has, err := p.hasObjects(ctx, day, target)
	if has || err != nil {
		return has, err
	}
	for range lookBack {
		before, err := report.PreviousDay(day.Window().Start, day.Timezone())
		if err != nil {
			return false, err
		}
		day = before
		reported, err := p.Store.Reported(ctx, day.Date(), target)
		if reported || err != nil {
			return reported, err
		}
	}
	return false, nil
}

// lookBack is how many days are looked at for an earlier report: more than an
// outage that nobody notices.
const lookBack = 7

// hasObjects tells whether any object lies in the UTC hours of a day: keys are in
// the order of time, so that one listing for each dataset tells.
func (p Planner) hasObjects(ctx context.Context, day report.Day, target string) (bool, error) {
	folder, datasets := target, p.Settings.Datasets
	if target == report.CloudTarget {
		folder, datasets = cloudFolder, []string{string(cloudinfra.TrackFast), string(cloudinfra.TrackSlow)}
	}
	window := day.Window()
	for _, dataset := range datasets {
		all := "processed/" + folder + "/" + dataset + "/"
		end := factory.ProcessedPrefix(folder, dataset, window.End.Add(time.Hour-1))
		for object, err := range p.Store.Bucket.List(ctx, all, factory.ProcessedPrefix(folder, dataset, window.Start)) {
			if err != nil {
				return false, err
			}
			if object.Key < end {
				return true, nil
			}
			break
		}
	}
	return false, nil
}
