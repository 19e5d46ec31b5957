package observability

import (
	"time"

	"millrace/domain/exact"
)

// Alert is one firing of a rule, as it is kept for review (UOP seed, 7.1).
type Alert struct {
	AlertID   string        `json:"alert_id"`
	AppID     string        `json:"app_id"`
	RuleID    string        `json:"rule_id"`
	Kind      RuleKind      `json:"kind"`
	Level     string        `json:"level"`
	Severity  string        `json:"severity"`
	Timestamp time.Time     `json:"timestamp"`
	Day       string        `json:"day,omitempty"`
	Value     exact.Decimal `json:"value"`
	Threshold exact.Decimal `json:"threshold"`
	Summary   string        `json:"summary"`
	// ResolvedAt is when the rule stopped firing; nil while it fires, and for
	// budgets, which end with their day.
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
}

// NewAlert is the alert of a firing that was first seen at a time. The same
// firing seen at the same time is the same alert.
func NewAlert(r Rule, f Firing, at time.Time) Alert {
	at = at.UTC()
	a := Alert{
		AlertID: derivedID("alert", r.AppID, r.RuleID, f.Key(), Stamp(at)), AppID: r.AppID, RuleID: r.RuleID, Kind: r.Kind,
		Level: f.Level, Severity: f.Severity, Timestamp: at, Value: f.Value, Threshold: f.Threshold, Summary: f.Summary,
	}
	if !f.Day.IsZero() {
		a.Day = f.Day.Format(time.DateOnly)
	}
	return a
}

// FiredSK is the sort key of the note that a rule fires, under APP#{app_id}. It
// keeps one firing from becoming two alerts.
func FiredSK(ruleID string, f Firing) string { return FiredPrefix + ruleID + "#" + f.Key() }

// StateSK is the sort key of the alert machinery's state of a firing, under
// APP#{app_id}: ALERTSTATE#{rule_id}#{severity}, for budgets
// ALERTSTATE#{rule_id}#{80|95|100}#{date}.
func StateSK(ruleID string, f Firing) string { return "ALERTSTATE#" + ruleID + "#" + f.Key() }
