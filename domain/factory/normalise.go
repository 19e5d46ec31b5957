package factory

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	statusReady       = "Ready"
	statusNotReady    = "NotReady"
	statusRunning     = "Running"
	statusAvailable   = "available"
	statusUnavailable = "unavailable"
	unknown           = "unknown"
)

// NormaliseFactoryState flattens a factory_state payload. Values that are null,
// missing or no numbers stay nil.
func NormaliseFactoryState(m Message) FactoryState {
	payload := fields{object: m.Payload, cut: new(Cut)}
	sensor, ai := payload.child("sensor"), payload.child("ai_result")
	state := FactoryState{
		MessageID:                m.MessageID,
		SourceTimestamp:          m.SourceTimestamp,
		AggregationWindowSeconds: payload.integer("aggregation_window_seconds"),
		TemperatureCelsius:       sensor.number("temperature_celsius_avg"),
		HumidityPercent:          sensor.number("humidity_percent_avg"),
		PressureHPA:              sensor.number("pressure_hpa_avg"),
		SampleCount:              orZero(sensor.count("sample_count")),
		FireScore:                ai.number("fire_score"),
		FallScore:                ai.number("fall_score"),
		BendScore:                ai.number("bend_score"),
		AbnormalSound:            normaliseSound(ai.text("abnormal_sound", NoSound)),
		AISampleCount:            orZero(ai.count("sample_count")),
	}
	state.Cut = payload.cut.orNil()
	return state
}

func normaliseSound(label string) string {
	label = strings.TrimSpace(label)
	if label == "" || strings.EqualFold(label, NoSound) {
		return NoSound
	}
	return label
}

// NormaliseInfraState flattens an infra_state payload. Summaries that the agent
// did not send are counted from the lists, before these are cut.
func NormaliseInfraState(m Message) InfraState {
	payload := fields{object: m.Payload, cut: new(Cut)}
	heartbeat, cluster := payload.child("heartbeat"), payload.child("cluster")
	nodes := normaliseNodes(payload.children("nodes"))
	workloads := normaliseWorkloads(payload.children("workloads"))
	state := InfraState{
		MessageID:               m.MessageID,
		SourceTimestamp:         m.SourceTimestamp,
		AgentStatus:             heartbeat.text("agent_status", unknown),
		LastSuccessfulPublishAt: heartbeat.optionalLabel("last_successful_publish_at"),
		LastSpoolWriteStatus:    heartbeat.optionalLabel("last_spool_write_status"),
		LastSpoolWriteAt:        heartbeat.optionalLabel("last_spool_write_at"),
		PublishSequence:         heartbeat.integer("publish_sequence"),
		ClusterName:             cluster.optionalText("cluster_name"),
		KubernetesVersion:       cluster.optionalLabel("kubernetes_version"),
		NodeSummary:             summariseNodes(payload.child("node_summary"), nodes),
		WorkloadSummary:         summariseWorkloads(payload.child("workload_summary"), workloads),
		Devices:                 normaliseDevices(payload.child("devices")),
	}
	state.NodesTotal, state.NodesReady = state.NodeSummary.Total, state.NodeSummary.Ready
	state.PodsTotal, state.PodsReady = state.WorkloadSummary.Total, state.WorkloadSummary.Running
	state.Nodes, payload.cut.Nodes = atMost(nodes, MaxNodes, Node.healthy)
	state.Workloads, payload.cut.Workloads = atMost(workloads, MaxWorkloads, Workload.healthy)
	state.Cut = payload.cut.orNil()
	return state
}

func normaliseNodes(list []fields) []Node {
	nodes := make([]Node, 0, len(list))
	for _, f := range list {
		ready := f.isReady(statusReady)
		node := Node{
			NodeID:              f.text("node_id", f.text("name", unknown)),
			Role:                f.text("role", unknown),
			Ready:               ready,
			Status:              statusNotReady,
			CPUUsagePercent:     f.number("cpu_usage_percent"),
			MemoryUsagePercent:  f.number("memory_usage_percent"),
			DiskUsagePercent:    f.number("disk_usage_percent"),
			NetworkReachability: f.text("network_reachability", unknown),
		}
		if ready {
			node.Status = statusReady
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// isReady takes the flag where it is set, or a status that says the same.
func (f fields) isReady(status string) bool {
	ready, _ := f.flag("ready")
	return ready || textOf(f.object["status"]) == status
}

func normaliseWorkloads(list []fields) []Workload {
	workloads := make([]Workload, 0, len(list))
	for _, f := range list {
		ready, _ := f.flag("ready")
		workloads = append(workloads, Workload{
			Namespace:       f.text("namespace", ""),
			Name:            f.text("name", ""),
			Status:          f.text("status", unknown),
			Ready:           ready,
			ContainersReady: f.count("containers_ready"),
			ContainersTotal: f.count("containers_total"),
			RestartCount:    orZero(f.count("restart_count")),
			NodeID:          f.text("node_id", unknown),
		})
	}
	return workloads
}

func summariseNodes(given fields, nodes []Node) NodeSummary {
	var ready int64
	for _, node := range nodes {
		if node.Ready {
			ready++
		}
	}
	total := valueOr(given.count("total"), int64(len(nodes)))
	ready = valueOr(given.count("ready"), ready)
	return NodeSummary{Total: total, Ready: ready, NotReady: valueOr(given.count("not_ready"), max(0, total-ready))}
}

func summariseWorkloads(given fields, workloads []Workload) WorkloadSummary {
	var running int64
	for _, workload := range workloads {
		if workload.Ready || workload.Status == statusRunning {
			running++
		}
	}
	total := valueOr(given.count("total"), int64(len(workloads)))
	running = valueOr(given.count("running"), running)
	return WorkloadSummary{Total: total, Running: running, NotRunning: valueOr(given.count("not_running"), max(0, total-running))}
}

func normaliseDevices(given fields) map[string]Device {
	devices := make(map[string]Device)
	for _, name := range slices.Sorted(maps.Keys(given.object)) {
		device, ok := given.object[name].(map[string]any)
		if !ok {
			continue
		}
		if len(devices) == MaxDevices && !slices.Contains(RequiredDevices, name) {
			given.cut.Devices++
			continue
		}
		devices[given.bounded(name, MaxString)] = normaliseDevice(fields{object: device, cut: given.cut})
	}
	return devices
}

func normaliseDevice(f fields) Device {
	available, known := f.flag("available")
	status := f.label("status", "")
	if !known {
		available = status == statusAvailable
	}
	if status == "" {
		status = statusUnavailable
		if available {
			status = statusAvailable
		}
	}
	return Device{Available: available, Status: status, LastSeenAt: f.optionalLabel("last_seen_at")}
}

// imageKeyPattern is the alphabet of an image's object key; its length keeps the
// state small.
var imageKeyPattern = regexp.MustCompile(`^[A-Za-z0-9/=._-]{1,512}$`)

// NormaliseImageSnapshot reads an image_snapshot payload. The object must lie
// under the factory's own prefix, so that no device can make us show another's.
func NormaliseImageSnapshot(m Message, processedAt Millis) (ImageSnapshot, error) {
	payload := fields{object: m.Payload, cut: new(Cut)}
	key := textOf(m.Payload["s3_key"])
	if err := checkImageKey(m.FactoryID, key); err != nil {
		return ImageSnapshot{}, err
	}
	return ImageSnapshot{
		EventType:       payload.label("event_type", "UNKNOWN"),
		SourceTimestamp: m.SourceTimestamp,
		ProcessedAt:     processedAt,
		S3Bucket:        payload.label("s3_bucket", ""),
		S3Key:           key,
		ContentType:     payload.label("content_type", ""),
		SizeBytes:       orZero(payload.count("size_bytes")),
		SHA256:          payload.label("sha256", ""),
		MessageID:       m.MessageID,
	}, nil
}

func checkImageKey(factoryID, key string) error {
	prefix := "image_snapshot/factory_id=" + factoryID + "/"
	switch {
	case !strings.HasPrefix(key, prefix) || strings.Contains(key, "..") || strings.Contains(key, "//"):
		return invalid("payload.s3_key", "must lie under "+prefix)
	case !imageKeyPattern.MatchString(key):
		return invalid("payload.s3_key", "must match [A-Za-z0-9/=._-]{1,512}")
	}
	return nil
}

func orZero(n *int64) int64 { return valueOr(n, 0) }

func valueOr(n *int64, otherwise int64) int64 {
	if n == nil {
		return otherwise
	}
	return *n
}
