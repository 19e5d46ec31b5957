package report

import (
	"time"

	"millrace/domain/exact"
)

// SchemaVersion is the version of the shapes of summaries and contexts.
const SchemaVersion = "0.1.0"

// The states of an hour and of a day.
const (
	StatusSuccess      = "success"
	StatusEmpty        = "empty"
	StatusInsufficient = "insufficient_data"
)

// FactoryHourSummary is the aggregate of one factory's hour, stored as
// intermediate/hourly/hh=HH.json (factory.md, 7.4). Averages, extremes and
// minutes have 2 decimals, rates 4, rounded half-even; what was never measured is
// null. MergeBasis and Series are beyond the original shape.
type FactoryHourSummary struct {
	SchemaVersion string     `json:"schema_version"`
	SummaryType   string     `json:"summary_type"`
	FactoryID     string     `json:"factory_id"`
	ReportDate    string     `json:"report_date"`
	Timezone      string     `json:"timezone"`
	Hour          string     `json:"hour"`
	Status        string     `json:"status"`
	HourWindow    HourWindow `json:"hour_window"`

	InputCounts    InputCounts       `json:"input_counts"`
	ExpectedCounts DatasetCounts     `json:"expected_counts"`
	DataQuality    HourQuality       `json:"data_quality"`
	Risk           RiskBlock         `json:"risk"`
	FactoryState   FactoryStateBlock `json:"factory_state"`
	Infra          InfraBlock        `json:"infra"`
	Pipeline       HourPipeline      `json:"pipeline"`
	Snapshot       *FinalState       `json:"snapshot"`
	Events         []Event           `json:"events"`
	// EventCount also counts the events that Events has no room for.
	EventCount int64      `json:"event_count"`
	Series     Series     `json:"series"`
	MergeBasis MergeBasis `json:"merge_basis"`
}

// DatasetCounts are numbers of records by dataset.
type DatasetCounts struct {
	FactoryState int64 `json:"factory_state"`
	RiskScore    int64 `json:"risk_score"`
	InfraState   int64 `json:"infra_state"`
}

// InputCounts are what an hour was computed from. Invalid records could not be
// read, duplicates have the identity of a counted one, unread objects were left
// out for their number.
type InputCounts struct {
	DatasetCounts
	StateSnapshot    int64 `json:"state_snapshot"`
	InvalidRecords   int64 `json:"invalid_records"`
	DuplicateRecords int64 `json:"duplicate_records"`
	UnreadObjects    int64 `json:"unread_objects"`
}

// HourQuality tells how complete an hour is. GapMinutes counts a minute once
// however many datasets were silent in it.
type HourQuality struct {
	FactoryStateCollectionRate exact.Decimal `json:"factory_state_collection_rate"`
	RiskScoreCollectionRate    exact.Decimal `json:"risk_score_collection_rate"`
	InfraStateCollectionRate   exact.Decimal `json:"infra_state_collection_rate"`
	GapFigures
}

// GapFigures sum up gaps; GapWindows are the 10 longest.
type GapFigures struct {
	DataGapCount  int64         `json:"data_gap_count"`
	MaxGapSeconds exact.Decimal `json:"max_gap_seconds"`
	MaxGapMinutes exact.Decimal `json:"max_gap_minutes"`
	GapMinutes    exact.Decimal `json:"gap_minutes"`
	GapWindows    []GapWindow   `json:"gap_windows"`
}

// RiskBlock has the scores of an hour or a day (100 = safest); minutes are
// samples of a level times their interval. The original names of the levels of a
// day are normal, warning and danger; unknown is a day without scores.
type RiskBlock struct {
	AvgScore *exact.Decimal `json:"avg_score"`
	MinScore *exact.Decimal `json:"min_score"`
	MaxScore *exact.Decimal `json:"max_score"`
	P05Score *exact.Decimal `json:"p05_score"`
	P95Score *exact.Decimal `json:"p95_score"`
	// DominantLevel and WorstLevel are of a day only.
	DominantLevel  string        `json:"dominant_level,omitempty"`
	WorstLevel     string        `json:"worst_level,omitempty"`
	WarningMinutes exact.Decimal `json:"warning_minutes"`
	DangerMinutes  exact.Decimal `json:"danger_minutes"`
	TopCauses      []string      `json:"top_causes"`
	WorstPeriods   []WorstPeriod `json:"worst_periods"`
}

// WorstPeriod is the run of bad scores that went lowest.
type WorstPeriod struct {
	TimeRange  string        `json:"time_range"`
	StartUTC   time.Time     `json:"start_utc"`
	EndUTC     time.Time     `json:"end_utc"`
	MinScore   exact.Decimal `json:"min_score"`
	Level      string        `json:"level"`
	TopCauses  []string      `json:"top_causes"`
	MessageIDs []string      `json:"evidence_message_ids"`
}

// FactoryStateBlock has the measurements of an hour or a day.
type FactoryStateBlock struct {
	TemperatureAvg                  *exact.Decimal `json:"temperature_avg"`
	TemperatureMin                  *exact.Decimal `json:"temperature_min"`
	TemperatureMax                  *exact.Decimal `json:"temperature_max"`
	TemperatureP05                  *exact.Decimal `json:"temperature_p05"`
	TemperatureP95                  *exact.Decimal `json:"temperature_p95"`
	TemperatureOverThresholdMinutes exact.Decimal  `json:"temperature_over_threshold_minutes"`
	HumidityAvg                     *exact.Decimal `json:"humidity_avg"`
	HumidityMin                     *exact.Decimal `json:"humidity_min"`
	HumidityMax                     *exact.Decimal `json:"humidity_max"`
	HumidityP05                     *exact.Decimal `json:"humidity_p05"`
	HumidityP95                     *exact.Decimal `json:"humidity_p95"`
	HumidityOverThresholdMinutes    exact.Decimal  `json:"humidity_over_threshold_minutes"`
	PressureAvg                     *exact.Decimal `json:"pressure_avg"`
	PressureMin                     *exact.Decimal `json:"pressure_min"`
	PressureMax                     *exact.Decimal `json:"pressure_max"`
	PressureP05                     *exact.Decimal `json:"pressure_p05"`
	PressureP95                     *exact.Decimal `json:"pressure_p95"`
	MaxFireScore                    *exact.Decimal `json:"max_fire_score"`
	FireScoreP95                    *exact.Decimal `json:"fire_score_p95"`
	FireScoreOverThresholdSeconds   exact.Decimal  `json:"fire_score_over_threshold_seconds"`
	MaxFallScore                    *exact.Decimal `json:"max_fall_score"`
	FallScoreP95                    *exact.Decimal `json:"fall_score_p95"`
	FallScoreOverThresholdSeconds   exact.Decimal  `json:"fall_score_over_threshold_seconds"`
	MaxBendScore                    *exact.Decimal `json:"max_bend_score"`
	BendScoreP95                    *exact.Decimal `json:"bend_score_p95"`
	BendScoreOverThresholdSeconds   exact.Decimal  `json:"bend_score_over_threshold_seconds"`
	AbnormalSoundCount              int64          `json:"abnormal_sound_count"`
	SpikeEvents                     []SpikeEvent   `json:"spike_events"`
}

// SpikeEvent is a run of AI scores over the threshold; Type is such as
// fall_score_spike.
type SpikeEvent struct {
	Type            string        `json:"type"`
	TimeRange       string        `json:"time_range"`
	MaxScore        exact.Decimal `json:"max_score"`
	DurationSeconds exact.Decimal `json:"duration_seconds"`
}

// InfraBlock has the edge cluster of an hour or a day. NodeNotReadyCount is the
// most nodes that were not ready at once.
type InfraBlock struct {
	InfraStateCount          int64         `json:"infra_state_count"`
	NodeNotReadyCount        int64         `json:"node_not_ready_count"`
	NodeNotReadyMinutes      exact.Decimal `json:"node_not_ready_minutes"`
	WorkloadRestartTotal     int64         `json:"workload_restart_total"`
	UnhealthyWorkloadMinutes exact.Decimal `json:"unhealthy_workload_minutes"`
	NotReadyNodes            []NameMinutes `json:"not_ready_nodes"`
	UnhealthyWorkloads       []NameMinutes `json:"unhealthy_workloads"`
}

// NameMinutes tells for how long a node or workload was in trouble.
type NameMinutes struct {
	Name    string        `json:"name"`
	Samples int64         `json:"samples"`
	Minutes exact.Decimal `json:"minutes"`
}

// HourPipeline has the minutes in which the pipeline was judged late, by
// risk_score records alone: infra_state records tell of the same minutes again.
type HourPipeline struct {
	WarningMinutes  exact.Decimal `json:"pipeline_warning_minutes"`
	CriticalMinutes exact.Decimal `json:"pipeline_critical_minutes"`
	MaxGapSeconds   exact.Decimal `json:"max_gap_seconds"`
}

// FinalState is the last state_snapshot of an hour or a day.
type FinalState struct {
	UpdatedAt          time.Time      `json:"final_updated_at"`
	EnvironmentType    string         `json:"final_environment_type,omitempty"`
	RiskScore          *exact.Decimal `json:"final_risk_score"`
	RiskLevel          string         `json:"final_risk_level,omitempty"`
	PipelineStatus     string         `json:"final_pipeline_status,omitempty"`
	TemperatureCelsius *exact.Decimal `json:"final_temperature_celsius"`
	HumidityPercent    *exact.Decimal `json:"final_humidity_percent"`
	PressureHPA        *exact.Decimal `json:"final_pressure_hpa"`
	NodesReady         *int64         `json:"final_nodes_ready"`
	NodesTotal         *int64         `json:"final_nodes_total"`
	PodsReady          *int64         `json:"final_pods_ready"`
	PodsTotal          *int64         `json:"final_pods_total"`
}

// Series are curves of 5-minute buckets, oldest first; a bucket without samples
// is absent.
type Series struct {
	RiskScore   []SeriesPoint `json:"risk_score"`
	Temperature []SeriesPoint `json:"temperature"`
	Humidity    []SeriesPoint `json:"humidity"`
	AIScore     []SeriesPoint `json:"ai_score"`
}

// SeriesPoint is one bucket.
type SeriesPoint struct {
	At  time.Time     `json:"at"`
	Min exact.Decimal `json:"min"`
	Avg exact.Decimal `json:"avg"`
	Max exact.Decimal `json:"max"`
}

// MergeBasis is what the merge of a day needs of an hour to be exact.
type MergeBasis struct {
	FirstAt *time.Time `json:"first_at"`
	LastAt  *time.Time `json:"last_at"`
	// Samples count the samples behind the minutes.
	Samples SampleCounts `json:"samples"`
	// Distributions are by quantity, such as risk_score or temperature.
	Distributions map[string]Distribution `json:"distributions"`
	// Causes count how often a field was among a score's causes.
	Causes   map[string]int64 `json:"causes"`
	Silences []Silence        `json:"silences"`
	Restarts []RestartSpan    `json:"restarts"`
}

// SampleCounts are numbers of samples that met a condition.
type SampleCounts struct {
	RiskWarning        int64 `json:"risk_warning"`
	RiskDanger         int64 `json:"risk_danger"`
	PipelineWarning    int64 `json:"pipeline_warning"`
	PipelineCritical   int64 `json:"pipeline_critical"`
	TemperatureOver    int64 `json:"temperature_over"`
	HumidityOver       int64 `json:"humidity_over"`
	FireOver           int64 `json:"fire_over"`
	FallOver           int64 `json:"fall_over"`
	BendOver           int64 `json:"bend_over"`
	NodeNotReady       int64 `json:"node_not_ready"`
	UnhealthyWorkloads int64 `json:"unhealthy_workloads"`
}

// RestartSpan is a workload's restart counter at its first and last sample of an
// hour.
type RestartSpan struct {
	Workload string `json:"workload"`
	First    int64  `json:"first"`
	Last     int64  `json:"last"`
}
