package observability

import (
	"regexp"
	"time"
	"unicode/utf8"

	"millrace/domain/exact"
)

// RuleKind is what an alert rule watches.
type RuleKind string

// The kinds of rules.
const (
	// DailyCost watches a day's cost, UTC, against a budget.
	DailyCost RuleKind = "daily_cost"
	// ErrorRate watches the share of failed signals in the newest hours.
	ErrorRate RuleKind = "error_rate"
	// P95Latency watches the 95th percentile of durations in the newest hours.
	P95Latency RuleKind = "p95_latency"
	// Silence watches for the absence of signals.
	Silence RuleKind = "silence"
)

// Severities of rules.
const (
	Warning = "warning"
	Danger  = "danger"
)

// Spec is what an operator says of a rule.
type Spec struct {
	Name string   `json:"name"`
	Kind RuleKind `json:"kind"`
	// Threshold is a budget in US dollars (daily_cost), a percentage (error_rate),
	// milliseconds (p95_latency) or minutes (silence).
	Threshold exact.Decimal `json:"threshold"`
	// WindowHours is how many hours error_rate and p95_latency look at, the current
	// one included.
	WindowHours int64 `json:"window_hours,omitempty"`
	// MinSignals is how many signals an error rate or a latency takes.
	MinSignals int64 `json:"min_signals,omitempty"`
	// Severity is warning or danger. Budgets have their own: danger from 100 % on.
	Severity       string `json:"severity,omitempty"`
	Disabled       bool   `json:"disabled,omitempty"`
	NotifyRecovery bool   `json:"notify_recovery,omitempty"`
}

// Rule is an alert rule of an application. Rev grows with every change.
type Rule struct {
	RuleID string `json:"rule_id"`
	AppID  string `json:"app_id"`
	Spec
	Rev       int64     `json:"rev"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// MaxRules is the greatest number of rules of one application.
const MaxRules = 50

const (
	maxWindowHours  = 24
	maxMinSignals   = 1_000_000
	defaultSignals  = 20
	thresholdPlaces = 6
	maxSilence      = 30 * 24 * 60
	minSilence      = 5
	maxBudget       = 1_000_000_000
	percent         = 100
)

var rulePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// CheckRuleID refuses what names no rule: [a-z0-9][a-z0-9-]{0,63}.
func CheckRuleID(id string) error {
	if !rulePattern.MatchString(id) {
		return invalid("rule_id", "must be 1 to 64 characters of a-z, 0-9 and dash, and not begin with a dash")
	}
	return nil
}

// Settled is the specification with its defaults, or an *InvalidError.
func (s Spec) Settled() (Spec, error) {
	if s.Severity == "" {
		s.Severity = Warning
	}
	rate := s.Kind == ErrorRate || s.Kind == P95Latency
	if rate && s.WindowHours == 0 {
		s.WindowHours = 1
	}
	if rate && s.MinSignals == 0 {
		s.MinSignals = defaultSignals
	}
	return s, s.check(rate)
}

func (s Spec) check(rate bool) error {
	switch {
	case s.Name == "" || utf8.RuneCountInString(s.Name) > maxText || !utf8.ValidString(s.Name):
		return invalid("name", "must have 1 to 256 characters")
	case s.Severity != Warning && s.Severity != Danger:
		return invalid("severity", "must be warning or danger")
	case !rate && (s.WindowHours != 0 || s.MinSignals != 0):
		return invalid("window_hours", "goes with error_rate and p95_latency, and so does min_signals")
	case rate && (s.WindowHours < 1 || s.WindowHours > maxWindowHours):
		return invalid("window_hours", "must be 1 to 24")
	case rate && (s.MinSignals < 1 || s.MinSignals > maxMinSignals):
		return invalid("min_signals", "must be 1 to 1000000")
	}
	return s.checkThreshold()
}

func (s Spec) checkThreshold() error {
	limits := map[RuleKind]struct {
		low, high int64
		rule      string
	}{
		DailyCost:  {0, maxBudget, "must be more than 0 and at most 1000000000 dollars"},
		ErrorRate:  {0, percent, "must be more than 0 and at most 100 per cent"},
		P95Latency: {0, bounds[len(bounds)-1], "must be more than 0 and at most 100000 ms, the histogram's greatest bound"},
		Silence:    {minSilence, maxSilence, "must be 5 to 43200 minutes"},
	}
	limit, known := limits[s.Kind]
	switch {
	case !known:
		return invalid("kind", "must be daily_cost, error_rate, p95_latency or silence")
	case s.Threshold.Sign() <= 0 || s.Threshold.Less(exact.FromInt(limit.low)) || exact.FromInt(limit.high).Less(s.Threshold):
		return invalid("threshold", limit.rule)
	case !s.Threshold.Round(thresholdPlaces).Equal(s.Threshold):
		return invalid("threshold", "must have at most 6 decimal places")
	}
	return nil
}
