package observability

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	workflows "millrace/workflows/observability"
)

const (
	// checksAtOnce bounds the applications that are checked side by side.
	checksAtOnce = 4
	// maxCheckAge is how long all raw signals of a day are there.
	maxCheckAge = observability.SignalTTL - 24*time.Hour
	// maxDrifts bounds the drifts that a result shows.
	maxDrifts = 20
)

// Reconciler checks that aggregates are what the raw signals add up to.
type Reconciler struct {
	Store   storage.Store
	Raiser  Raiser
	Metrics *Metrics
	Now     func() time.Time
	Logger  *slog.Logger
}

// ReconcileSignals checks one day of all applications and raises an alert where
// something drifted or is still not counted. It changes nothing, so that it may
// be repeated.
func (r Reconciler) ReconcileSignals(ctx context.Context, req workflows.DayRequest) (workflows.DayResult, error) {
	start, err := time.Parse(time.DateOnly, req.Day)
	if err != nil {
		return workflows.DayResult{}, temporal.NewNonRetryableApplicationError("day: must be a day such as 2026-05-04", "InvalidInput", nil)
	}
	if r.Now().Sub(start) > maxCheckAge {
		return workflows.DayResult{}, temporal.NewNonRetryableApplicationError("day: must be one of the last 29: older signals have expired", "InvalidInput", nil)
	}
	result, err := r.check(ctx, observability.PeriodOf(observability.Daily, start), func() { activity.RecordHeartbeat(ctx) })
	return result, failure(err)
}

func (r Reconciler) check(ctx context.Context, day observability.Period, beat func()) (workflows.DayResult, error) {
	apps, err := r.apps(ctx, day)
	if err != nil {
		return workflows.DayResult{}, err
	}
	var lock sync.Mutex
	result := workflows.DayResult{Day: day.Start.Format(time.DateOnly), Apps: int64(len(apps))}
	byComparison := map[string]int64{}
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(checksAtOnce)
	for _, app := range apps {
		work.Go(func() error {
			raw, drifts, err := r.app(workCtx, app, day, beat)
			beat()
			lock.Lock()
			defer lock.Unlock()
			result.Signals += raw.Signals
			result.Pending += raw.Pending
			result.Drifted += int64(len(drifts))
			for _, drift := range drifts {
				byComparison[drift.Comparison]++
				if len(result.Drifts) < maxDrifts {
					result.Drifts = append(result.Drifts, drift)
				}
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return result, err
	}
	r.Metrics.checked(result, byComparison)
	return result, r.report(ctx, result)
}

// apps are those with an aggregate of the day or of its month: a day that lost
// all of its aggregates is found by the latter.
func (r Reconciler) apps(ctx context.Context, day observability.Period) ([]string, error) {
	found := map[string]bool{}
	for _, period := range []observability.Period{day, observability.PeriodOf(observability.Monthly, day.Start)} {
		for app, err := range r.Store.AppsOn(ctx, period) {
			if err != nil {
				return nil, err
			}
			found[app] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// app compares the raw signals of a day with its aggregate, the day with its
// hours, and the month with its days. Aggregates that are compared with each
// other are read as of one moment. Rollups may go on meanwhile: a comparison that
// fails is made once more.
func (r Reconciler) app(ctx context.Context, app string, day observability.Period, beat func()) (storage.RawDay, []workflows.AppDrift, error) {
	raw, drifts, err := r.compare(ctx, app, day, beat)
	if err != nil || len(drifts) == 0 {
		return raw, drifts, err
	}
	return r.compare(ctx, app, day, beat)
}

func (r Reconciler) compare(ctx context.Context, app string, day observability.Period, beat func()) (storage.RawDay, []workflows.AppDrift, error) {
	raw, err := r.Store.SumDay(ctx, app, day, beat)
	if err != nil {
		return raw, nil, err
	}
	daily, hours, err := r.parts(ctx, app, day, observability.Hourly)
	if err != nil {
		return raw, nil, err
	}
	monthly, days, err := r.parts(ctx, app, observability.PeriodOf(observability.Monthly, day.Start), observability.Daily)
	if err != nil {
		return raw, nil, err
	}
	var all []workflows.AppDrift
	for _, c := range []struct {
		comparison string
		have, want observability.Counters
	}{
		{workflows.RawAgainstDay, daily, raw.Counted},
		{workflows.HoursAgainstDay, daily, hours},
		{workflows.DaysAgainstMon, monthly, days},
	} {
		for _, drift := range c.have.Drifts(c.want) {
			all = append(all, workflows.AppDrift{AppID: app, Comparison: c.comparison, Drift: drift})
		}
	}
	return raw, all, nil
}

// parts are the counters of a period and the sum of those it consists of.
func (r Reconciler) parts(ctx context.Context, app string, whole observability.Period, g observability.Granularity) (have, sum observability.Counters, err error) {
	all, err := r.Store.CountersOf(ctx, app, append([]observability.Period{whole}, whole.Within(g)...))
	if err != nil {
		return nil, nil, err
	}
	sum = observability.Counters{}
	for _, part := range all[1:] {
		sum.Add(part)
	}
	return all[0], sum, nil
}

func (r Reconciler) report(ctx context.Context, result workflows.DayResult) error {
	if result.Drifted == 0 && result.Pending == 0 {
		return nil
	}
	summary := fmt.Sprintf("%s: %d counters of %d applications are not what the raw signals add up to, %d signals are not counted", result.Day, result.Drifted, result.Apps, result.Pending)
	r.Logger.ErrorContext(ctx, "signals and aggregates disagree", "day", result.Day, "drifted", result.Drifted, "pending", result.Pending)
	raised := alert.Alert{
		Scope: alert.ScopeObservability, SourceType: alert.SourceObservability, Severity: alert.Danger, Reason: "aggregate_drift",
		Status: "drift", FingerprintStatus: result.Day, SourceUpdatedAt: factory.MillisOf(r.Now()), Summary: summary, Because: "SignalReconcile",
	}
	for _, drift := range result.Drifts {
		raised.Details.Facts = append(raised.Details.Facts, alert.Fact{
			Topic: alert.TopicSection, Name: fmt.Sprintf("%s %s", drift.AppID, drift.Counter),
			Value: fmt.Sprintf("%s: %s instead of %s", drift.Comparison, drift.Have, drift.Want),
		})
	}
	return r.Raiser.Signal(ctx, alert.ScopeObservability, alert.Decision{Alerts: []alert.Alert{raised}})
}
