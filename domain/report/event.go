package report

import (
	"time"

	"millrace/domain/exact"
)

// EventType is what kind of trouble an event is.
type EventType string

// The event types of a factory.
const (
	EventRisk     EventType = "risk_degradation"
	EventSensor   EventType = "sensor_threshold_exceeded"
	EventAI       EventType = "ai_score_spike"
	EventNode     EventType = "node_not_ready"
	EventWorkload EventType = "workload_unhealthy"
	EventRestart  EventType = "workload_restart_increase"
)

// Severity ranks events.
type Severity string

// The severities, mildest first.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityDanger  Severity = "danger"
)

// Event is a run of consecutive samples that meet a condition, or several such
// runs close together. Subject is the quantity of a sensor or AI event.
type Event struct {
	Type            EventType     `json:"type"`
	Subject         string        `json:"subject,omitempty"`
	Severity        Severity      `json:"severity"`
	SeverityScore   exact.Decimal `json:"severity_score"`
	TimeRange       string        `json:"time_range"`
	StartUTC        time.Time     `json:"start_utc"`
	EndUTC          time.Time     `json:"end_utc"`
	DurationSeconds exact.Decimal `json:"duration_seconds"`
	Summary         string        `json:"summary"`
	Evidence        Evidence      `json:"evidence"`
}

// Evidence is what an event was seen by: extremes within its span and the ids of
// messages that show it.
type Evidence struct {
	SampleCount     int64          `json:"sample_count"`
	MinScore        *exact.Decimal `json:"min_score,omitempty"`
	TemperatureMax  *exact.Decimal `json:"temperature_max,omitempty"`
	HumidityMax     *exact.Decimal `json:"humidity_max,omitempty"`
	MaxFireScore    *exact.Decimal `json:"max_fire_score,omitempty"`
	MaxFallScore    *exact.Decimal `json:"max_fall_score,omitempty"`
	MaxBendScore    *exact.Decimal `json:"max_bend_score,omitempty"`
	NotReadyCount   int64          `json:"not_ready_count,omitempty"`
	TotalCount      int64          `json:"total_count,omitempty"`
	RestartIncrease int64          `json:"restart_increase,omitempty"`
	TopCauses       []string       `json:"top_causes,omitempty"`
	Nodes           []string       `json:"nodes,omitempty"`
	Workloads       []string       `json:"workloads,omitempty"`
	MessageIDs      []string       `json:"evidence_message_ids"`
}
