package factory

import (
	"time"

	"millrace/domain/exact"
)

// FactoryState is a normalised factory_state message: what the sensors and the
// AI workloads of a factory saw. A value that was not measured is nil, never 0.
type FactoryState struct {
	MessageID                string         `json:"message_id"`
	SourceTimestamp          time.Time      `json:"source_timestamp"`
	AggregationWindowSeconds int64          `json:"aggregation_window_seconds"`
	TemperatureCelsius       *exact.Decimal `json:"temperature_celsius"`
	HumidityPercent          *exact.Decimal `json:"humidity_percent"`
	PressureHPA              *exact.Decimal `json:"pressure_hpa"`
	SampleCount              int64          `json:"sample_count"`
	FireScore                *exact.Decimal `json:"fire_score"`
	FallScore                *exact.Decimal `json:"fall_score"`
	BendScore                *exact.Decimal `json:"bend_score"`
	AbnormalSound            string         `json:"abnormal_sound"`
	AISampleCount            int64          `json:"ai_sample_count"`
	Cut                      *Cut           `json:"cut,omitempty"`
}

// ID is the order of the message that the state came from.
func (s *FactoryState) ID() Order { return Order{At: s.SourceTimestamp, MessageID: s.MessageID} }

// NoSound is the abnormal_sound label that means silence.
const NoSound = "none"

// InfraState is a normalised infra_state message: the edge cluster of a factory
// as its agent saw it.
type InfraState struct {
	MessageID               string            `json:"message_id"`
	SourceTimestamp         time.Time         `json:"source_timestamp"`
	AgentStatus             string            `json:"agent_status"`
	LastSuccessfulPublishAt *string           `json:"last_successful_publish_at"`
	LastSpoolWriteStatus    *string           `json:"last_spool_write_status"`
	LastSpoolWriteAt        *string           `json:"last_spool_write_at"`
	PublishSequence         int64             `json:"publish_sequence"`
	ClusterName             *string           `json:"cluster_name"`
	KubernetesVersion       *string           `json:"kubernetes_version"`
	NodeSummary             NodeSummary       `json:"node_summary"`
	NodesTotal              int64             `json:"nodes_total"`
	NodesReady              int64             `json:"nodes_ready"`
	Nodes                   []Node            `json:"nodes"`
	WorkloadSummary         WorkloadSummary   `json:"workload_summary"`
	PodsTotal               int64             `json:"pods_total"`
	PodsReady               int64             `json:"pods_ready"`
	Workloads               []Workload        `json:"workloads"`
	Devices                 map[string]Device `json:"devices"`
	Cut                     *Cut              `json:"cut,omitempty"`
}

// ID is the order of the message that the state came from.
func (s *InfraState) ID() Order { return Order{At: s.SourceTimestamp, MessageID: s.MessageID} }

// NodeSummary counts the nodes of a cluster.
type NodeSummary struct {
	Total    int64 `json:"total"`
	Ready    int64 `json:"ready"`
	NotReady int64 `json:"not_ready"`
}

// Node is one node of an edge cluster; usages are percent of 100, nil when
// unknown.
type Node struct {
	NodeID              string         `json:"node_id"`
	Role                string         `json:"role"`
	Ready               bool           `json:"ready"`
	Status              string         `json:"status"`
	CPUUsagePercent     *exact.Decimal `json:"cpu_usage_percent"`
	MemoryUsagePercent  *exact.Decimal `json:"memory_usage_percent"`
	DiskUsagePercent    *exact.Decimal `json:"disk_usage_percent"`
	NetworkReachability string         `json:"network_reachability"`
}

// WorkloadSummary counts the pods of a cluster; Running counts those that are
// running and ready.
type WorkloadSummary struct {
	Total      int64 `json:"total"`
	Running    int64 `json:"running"`
	NotRunning int64 `json:"not_running"`
}

// Workload is one pod of an edge cluster.
type Workload struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	Status          string `json:"status"`
	Ready           bool   `json:"ready"`
	ContainersReady *int64 `json:"containers_ready"`
	ContainersTotal *int64 `json:"containers_total"`
	RestartCount    int64  `json:"restart_count"`
	NodeID          string `json:"node_id"`
}

// Device is one sensor of a factory.
type Device struct {
	Available  bool    `json:"available"`
	Status     string  `json:"status"`
	LastSeenAt *string `json:"last_seen_at"`
}

// RequiredDevices are the sensors whose loss counts towards risk, in the order
// of evaluation.
var RequiredDevices = []string{"bme280", "camera", "microphone"}

// Cut counts what the normaliser left out to stay within its bounds.
type Cut struct {
	Nodes     int `json:"nodes"`
	Workloads int `json:"workloads"`
	Devices   int `json:"devices"`
	Strings   int `json:"strings"`
}

// Total is everything that was cut; none of a nil Cut.
func (c *Cut) Total() int {
	if c == nil {
		return 0
	}
	return c.Nodes + c.Workloads + c.Devices + c.Strings
}

// orNil is nil when nothing was cut.
func (c *Cut) orNil() *Cut {
	if c.Total() == 0 {
		return nil
	}
	return c
}

// ImageSnapshot is the newest camera picture of a factory; the bytes are in S3.
type ImageSnapshot struct {
	EventType       string    `json:"event_type"`
	SourceTimestamp time.Time `json:"source_timestamp"`
	ProcessedAt     Millis    `json:"processed_at"`
	S3Bucket        string    `json:"s3_bucket"`
	S3Key           string    `json:"s3_key"`
	ContentType     string    `json:"content_type"`
	SizeBytes       int64     `json:"size_bytes"`
	SHA256          string    `json:"sha256"`
	MessageID       string    `json:"message_id"`
}

// ID is the order of the message that the picture came with.
func (s *ImageSnapshot) ID() Order { return Order{At: s.SourceTimestamp, MessageID: s.MessageID} }
