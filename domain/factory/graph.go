package factory

import (
	"time"

	"millrace/domain/exact"
)

// Names that every graph document carries.
const (
	GraphItemType      = "GRAPH#5M"
	GraphSchemaVersion = "graph-5m-v0.1.0"
	graphDataset       = "DynamoDB HISTORY#STATE"
)

// GraphRules are the settings of the aggregation.
type GraphRules struct {
	// Keep is how long after its bucket began an item lives.
	Keep time.Duration
	// SampleInterval is how often a factory sends factory_state.
	SampleInterval time.Duration
	// AIThreshold is the AI score from which a detection is counted.
	AIThreshold exact.Decimal
}

// DefaultGraphRules are 48 hours, 3 seconds and 0.7.
func DefaultGraphRules() GraphRules {
	return GraphRules{Keep: 48 * time.Hour, SampleInterval: 3 * time.Second, AIThreshold: exact.MustParse("0.7")}
}

// expectedCount is how many factory_state samples a full bucket has.
func (r GraphRules) expectedCount() int64 {
	return int64((BucketLength + r.SampleInterval - 1) / r.SampleInterval)
}

// Graph is the aggregate of one factory and bucket: the item GRAPH#5M#{start}.
// The same samples give the same document, byte for byte, whenever, in whatever
// order and from whatever source they are read.
type Graph struct {
	PK            string        `json:"pk,omitempty"`
	SK            string        `json:"sk,omitempty"`
	DynamoDBPK    string        `json:"dynamodb_pk,omitempty"`
	DynamoDBSK    string        `json:"dynamodb_sk,omitempty"`
	ItemType      string        `json:"item_type"`
	FactoryID     string        `json:"factory_id"`
	SchemaVersion string        `json:"schema_version"`
	BucketMinutes int64         `json:"bucket_minutes"`
	BucketStart   time.Time     `json:"bucket_start"`
	BucketEnd     Millis        `json:"bucket_end"`
	Sensor        SensorSummary `json:"sensor"`
	Risk          RiskSummary   `json:"risk"`
	AIDetection   AIDetection   `json:"ai_detection"`
	Infra         InfraSummary  `json:"infra"`
	Quality       GraphQuality  `json:"quality"`
	CreatedAt     Millis        `json:"created_at"`
	UpdatedAt     Millis        `json:"updated_at"`
	TTL           int64         `json:"ttl,omitempty"`
}

// SummaryAt describes the samples of one metric in a bucket; the times are those
// of the samples. Of equal extremes the first counts.
type SummaryAt[T any] struct {
	Unit    string        `json:"unit"`
	Count   int64         `json:"count"`
	Min     exact.Decimal `json:"min"`
	MinAt   T             `json:"min_at"`
	Max     exact.Decimal `json:"max"`
	MaxAt   T             `json:"max_at"`
	Mean    exact.Decimal `json:"mean"`
	First   exact.Decimal `json:"first"`
	FirstAt T             `json:"first_at"`
	Last    exact.Decimal `json:"last"`
	LastAt  T             `json:"last_at"`
}

// Summary is by the source times of the samples.
type Summary = SummaryAt[time.Time]

// SensorSummary has the climate metrics; one without samples is nil.
type SensorSummary struct {
	TemperatureCelsius *Summary `json:"temperature_celsius,omitempty"`
	HumidityPercent    *Summary `json:"humidity_percent,omitempty"`
	PressureHPA        *Summary `json:"pressure_hpa,omitempty"`
}

// RiskSummary has the risk score by calculation time; nil without any.
type RiskSummary struct {
	Score *SummaryAt[Millis] `json:"score,omitempty"`
}

// Usage has the three usage metrics of a cluster or a node, in percent; one
// without samples is nil.
type Usage struct {
	CPUUsagePercent    *Summary `json:"cpu_usage_percent,omitempty"`
	MemoryUsagePercent *Summary `json:"memory_usage_percent,omitempty"`
	DiskUsagePercent   *Summary `json:"disk_usage_percent,omitempty"`
}

// InfraSummary has the usage of the whole cluster, each sample being the mean
// over its nodes, and of each node. NodesCut counts nodes beyond MaxNodes.
type InfraSummary struct {
	Usage
	Nodes    []NodeUsage `json:"nodes,omitempty"`
	NodesCut int         `json:"nodes_cut,omitempty"`
}

// NodeUsage is the usage of one node; its role is that of the last sample.
type NodeUsage struct {
	NodeID string `json:"node_id"`
	Role   string `json:"role"`
	Usage
}

// AIDetection summarises the AI scores of a bucket.
type AIDetection struct {
	Threshold           exact.Decimal  `json:"threshold"`
	MaxScore            *exact.Decimal `json:"max_score"`
	MaxScoreType        *string        `json:"max_score_type"`
	MaxScoreAt          *time.Time     `json:"max_score_at"`
	AboveThresholdCount int64          `json:"above_threshold_count"`
	ByType              AIByType       `json:"by_type"`
}

// AIByType has each AI score; one without samples is nil.
type AIByType struct {
	FireScore *AISummary `json:"fire_score,omitempty"`
	FallScore *AISummary `json:"fall_score,omitempty"`
	BendScore *AISummary `json:"bend_score,omitempty"`
}

// AISummary describes one AI score in a bucket. A score equal to the threshold
// is above it.
type AISummary struct {
	Count                 int64         `json:"count"`
	Min                   exact.Decimal `json:"min"`
	Max                   exact.Decimal `json:"max"`
	MaxAt                 time.Time     `json:"max_at"`
	Mean                  exact.Decimal `json:"mean"`
	Last                  exact.Decimal `json:"last"`
	LastAt                time.Time     `json:"last_at"`
	Threshold             exact.Decimal `json:"threshold"`
	AboveThresholdCount   int64         `json:"above_threshold_count"`
	AboveThresholdRatio   exact.Decimal `json:"above_threshold_ratio"`
	FirstAboveThresholdAt *time.Time    `json:"first_above_threshold_at"`
}

// GraphQuality tells how complete a bucket is. SourceCount are its distinct
// messages; rate and missing count speak of distinct factory_state times, so
// that infra_state messages can't hide a loss.
type GraphQuality struct {
	SourceDataset           string        `json:"source_dataset"`
	SourceCount             int64         `json:"source_count"`
	FactoryStateCount       int64         `json:"factory_state_count"`
	ExpectedCount           int64         `json:"expected_count"`
	CollectionRate          exact.Decimal `json:"collection_rate"`
	MissingCount            int64         `json:"missing_count"`
	IsEmpty                 bool          `json:"is_empty"`
	IsPartial               bool          `json:"is_partial"`
	InfraValuesFromSnapshot bool          `json:"infra_values_from_snapshot"`
	SourceWindowStartSK     string        `json:"source_window_start_sk"`
	SourceWindowEndSK       string        `json:"source_window_end_sk"`
}

// Archive is the body of the bucket's long-lived object: the item without its
// keys and ttl, which move to dynamodb_pk and dynamodb_sk.
func (g Graph) Archive() Graph {
	g.DynamoDBPK, g.DynamoDBSK = g.PK, g.SK
	g.PK, g.SK, g.TTL = "", "", 0
	return g
}

// Replaces tells whether g may be written over the stored aggregate of the same
// bucket, nil when there is none: never when it counts fewer messages, as
// happens when part of the source is gone already.
func (g Graph) Replaces(stored *Graph) bool {
	return stored == nil || g.Quality.SourceCount >= stored.Quality.SourceCount
}
