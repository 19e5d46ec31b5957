package alert

import (
	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Severity is how bad an alert is.
type Severity string

// The severities; there is no notification below a warning.
const (
	Warning Severity = "warning"
	Danger  Severity = "danger"
)

// SourceType says what kind of snapshot or rule raised an alert.
type SourceType string

// The sources of alerts.
const (
	SourceFactory       SourceType = "factory_state_snapshot"
	SourceFast          SourceType = "cloud_infra_fast"
	SourceSlow          SourceType = "cloud_infra_slow"
	SourceApp           SourceType = "app_rule"
	SourceArtifacts     SourceType = "artifacts"
	SourceObservability SourceType = "observability"
)

var scopesOf = map[SourceType]func(scope string) bool{
	SourceFactory:       func(scope string) bool { return factory.CheckFactoryID(scope) == nil },
	SourceFast:          func(scope string) bool { return scope == ScopeCloud },
	SourceSlow:          func(scope string) bool { return scope == ScopeCloud },
	SourceApp:           func(scope string) bool { _, app := AppOf(scope); return app },
	SourceArtifacts:     func(scope string) bool { return scope == ScopeArtifacts },
	SourceObservability: func(scope string) bool { return scope == ScopeObservability },
}

// Third parts of a state key where the status itself is not used: a flipping
// status must not make a new alert of the same condition.
const (
	partSnapshot = "state_snapshot"
	partFast     = "fast"
	partSlow     = "slow"
)

// Alert is one condition that calls for a notification. Its JSON form is the
// payload of the signal to RiskAlert, so it is kept small.
type Alert struct {
	Scope      string     `json:"scope"`
	SourceType SourceType `json:"source_type"`
	Severity   Severity   `json:"severity"`
	// Reason is a slug: lower case letters, digits and underscores.
	Reason string `json:"reason"`
	// Status is the state shown in the message.
	Status string `json:"status"`
	// FingerprintStatus is the third part of the state key; empty takes Status.
	FingerprintStatus string         `json:"fingerprint_status,omitempty"`
	SourceUpdatedAt   factory.Millis `json:"source_updated_at"`
	// SourceKey is the object that shows the whole snapshot.
	SourceKey string         `json:"source_key,omitempty"`
	Score     *exact.Decimal `json:"score,omitempty"`
	Title     string         `json:"title,omitempty"`
	Summary   string         `json:"summary,omitempty"`
	// Because names the rule that raised the alert and what it saw.
	Because string `json:"because"`
	// StateSK replaces the sort key of the state item; applications only, whose
	// state lies beside their rules (ALERTSTATE#...).
	StateSK string `json:"state_sk,omitempty"`
	// CooldownSeconds replaces the configured cooldown; 0 keeps that.
	CooldownSeconds int64   `json:"cooldown_seconds,omitempty"`
	Details         Details `json:"details,omitzero"`
}

// Details are what the message shows beyond the alert itself.
type Details struct {
	Causes []Cause          `json:"causes,omitempty"`
	Gates  []Gate           `json:"gates,omitempty"`
	Errors []CollectorError `json:"errors,omitempty"`
	Facts  []Fact           `json:"facts,omitempty"`
}

// Cause is one reason why a factory's score is low.
type Cause struct {
	Field        string         `json:"field"`
	Reason       string         `json:"reason,omitempty"`
	Value        factory.Value  `json:"value"`
	Contribution *exact.Decimal `json:"contribution,omitempty"`
	Severity     string         `json:"severity,omitempty"`
	Source       string         `json:"source,omitempty"`
}

// Gate is a condition that caps a factory's score. Older snapshots carry
// reason and severity instead of name and level.
type Gate struct {
	Name     string        `json:"name,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Level    string        `json:"level,omitempty"`
	Severity string        `json:"severity,omitempty"`
	Field    string        `json:"field,omitempty"`
	Value    factory.Value `json:"value"`
}

// Topic is the block of a message that a fact belongs to.
type Topic string

// The topics of facts.
const (
	TopicLambda      Topic = "lambda"
	TopicDynamoDB    Topic = "dynamodb"
	TopicALB         Topic = "alb"
	TopicCluster     Topic = "eks_cluster"
	TopicNodegroup   Topic = "eks_nodegroup"
	TopicAutoscaling Topic = "autoscaling"
	TopicSection     Topic = "section"
)

// Fact is one observed value behind an alert.
type Fact struct {
	Topic Topic  `json:"topic"`
	Name  string `json:"name"`
	Value string `json:"value"`
}
