package observability

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/alert"
	"millrace/domain/exact"
	"millrace/domain/observability"
	storage "millrace/storage/observability"
	workflows "millrace/workflows/observability"
)

var noon = time.Date(2026, 5, 4, 12, 1, 0, 0, time.UTC)

// office is a store with rules and an evaluator.
type office struct {
	t      *testing.T
	store  storage.Store
	raiser *raiser
	n      int
	// since is when rules were made.
	since time.Time
}

func newOffice(t *testing.T) *office {
	return &office{t: t, store: newStore(t), raiser: &raiser{}, since: noon.Add(-time.Hour)}
}

func (o *office) rule(id string, spec observability.Spec) {
	o.t.Helper()
	spec.Name = id
	spec, err := spec.Settled()
	require.NoError(o.t, err)
	_, err = o.store.CreateRule(o.t.Context(), observability.Rule{RuleID: id, AppID: "app-x", Spec: spec, Rev: 1, CreatedAt: o.since})
	require.NoError(o.t, err)
}

// spend counts signals at a time.
func (o *office) spend(at time.Time, count int, cost string, failed bool, duration string) {
	o.t.Helper()
	b := observability.Batch{AppID: "app-x"}
	for range count {
		o.n++
		c, d := exact.MustParse(cost), exact.MustParse(duration)
		s := observability.Signal{
			SignalID: fmt.Sprint("s", o.n), AppID: "app-x", Timestamp: at, ReceivedAt: at, Protocol: observability.AIGP, Type: observability.Request,
			Status: observability.StatusOK, CostUSD: &c, DurationMS: &d,
		}
		if failed {
			s.Status = observability.StatusError
		}
		_, err := o.store.Put(o.t.Context(), s)
		require.NoError(o.t, err)
		b.Signals = append(b.Signals, s.Pending())
	}
	_, err := o.store.Count(o.t.Context(), b)
	require.NoError(o.t, err)
}

func (o *office) judge(at time.Time) workflows.EvaluateResult {
	o.t.Helper()
	result, err := Evaluator{Store: o.store, Raiser: o.raiser, Logger: quiet}.evaluate(o.t.Context(), at, func() {})
	require.NoError(o.t, err)
	return result
}

func (o *office) alerts() []observability.Alert {
	o.t.Helper()
	alerts, _, err := o.store.Alerts(o.t.Context(), "app-x", "", 100, noon)
	require.NoError(o.t, err)
	return alerts
}

func keys(alerts []alert.Alert) []string {
	var all []string
	for _, a := range alerts {
		all = append(all, a.Key().SK+" "+string(a.Severity))
	}
	return all
}

func TestABudgetIsToldOfAt80And95And100PercentOnceADay(t *testing.T) {
	o := newOffice(t)
	o.rule("budget", observability.Spec{Kind: observability.DailyCost, Threshold: exact.FromInt(10)})
	o.spend(noon, 1, "7.999999", false, "1")
	require.Zero(t, o.judge(noon).Firing)
	o.spend(noon, 1, "0.000001", false, "1")
	require.EqualValues(t, 1, o.judge(noon).New)
	require.Equal(t, []string{"ALERTSTATE#budget#80#2026-05-04 warning"}, keys(o.raiser.take()))
	require.Zero(t, o.judge(noon.Add(5*time.Minute)).Raised, "once")
	o.spend(noon, 1, "3", false, "1")
	require.EqualValues(t, 2, o.judge(noon.Add(10*time.Minute)).New)
	require.ElementsMatch(t, []string{"ALERTSTATE#budget#95#2026-05-04 warning", "ALERTSTATE#budget#100#2026-05-04 danger"}, keys(o.raiser.take()))
	require.Len(t, o.alerts(), 3)

	tomorrow := noon.Add(24 * time.Hour)
	require.Zero(t, o.judge(tomorrow).Raised, "a new day, a new budget")
	o.spend(tomorrow, 1, "8", false, "1")
	o.judge(tomorrow)
	require.Equal(t, []string{"ALERTSTATE#budget#80#2026-05-05 warning"}, keys(o.raiser.take()))
}

func TestALateSignalStillOverdrawsYesterday(t *testing.T) {
	o := newOffice(t)
	o.since = noon.Add(-48 * time.Hour)
	o.rule("budget", observability.Spec{Kind: observability.DailyCost, Threshold: exact.FromInt(1)})
	o.spend(noon.Add(-24*time.Hour), 1, "0.96", false, "1")
	require.EqualValues(t, 2, o.judge(noon).New)
	require.Equal(t, "2026-05-03", o.alerts()[0].Day)
}

func TestRulesFireAgainAndAgainButAreOneAlertUntilTheyEnd(t *testing.T) {
	o := newOffice(t)
	o.rule("errors", observability.Spec{Kind: observability.ErrorRate, Threshold: exact.FromInt(10), Severity: observability.Danger})
	o.rule("slow", observability.Spec{Kind: observability.P95Latency, Threshold: exact.FromInt(700), NotifyRecovery: true})
	o.spend(noon, 18, "0", false, "10")
	require.Zero(t, o.judge(noon).Firing, "too few signals")
	o.spend(noon, 2, "0", true, "950")
	require.EqualValues(t, 2, o.judge(noon).New)
	require.ElementsMatch(t, []string{"ALERTSTATE#errors#danger danger", "ALERTSTATE#slow#warning warning"}, keys(o.raiser.take()))
	result := o.judge(noon.Add(5 * time.Minute))
	require.Zero(t, result.New)
	require.EqualValues(t, 2, result.Raised, "the alert machinery decides when it is told of again")
	o.raiser.take()
	require.Len(t, o.alerts(), 2)

	later := noon.Add(2 * time.Hour)
	require.EqualValues(t, 2, o.judge(later).Resolved)
	require.Equal(t, []string{"ALERTSTATE#slow#recovered warning"}, keys(o.raiser.take()), "only one asked for it")
	for _, a := range o.alerts() {
		require.True(t, later.Equal(*a.ResolvedAt))
	}
	o.spend(later, 20, "0", true, "10")
	require.EqualValues(t, 1, o.judge(later.Add(5*time.Minute)).New, "a new firing is a new alert")
	require.Len(t, o.alerts(), 3)
}

func TestSilenceCountsFromTheNewestSignal(t *testing.T) {
	o := newOffice(t)
	o.rule("silent", observability.Spec{Kind: observability.Silence, Threshold: exact.FromInt(90)})
	require.Zero(t, o.judge(noon).Firing, "the rule is an hour old")
	o.spend(noon, 1, "0", false, "1")
	require.Zero(t, o.judge(noon.Add(89*time.Minute)).Firing)
	require.EqualValues(t, 1, o.judge(noon.Add(90*time.Minute)).Firing)
	o.spend(noon.Add(91*time.Minute), 1, "0", false, "1")
	require.EqualValues(t, 1, o.judge(noon.Add(95*time.Minute)).Resolved)
}

func TestAnAlertThatCouldNotBeHandedOnIsHandedOnNextTime(t *testing.T) {
	o := newOffice(t)
	o.rule("budget", observability.Spec{Kind: observability.DailyCost, Threshold: exact.FromInt(1)})
	o.spend(noon, 1, "0.9", false, "1")
	o.raiser.fail = errors.New("no server")
	_, err := Evaluator{Store: o.store, Raiser: o.raiser, Logger: quiet}.evaluate(t.Context(), noon, func() {})
	require.Error(t, err)
	o.raiser.fail = nil
	o.judge(noon.Add(5 * time.Minute))
	raised := o.raiser.take()
	require.Len(t, raised, 1)
	require.True(t, noon.Equal(raised[0].SourceUpdatedAt.Time), "it is the same alert")
	require.Len(t, o.alerts(), 1)
	require.Contains(t, raised[0].Summary, "0.9 USD on 2026-05-04 are 90 % of the daily budget of 1 USD")
}

func TestADisabledRuleEndsWhatItFired(t *testing.T) {
	o := newOffice(t)
	o.rule("silent", observability.Spec{Kind: observability.Silence, Threshold: exact.FromInt(5)})
	require.EqualValues(t, 1, o.judge(noon).New)
	rule, err := o.store.Rule(t.Context(), "app-x", "silent")
	require.NoError(t, err)
	rule.Disabled = true
	_, err = o.store.ChangeRule(t.Context(), "app-x", "silent", 1, rule.Spec, noon)
	require.NoError(t, err)
	require.EqualValues(t, 1, o.judge(noon).Resolved)
}

func TestADeletedRuleEndsWhatItFired(t *testing.T) {
	o := newOffice(t)
	silent := observability.Spec{Kind: observability.Silence, Threshold: exact.FromInt(5)}
	o.rule("silent", silent)
	o.rule("budget", observability.Spec{Kind: observability.DailyCost, Threshold: exact.FromInt(1)})
	o.spend(noon.Add(-time.Hour), 1, "0.9", false, "1")
	require.EqualValues(t, 2, o.judge(noon).New)
	for range 2 { // a retry
		require.NoError(t, o.store.DeleteRule(t.Context(), "app-x", "silent", 1, noon.Add(time.Minute)))
		require.NoError(t, o.store.DeleteRule(t.Context(), "app-x", "budget", 0, noon.Add(time.Minute)))
	}
	for _, a := range o.alerts() {
		require.Equal(t, a.Kind == observability.Silence, a.ResolvedAt != nil)
	}
	notes, err := o.store.FiredNotes(t.Context(), "app-x")
	require.NoError(t, err)
	require.Len(t, notes, 1, "a budget is told of once a day, whoever makes it anew")
	o.rule("silent", silent)
	require.EqualValues(t, 1, o.judge(noon.Add(time.Hour)).New, "a new rule has alerts of its own")
	require.Len(t, o.alerts(), 3)
}

func TestARuleThatWatchesSomethingElseHasAlertsOfItsOwn(t *testing.T) {
	o := newOffice(t)
	o.rule("watch", observability.Spec{Kind: observability.Silence, Threshold: exact.FromInt(5)})
	require.EqualValues(t, 1, o.judge(noon).New)
	spec, err := observability.Spec{Name: "watch", Kind: observability.ErrorRate, Threshold: exact.FromInt(1), MinSignals: 1}.Settled()
	require.NoError(t, err)
	_, err = o.store.ChangeRule(t.Context(), "app-x", "watch", 1, spec, noon.Add(time.Minute))
	require.NoError(t, err)
	o.spend(noon, 1, "0", true, "1")
	require.EqualValues(t, 1, o.judge(noon.Add(2*time.Minute)).New)
	var kinds []observability.RuleKind
	for _, a := range o.alerts() {
		kinds = append(kinds, a.Kind)
		require.Equal(t, a.Kind == observability.Silence, a.ResolvedAt != nil)
	}
	require.Equal(t, []observability.RuleKind{observability.ErrorRate, observability.Silence}, kinds)
}

// picky refuses the alerts of one scope.
type picky struct {
	*raiser
	scope string
}

func (p picky) Signal(ctx context.Context, scope string, d alert.Decision) error {
	if scope == p.scope {
		return errors.New("no")
	}
	return p.raiser.Signal(ctx, scope, d)
}

func TestOneApplicationsErrorDoesNotKeepTheOthersFromBeingJudged(t *testing.T) {
	o := newOffice(t)
	o.rule("silent", observability.Spec{Kind: observability.Silence, Threshold: exact.FromInt(5)})
	rule, err := o.store.Rule(t.Context(), "app-x", "silent")
	require.NoError(t, err)
	for n := range 2 * rulesAtOnce {
		rule.AppID = fmt.Sprintf("app-y%d", n)
		_, err := o.store.CreateRule(t.Context(), rule)
		require.NoError(t, err)
	}
	evaluator := Evaluator{Store: o.store, Raiser: picky{o.raiser, alert.AppScope("app-x")}, Logger: quiet}
	result, err := evaluator.evaluate(t.Context(), noon, func() {})
	require.Error(t, err, "it is tried again")
	require.EqualValues(t, 2*rulesAtOnce+1, result.Rules)
	require.Len(t, o.raiser.take(), 2*rulesAtOnce)
}
