package observability

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	workflows "millrace/workflows/observability"
)

const (
	// rulesAtOnce bounds the applications whose rules are judged side by side.
	rulesAtOnce = 8
	// reminder is how often a rule that goes on firing is told of again.
	reminder = time.Hour
	// budgetQuiet keeps the notice of a day's budget from being told twice, however
	// late it is seen again.
	budgetQuiet = 7 * 24 * time.Hour
)

// Evaluator judges alert rules.
type Evaluator struct {
	Store   storage.Store
	Raiser  Raiser
	Metrics *Metrics
	Logger  *slog.Logger
}

// EvaluateAlertRules judges all rules as of a time. Repeating it raises nothing
// new.
func (e Evaluator) EvaluateAlertRules(ctx context.Context, req workflows.EvaluateRequest) (workflows.EvaluateResult, error) {
	result, err := e.evaluate(ctx, req.At.UTC(), func() { activity.RecordHeartbeat(ctx) })
	e.Metrics.judged(result)
	return result, failure(err)
}

func (e Evaluator) evaluate(ctx context.Context, at time.Time, beat func()) (workflows.EvaluateResult, error) {
	var lock sync.Mutex
	var sum workflows.EvaluateResult
	var work errgroup.Group // without a shared end: one application's error is not the others'
	work.SetLimit(rulesAtOnce)
	judge := func(rules []observability.Rule) {
		work.Go(func() error {
			result, err := e.app(ctx, rules, at)
			beat()
			lock.Lock()
			defer lock.Unlock()
			sum.Rules += result.Rules
			sum.Firing += result.Firing
			sum.New += result.New
			sum.Raised += result.Raised
			sum.Resolved += result.Resolved
			return err
		})
	}
	var rules []observability.Rule
	for rule, err := range e.Store.AllRules(ctx) {
		if err != nil {
			_ = work.Wait() // the first error is the one to tell
			return sum, err
		}
		if len(rules) > 0 && rules[0].AppID != rule.AppID {
			judge(rules)
			rules = nil
		}
		rules = append(rules, rule)
	}
	if len(rules) > 0 {
		judge(rules)
	}
	return sum, work.Wait()
}

// app judges the rules of one application.
func (e Evaluator) app(ctx context.Context, rules []observability.Rule, at time.Time) (workflows.EvaluateResult, error) {
	result := workflows.EvaluateResult{Rules: int64(len(rules))}
	observed, err := e.observe(ctx, rules, at)
	if err != nil {
		return result, err
	}
	notes, err := e.Store.FiredNotes(ctx, rules[0].AppID)
	if err != nil {
		return result, err
	}
	var raised []alert.Alert
	var fired []storage.Fired
	firing := map[string]bool{}
	for _, rule := range rules {
		for _, f := range rule.Evaluate(observed) {
			result.Firing++
			firing[observability.FiredSK(rule.RuleID, f)] = true
			note, err := e.fire(ctx, rule, f, at)
			if err != nil {
				return result, err
			}
			if note.Raised && !f.Day.IsZero() {
				continue
			}
			if !note.Raised {
				result.New++
				fired = append(fired, note)
			}
			raised = append(raised, alertOf(rule, f, note, at))
		}
	}
	over, err := e.resolve(ctx, rules, notes, firing, at)
	if err != nil {
		return result, err
	}
	result.Resolved = int64(over.count)
	raised = append(raised, over.notices...)
	result.Raised = int64(len(raised))
	return result, e.raise(ctx, rules[0].AppID, raised, fired)
}

// fire notes a firing and writes its alert, once.
func (e Evaluator) fire(ctx context.Context, rule observability.Rule, f observability.Firing, at time.Time) (storage.Fired, error) {
	note, err := e.Store.Claim(ctx, rule, f, at)
	if err != nil || note.Raised {
		return note, err
	}
	return note, e.Store.PutAlert(ctx, observability.NewAlert(rule, f, note.At))
}

// raise hands the alerts on, then notes it: a crash in between hands them on
// again, and the entity knows them.
func (e Evaluator) raise(ctx context.Context, appID string, raised []alert.Alert, fired []storage.Fired) error {
	if len(raised) == 0 {
		return nil
	}
	if err := e.Raiser.Signal(ctx, alert.AppScope(appID), alert.Decision{Alerts: raised}); err != nil {
		return err
	}
	for _, note := range fired {
		if err := e.Store.MarkRaised(ctx, appID, note); err != nil {
			return err
		}
	}
	return nil
}

// observe reads what the rules are judged by: the days and hours that any of
// them needs, and the newest signal where one watches for silence.
func (e Evaluator) observe(ctx context.Context, rules []observability.Rule, at time.Time) (observability.Observed, error) {
	observed := observability.Observed{At: at, Days: map[time.Time]observability.Counters{}, Hours: map[time.Time]observability.Counters{}}
	needed := map[observability.Period]bool{}
	var periods []observability.Period
	need := func(more []observability.Period) {
		for _, p := range more {
			if !needed[p] {
				needed[p] = true
				periods = append(periods, p)
			}
		}
	}
	appID, silence := rules[0].AppID, false
	for _, rule := range rules {
		if rule.Kind == observability.DailyCost {
			need(observability.NeedsDays(at))
		}
		need(rule.NeedsHours(at))
		silence = silence || rule.Kind == observability.Silence
	}
	if len(periods) > 0 {
		all, err := e.Store.CountersOf(ctx, appID, periods)
		if err != nil {
			return observed, err
		}
		for i, p := range periods {
			if p.Granularity == observability.Daily {
				observed.Days[p.Start] = all[i]
				continue
			}
			observed.Hours[p.Start] = all[i]
		}
	}
	var err error
	if silence {
		observed.LastSignal, err = e.Store.LastSignal(ctx, appID)
	}
	return observed, err
}

// alertOf is the alert of a firing as the alert machinery takes it. The notice of
// a budget keeps the time it was first seen, so that it is the same however often
// it is handed on; others speak of now and are told again after an hour.
func alertOf(rule observability.Rule, f observability.Firing, note storage.Fired, at time.Time) alert.Alert {
	a := alert.Alert{
		Scope: alert.AppScope(rule.AppID), SourceType: alert.SourceApp, Severity: alert.Severity(f.Severity), Reason: string(rule.Kind),
		Status: "firing", SourceUpdatedAt: factory.MillisOf(at), SourceKey: observability.AppPK(rule.AppID) + "/" + note.AlertSK,
		Summary: f.Summary, Because: "rule " + rule.RuleID, StateSK: observability.StateSK(rule.RuleID, f),
		CooldownSeconds: int64(reminder / time.Second),
	}
	if !f.Day.IsZero() {
		a.Reason += "_" + f.Level
		a.SourceUpdatedAt, a.CooldownSeconds = factory.MillisOf(note.At), int64(budgetQuiet/time.Second)
	}
	return a
}

// ended are firings that are over and the notices of those whose rule asks for
// them.
type ended struct {
	count   int
	notices []alert.Alert
}

// resolve ends the firings that are over; those of budgets end with their day, by
// themselves. A crash right after it loses the recovery notice: that is no alarm.
func (e Evaluator) resolve(ctx context.Context, rules []observability.Rule, notes []storage.Fired, firing map[string]bool, at time.Time) (ended, error) {
	var over ended
	byID := map[string]observability.Rule{}
	for _, rule := range rules {
		byID[rule.RuleID] = rule
	}
	for _, note := range notes {
		rule, known := byID[note.RuleID()]
		if firing[note.SK] || note.OfBudget() {
			continue
		}
		if err := e.Store.Resolve(ctx, rules[0].AppID, note, at); err != nil {
			return over, err
		}
		over.count++
		if known && rule.NotifyRecovery {
			over.notices = append(over.notices, alert.Alert{
				Scope: alert.AppScope(rule.AppID), SourceType: alert.SourceApp, Severity: alert.Warning, Reason: string(rule.Kind) + "_recovered",
				Status: "recovered", SourceUpdatedAt: factory.MillisOf(at), SourceKey: observability.AppPK(rule.AppID) + "/" + note.AlertSK,
				Summary: rule.Name + ": the condition is over", Because: "rule " + rule.RuleID, StateSK: "ALERTSTATE#" + rule.RuleID + "#recovered",
				CooldownSeconds: 1,
			})
		}
	}
	return over, nil
}
