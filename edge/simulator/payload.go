package simulator

import "millrace/domain/factory"

// envelope is a message in the form of the message contract.
type envelope struct {
	SchemaVersion       string             `json:"schema_version"`
	MessageID           string             `json:"message_id"`
	FactoryID           string             `json:"factory_id"`
	NodeID              string             `json:"node_id"`
	EnvironmentType     string             `json:"environment_type"`
	InputModuleType     string             `json:"input_module_type"`
	SourceType          factory.SourceType `json:"source_type"`
	SourceTimestamp     string             `json:"source_timestamp"`
	PublishedAt         *string            `json:"published_at"`
	DataPlaneInstanceID string             `json:"data_plane_instance_id"`
	Payload             any                `json:"payload"`
}

type statePayload struct {
	AggregationWindowSeconds int           `json:"aggregation_window_seconds"`
	Sensor                   sensorPayload `json:"sensor"`
	AIResult                 aiPayload     `json:"ai_result"`
}

type sensorPayload struct {
	SampleCount int   `json:"sample_count"`
	Temperature Centi `json:"temperature_celsius_avg"`
	Humidity    Centi `json:"humidity_percent_avg"`
	Pressure    Centi `json:"pressure_hpa_avg"`
}

type aiPayload struct {
	SampleCount   int    `json:"sample_count"`
	FireScore     Centi  `json:"fire_score"`
	FallScore     Centi  `json:"fall_score"`
	BendScore     Centi  `json:"bend_score"`
	AbnormalSound string `json:"abnormal_sound"`
}

type infraPayload struct {
	Heartbeat       heartbeat         `json:"heartbeat"`
	NodeSummary     nodeSummary       `json:"node_summary"`
	Nodes           []node            `json:"nodes"`
	WorkloadSummary workloadSummary   `json:"workload_summary"`
	Workloads       []workload        `json:"workloads"`
	Devices         map[string]device `json:"devices"`
}

type heartbeat struct {
	AgentStatus          string  `json:"agent_status"`
	LastSpoolWriteStatus string  `json:"last_spool_write_status"`
	LastSpoolWriteAt     *string `json:"last_spool_write_at"`
	PublishSequence      int64   `json:"publish_sequence,omitempty"`
	ClusterStateSource   string  `json:"cluster_state_source,omitempty"`
	DummyScenario        string  `json:"dummy_scenario,omitempty"`
}

type nodeSummary struct {
	Total    int `json:"total"`
	Ready    int `json:"ready"`
	NotReady int `json:"not_ready"`
}

type node struct {
	NodeID              string `json:"node_id"`
	Role                string `json:"role"`
	Ready               bool   `json:"ready"`
	CPUUsagePercent     *Centi `json:"cpu_usage_percent"`
	MemoryUsagePercent  *Centi `json:"memory_usage_percent"`
	DiskUsagePercent    *Centi `json:"disk_usage_percent"`
	NetworkReachability string `json:"network_reachability"`
}

type workloadSummary struct {
	Total      int `json:"total"`
	Running    int `json:"running"`
	NotRunning int `json:"not_running"`
}

type workload struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Ready        bool   `json:"ready"`
	RestartCount int    `json:"restart_count"`
	NodeID       string `json:"node_id"`
}

type device struct {
	Available  bool    `json:"available"`
	LastSeenAt *string `json:"last_seen_at"`
}
