package observability

import (
	"fmt"
	"strconv"
	"time"

	"millrace/domain/exact"
)

// notices are the shares of a budget, in per cent, that are told once a day each.
var notices = []int64{80, 95, 100}

// Observed is what a rule is judged by, as of a time.
type Observed struct {
	At time.Time
	// Days are the counters of the days that may still change, by their start.
	Days map[time.Time]Counters
	// Hours are the counters of the newest hours, by their start.
	Hours map[time.Time]Counters
	// LastSignal is the event time of the newest signal, zero when there is none.
	LastSignal time.Time
}

// Firing is a rule that fires. Budgets fire for each notice of a day, other rules
// once until they stop firing.
type Firing struct {
	// Level is the notice of a budget, 80, 95 or 100; else the severity.
	Level    string
	Severity string
	// Day is the day of a budget; zero for others.
	Day       time.Time
	Value     exact.Decimal
	Threshold exact.Decimal
	Summary   string
}

// Key is what tells this firing from others of the rule: the last parts of its
// state's key.
func (f Firing) Key() string {
	if f.Day.IsZero() {
		return f.Level
	}
	return f.Level + "#" + f.Day.Format(time.DateOnly)
}

// countingDelay is how long after its receipt a signal may still be counted and
// judged of: a few runs of the rollup.
const countingDelay = time.Hour

// NeedsDays are the days that rules are judged by as of a time, newest first: all
// that a late signal may just have changed.
func NeedsDays(at time.Time) []Period {
	oldest := PeriodOf(Daily, at.Add(-MaxAge-countingDelay))
	days := []Period{PeriodOf(Daily, at)}
	for last := days[0]; last.Start.After(oldest.Start); {
		last = PeriodOf(Daily, last.Start.Add(-time.Hour))
		days = append(days, last)
	}
	return days
}

// NeedsHours are the hours that a rule is judged by as of a time, none for rules
// that look at no hours.
func (r Rule) NeedsHours(at time.Time) []Period {
	var hours []Period
	for i := range r.WindowHours {
		hours = append(hours, PeriodOf(Hourly, at.Add(-time.Duration(i)*time.Hour)))
	}
	return hours
}

// Evaluate is what a rule says of what was observed. A disabled rule never fires.
func (r Rule) Evaluate(o Observed) []Firing {
	if r.Disabled {
		return nil
	}
	switch r.Kind {
	case DailyCost:
		return r.budget(o)
	case ErrorRate:
		return r.errorRate(o)
	case P95Latency:
		return r.latency(o)
	}
	return r.silence(o)
}

func (r Rule) budget(o Observed) []Firing {
	var firings []Firing
	for _, day := range NeedsDays(o.At) {
		if !r.CreatedAt.Before(day.End()) {
			continue // the day was over when the rule was made
		}
		cost := o.Days[day.Start].Of(CountCost)
		for _, notice := range notices {
			if cost.Mul(exact.FromInt(percent)).Less(r.Threshold.Mul(exact.FromInt(notice))) {
				continue
			}
			severity := Warning
			if notice >= percent {
				severity = Danger
			}
			firings = append(firings, Firing{
				Level: strconv.FormatInt(notice, 10), Severity: severity, Day: day.Start, Value: cost, Threshold: r.Threshold,
				Summary: fmt.Sprintf("%s: %s USD on %s are %s %% of the daily budget of %s USD (notice at %d %%)", r.Name, shown(cost),
					day.Start.Format(time.DateOnly), share(cost, r.Threshold), r.Threshold, notice),
			})
		}
	}
	return firings
}

// shownPlaces is the precision of numbers in messages.
const shownPlaces = 4

func shown(d exact.Decimal) string { return d.Round(shownPlaces).String() }

func share(part, whole exact.Decimal) string {
	return part.Mul(exact.FromInt(percent)).Quo(whole, 1).String()
}

func (r Rule) window(o Observed) Counters {
	sum := Counters{}
	for _, hour := range r.NeedsHours(o.At) {
		sum.Add(o.Hours[hour.Start])
	}
	return sum
}

func (r Rule) errorRate(o Observed) []Firing {
	sum := r.window(o)
	signals, errors := sum.Of(CountSignals), sum.Of(CountErrors)
	if signals.Less(exact.FromInt(r.MinSignals)) || errors.Mul(exact.FromInt(percent)).Less(r.Threshold.Mul(signals)) {
		return nil
	}
	rate := errors.Mul(exact.FromInt(percent)).Quo(signals, shownPlaces)
	return r.fires(rate, fmt.Sprintf("%s: %s of %s signals failed in %d h (%s %%, threshold %s %%)", r.Name, errors, signals, r.WindowHours, rate, r.Threshold))
}

func (r Rule) latency(o Observed) []Firing {
	sum := r.window(o)
	p95 := sum.Percentile(95)
	if p95 == nil || sum.Of(CountDurations).Less(exact.FromInt(r.MinSignals)) || p95.Value.Less(r.Threshold) {
		return nil
	}
	return r.fires(p95.Value, fmt.Sprintf("%s: p95 latency is about %s ms in %d h (threshold %s ms)", r.Name, p95.Value, r.WindowHours, r.Threshold))
}

func (r Rule) silence(o Observed) []Firing {
	last := o.LastSignal
	if last.Before(r.CreatedAt) {
		last = r.CreatedAt
	}
	minutes := int64(o.At.Sub(last) / time.Minute)
	if exact.FromInt(minutes).Less(r.Threshold) {
		return nil
	}
	return r.fires(exact.FromInt(minutes), fmt.Sprintf("%s: no signal for %d min (threshold %s min)", r.Name, minutes, r.Threshold))
}

func (r Rule) fires(value exact.Decimal, summary string) []Firing {
	return []Firing{{Level: r.Severity, Severity: r.Severity, Value: value, Threshold: r.Threshold, Summary: summary}}
}
