package observability

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func rule(kind RuleKind, threshold int64) Rule {
	spec, err := Spec{Name: "r", Kind: kind, Threshold: exact.FromInt(threshold)}.Settled()
	if err != nil {
		panic(err)
	}
	return Rule{RuleID: "r", AppID: "a", Spec: spec, CreatedAt: noon.Add(-24 * time.Hour)}
}

func levels(firings []Firing) []string {
	all := []string{}
	for _, f := range firings {
		all = append(all, f.Key())
	}
	return all
}

func TestBudgetsFireAtTheirNotices(t *testing.T) {
	day := PeriodOf(Daily, noon).Start
	for cost, want := range map[string][]string{
		"7.999999999999999999999999999999": {}, "8": {"80#2026-05-04"}, "9.5": {"80#2026-05-04", "95#2026-05-04"},
		"10": {"80#2026-05-04", "95#2026-05-04", "100#2026-05-04"},
	} {
		firings := rule(DailyCost, 10).Evaluate(Observed{At: noon, Days: map[time.Time]Counters{day: {CountCost: exact.MustParse(cost)}}})
		require.Equal(t, want, levels(firings), cost)
		for _, f := range firings {
			require.Equal(t, f.Level == "100", f.Severity == Danger)
		}
	}
}

func TestBudgetsLookAtEveryDayThatALateSignalMayChange(t *testing.T) {
	early := time.Date(2026, 5, 4, 0, 4, 0, 0, time.UTC)
	var days []string
	for _, day := range NeedsDays(early) {
		days = append(days, day.Start.Format(time.DateOnly))
	}
	require.Equal(t, []string{"2026-05-04", "2026-05-03", "2026-05-02", "2026-05-01"}, days, "received at 23:59, 48 hours late")
	require.Len(t, NeedsDays(noon), 3)

	r := rule(DailyCost, 10)
	observed := Observed{At: noon, Days: map[time.Time]Counters{PeriodOf(Daily, noon.AddDate(0, 0, -2)).Start: {CountCost: exact.MustParse("8")}}}
	r.CreatedAt = noon.AddDate(0, 0, -2)
	require.Equal(t, []string{"80#2026-05-02"}, levels(r.Evaluate(observed)))
	r.CreatedAt = noon.AddDate(0, 0, -1)
	require.Empty(t, r.Evaluate(observed), "the day was over before there was a budget")
}

func TestErrorRatesLookAtTheirWindow(t *testing.T) {
	r := rule(ErrorRate, 10)
	r.WindowHours = 2
	hour := PeriodOf(Hourly, noon).Start
	observed := func(back int, signals, errors int64) Observed {
		return Observed{At: noon, Hours: map[time.Time]Counters{hour.Add(-time.Duration(back) * time.Hour): {CountSignals: exact.FromInt(signals), CountErrors: exact.FromInt(errors)}}}
	}
	require.Len(t, r.Evaluate(observed(1, 20, 2)), 1)
	require.Empty(t, r.Evaluate(observed(2, 20, 2)), "outside of the window")
	require.Empty(t, r.Evaluate(observed(0, 21, 2)), "below")
	require.Empty(t, r.Evaluate(observed(0, 19, 19)), "too few")
	require.Empty(t, r.Evaluate(Observed{At: noon}))
	r.Disabled = true
	require.Empty(t, r.Evaluate(observed(1, 20, 20)))
}

func TestSilenceIsMeasuredFromTheNewestSignalOrTheRule(t *testing.T) {
	r := rule(Silence, 60)
	require.Empty(t, r.Evaluate(Observed{At: noon, LastSignal: noon.Add(-59*time.Minute - 59*time.Second)}))
	require.Len(t, r.Evaluate(Observed{At: noon, LastSignal: noon.Add(-time.Hour)}), 1)
	require.Len(t, r.Evaluate(Observed{At: noon}), 1, "never a signal")
	r.CreatedAt = noon.Add(-time.Minute)
	require.Empty(t, r.Evaluate(Observed{At: noon}), "the rule is new")
	require.Empty(t, r.Evaluate(Observed{At: noon, LastSignal: noon.Add(time.Minute)}), "a clock that is ahead")
}

func TestLatencyFiresByItsPercentile(t *testing.T) {
	c := Counters{}
	for range 20 {
		c.Count(Pending{DurationMS: decimal("700")})
	}
	observed := Observed{At: noon, Hours: map[time.Time]Counters{PeriodOf(Hourly, noon).Start: c}}
	require.Len(t, rule(P95Latency, 975).Evaluate(observed), 1)
	require.Empty(t, rule(P95Latency, 976).Evaluate(observed))
}

func TestRulesAreRefusedByField(t *testing.T) {
	base := Spec{Name: "r", Kind: DailyCost, Threshold: exact.FromInt(1)}
	for field, change := range map[string]func(*Spec){
		"name": func(s *Spec) { s.Name = "" }, "kind": func(s *Spec) { s.Kind = "x" }, "severity": func(s *Spec) { s.Severity = "bad" },
		"threshold":    func(s *Spec) { s.Threshold = exact.FromInt(0) },
		"window_hours": func(s *Spec) { s.Kind, s.WindowHours = ErrorRate, 25 },
		"min_signals":  func(s *Spec) { s.Kind, s.MinSignals = P95Latency, -1 },
	} {
		spec := base
		change(&spec)
		_, err := spec.Settled()
		var broken *InvalidError
		require.ErrorAs(t, err, &broken, field)
		require.Equal(t, field, broken.Field)
	}
	above := Spec{Name: "r", Kind: P95Latency, Threshold: exact.FromInt(100_000)}
	_, err := above.Settled()
	require.NoError(t, err)
	above.Threshold = exact.FromInt(100_001)
	_, err = above.Settled()
	require.ErrorContains(t, err, "threshold", "no percentile of the histogram is above its greatest bound")
	base.Threshold = exact.MustParse("0.0000001")
	_, err = base.Settled()
	require.Error(t, err)
	require.NoError(t, CheckRuleID("a-1"))
	for _, id := range []string{"", "-a", "A", "a#b"} {
		require.Error(t, CheckRuleID(id))
	}
}

func TestStateKeysAreThoseOfTheDesign(t *testing.T) {
	require.Equal(t, "ALERTSTATE#r#80#2026-05-04", StateSK("r", Firing{Level: "80", Day: PeriodOf(Daily, noon).Start}))
	require.Equal(t, "ALERTSTATE#r#danger", StateSK("r", Firing{Level: "danger"}))
	a, b := NewAlert(rule(Silence, 5), Firing{Level: "warning"}, noon), NewAlert(rule(Silence, 5), Firing{Level: "warning"}, noon)
	require.Equal(t, a.AlertID, b.AlertID)
}

func TestEverySignalIsInTheTreeOnceWhateverItsParents(t *testing.T) {
	var signals []Signal
	add := func(id, parent string, second int) {
		s := valid()
		s.SignalID, s.ParentSignalID, s.Timestamp = id, parent, noon.Add(time.Duration(second)*time.Second)
		signals = append(signals, s)
	}
	add("x", "y", 3)
	add("y", "x", 2) // a circle
	add("self", "self", 1)
	add("root", "", 0)
	add("child", "root", 5)
	other := valid()
	other.AppID, other.SignalID, other.ParentSignalID, other.Timestamp = "other", "child", "root", noon.Add(4*time.Second)
	signals = append(signals, other)
	var got []string
	for _, n := range Tree(signals) {
		got = append(got, fmt.Sprintf("%d %s/%s", n.Depth, n.AppID, n.SignalID))
	}
	require.Equal(t, []string{"0 app-x/root", "1 other/child", "1 app-x/child", "0 app-x/self", "0 app-x/y", "1 app-x/x"}, got)
	deep := make([]Signal, 20_000)
	for i := range deep {
		deep[i] = valid()
		deep[i].SignalID, deep[i].ParentSignalID, deep[i].Timestamp = fmt.Sprint(i), fmt.Sprint(i-1), noon.Add(time.Duration(i))
	}
	require.Equal(t, 19_999, Tree(deep)[19_999].Depth)
	require.Empty(t, Tree(nil))
}
