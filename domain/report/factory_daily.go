package report

import (
	"time"

	"millrace/domain/exact"
)

// FactoryDaily is a factory's day, stored as factory-daily-summary.json
// (factory.md, 7.5). Thresholds, Series and Gaps are beyond the original shape:
// they let the document be made of the stored day alone.
type FactoryDaily struct {
	SchemaVersion string `json:"schema_version"`
	SummaryType   string `json:"summary_type"`
	FactoryID     string `json:"factory_id"`
	ReportDate    string `json:"report_date"`
	Timezone      string `json:"timezone"`
	// Status is success, or insufficient_data when every hour is empty.
	Status           string            `json:"status"`
	OverallStatus    Verdict           `json:"overall_status"`
	CollectionStatus CollectionStatus  `json:"collection_status"`
	Window           DayWindow         `json:"window"`
	FactoryProfile   Profile           `json:"factory_profile"`
	DataQuality      DailyQuality      `json:"data_quality"`
	Risk             RiskBlock         `json:"risk"`
	FactoryState     FactoryStateBlock `json:"factory_state"`
	Infra            InfraBlock        `json:"infra"`
	Pipeline         DailyPipeline     `json:"pipeline"`
	Snapshot         *FinalState       `json:"snapshot"`
	// Events are the day's, worst first.
	Events            []Event            `json:"events"`
	EventCount        int64              `json:"event_count"`
	RecommendedChecks []RecommendedCheck `json:"recommended_checks"`
	DataLimitations   []string           `json:"data_limitations"`
	Thresholds        Thresholds         `json:"thresholds"`
	Series            Series             `json:"series"`
	Gaps              []GapWindow        `json:"gaps"`
}

// CollectionStatus judges how complete a day is.
type CollectionStatus string

// The judgements: at least 99 %, at least 95 %, or less was collected of the
// worst dataset.
const (
	CollectionGood    CollectionStatus = "good"
	CollectionPartial CollectionStatus = "partial"
	CollectionPoor    CollectionStatus = "check_impact"
)

// DayWindow is the half-open window of a day in UTC.
type DayWindow struct {
	StartUTC time.Time `json:"start_utc"`
	EndUTC   time.Time `json:"end_utc"`
}

// DailyQuality tells how complete a day is. Gaps across the edges of hours are
// one gap.
type DailyQuality struct {
	FactoryStateExpectedCount  int64         `json:"factory_state_expected_count"`
	FactoryStateActualCount    int64         `json:"factory_state_actual_count"`
	RiskScoreExpectedCount     int64         `json:"risk_score_expected_count"`
	RiskScoreActualCount       int64         `json:"risk_score_actual_count"`
	InfraStateExpectedCount    int64         `json:"infra_state_expected_count"`
	InfraStateActualCount      int64         `json:"infra_state_actual_count"`
	FactoryStateCollectionRate exact.Decimal `json:"factory_state_collection_rate"`
	RiskScoreCollectionRate    exact.Decimal `json:"risk_score_collection_rate"`
	InfraStateCollectionRate   exact.Decimal `json:"infra_state_collection_rate"`
	// MissingHourCount are hours without a summary, EmptyHourCount hours whose
	// summary found no data.
	MissingHourCount int64 `json:"missing_hour_count"`
	EmptyHourCount   int64 `json:"empty_hour_count"`
	GapFigures
	DuplicateMessageCount int64      `json:"duplicate_message_count"`
	InvalidRecordCount    int64      `json:"invalid_record_count"`
	UnreadObjectCount     int64      `json:"unread_object_count"`
	FirstRecordAt         *time.Time `json:"first_record_at"`
	LastRecordAt          *time.Time `json:"last_record_at"`
}

// DailyPipeline has the minutes in which the pipeline was judged late and the
// number of hours that had part in a gap of 5 minutes or more.
type DailyPipeline struct {
	WarningMinutes   exact.Decimal `json:"pipeline_warning_minutes"`
	CriticalMinutes  exact.Decimal `json:"pipeline_critical_minutes"`
	CriticalGapCount int64         `json:"critical_gap_count"`
	MaxGapSeconds    exact.Decimal `json:"max_gap_seconds"`
}

// RecommendedCheck is something that the day's figures ask a person to look at.
type RecommendedCheck struct {
	ID       string `json:"id"`
	Priority string `json:"priority"`
	Check    string `json:"check"`
	Reason   string `json:"reason"`
}

// Thresholds are the bounds that the day was judged by.
type Thresholds struct {
	RiskWarningMax      exact.Decimal `json:"risk_warning_max"`
	RiskDangerMax       exact.Decimal `json:"risk_danger_max"`
	TemperatureWarning  exact.Decimal `json:"temperature_warning"`
	TemperatureCritical exact.Decimal `json:"temperature_critical"`
	HumidityWarning     exact.Decimal `json:"humidity_warning"`
	HumidityCritical    exact.Decimal `json:"humidity_critical"`
	AISpike             exact.Decimal `json:"ai_spike"`
	AICritical          exact.Decimal `json:"ai_critical"`
}

// FactoryContext is what a model is told about a day, stored as
// report-context.json: figures, findings and bounded events, but neither payloads
// nor curves.
type FactoryContext struct {
	SchemaVersion      string             `json:"schema_version"`
	ContextType        string             `json:"context_type"`
	FactoryID          string             `json:"factory_id"`
	ReportDate         string             `json:"report_date"`
	Timezone           string             `json:"timezone"`
	Status             string             `json:"status"`
	ScoreDirection     string             `json:"score_direction"`
	OverallStatus      Verdict            `json:"overall_status"`
	CollectionStatus   CollectionStatus   `json:"collection_status"`
	Window             DayWindow          `json:"window"`
	FactoryProfile     Profile            `json:"factory_profile"`
	DataQuality        DailyQuality       `json:"data_quality"`
	Risk               RiskBlock          `json:"risk"`
	FactoryState       FactoryStateBlock  `json:"factory_state"`
	Infra              InfraBlock         `json:"infra"`
	Pipeline           DailyPipeline      `json:"pipeline"`
	Snapshot           *FinalState        `json:"snapshot"`
	Events             []Event            `json:"events"`
	EventsOmittedCount int64              `json:"events_omitted_count"`
	RecommendedChecks  []RecommendedCheck `json:"recommended_checks"`
	DataLimitations    []string           `json:"data_limitations"`
	Thresholds         Thresholds         `json:"thresholds"`
}
