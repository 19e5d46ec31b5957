package report

import (
	"fmt"
	"strings"
	"time"
)

// sample is one object of a dataset.
type sample struct {
	dataset string
	body    string
}

func (s sample) addTo(hour *FactoryHour) { hour.Add(s.dataset, []byte(s.body)) }

const stampLayout = "2006-01-02T15:04:05.999Z"

// measured are the values of a factory_state; empty ones are null.
type measured struct{ temperature, humidity, pressure, fire, fall, bend, sound string }

func calm() measured {
	return measured{temperature: "24.5", humidity: "45", pressure: "1013", fire: "0", fall: "0.1", bend: "0", sound: "none"}
}

func orNull(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

func envelopeOf(factoryID, source, node string, at time.Time) string {
	stamp := at.UTC().Format(stampLayout)
	return fmt.Sprintf(`"source_message_id":"%[1]s:%[2]s:%[3]s:%[4]s","factory_id":"%[1]s","source_timestamp":"%[4]s","processed_at":"%[5]s"`,
		factoryID, source, node, stamp, at.Add(time.Second).UTC().Format("2006-01-02T15:04:05.000Z"))
}

func stateSample(factoryID string, at time.Time, m measured) sample {
	return sample{FactoryStateDataset, fmt.Sprintf(`{%s,"data":{"message_id":"x","aggregation_window_seconds":3,"temperature_celsius":%s,"humidity_percent":%s,"pressure_hpa":%s,"sample_count":5,"fire_score":%s,"fall_score":%s,"bend_score":%s,"abnormal_sound":%q,"ai_sample_count":3}}`,
		envelopeOf(factoryID, "factory_state", "worker2", at),
		orNull(m.temperature), orNull(m.humidity), orNull(m.pressure), orNull(m.fire), orNull(m.fall), orNull(m.bend), m.sound)}
}

func riskSample(factoryID string, at time.Time, score, pipeline string, causes ...string) sample {
	fields := make([]string, 0, len(causes))
	for _, cause := range causes {
		fields = append(fields, fmt.Sprintf(`{"field":%q,"reason":"r","value":1,"contribution":2,"severity":"warning","source":"weighted"}`, cause))
	}
	return sample{RiskScoreDataset, fmt.Sprintf(`{%s,"data":{},"risk":{"score":%s,"level":"x","top_causes":[%s]},"pipeline_status":{"status":%q}}`,
		envelopeOf(factoryID, "factory_state", "worker2", at), score, strings.Join(fields, ","), pipeline)}
}

// cluster is what an infra_state says.
type cluster struct {
	down []string
	// bad are workloads that are not ready.
	bad      []string
	restarts int
}

func infraSample(factoryID string, at time.Time, c cluster) sample {
	var nodes, workloads []string
	ready := 0
	for _, node := range []string{"master", "worker1", "worker2"} {
		down := strings.Contains(strings.Join(c.down, " "), node)
		if !down {
			ready++
		}
		nodes = append(nodes, fmt.Sprintf(`{"node_id":%q,"role":"worker","ready":%t,"status":"x","cpu_usage_percent":12.5,"memory_usage_percent":40,"disk_usage_percent":30,"network_reachability":"ok"}`, node, !down))
	}
	for _, name := range []string{"bme280-sensor", "edge-publisher", "image-uploader", "ai-fire", "ai-fall", "log-adapter"} {
		bad := strings.Contains(strings.Join(c.bad, " "), name)
		workloads = append(workloads, fmt.Sprintf(`{"namespace":"edge","name":%q,"status":"Running","ready":%t,"containers_ready":1,"containers_total":1,"restart_count":%d,"node_id":"worker1"}`, name, !bad, c.restarts))
	}
	return sample{InfraStateDataset, fmt.Sprintf(`{%s,"data":{"agent_status":"running","cluster_name":%q,"nodes_total":3,"nodes_ready":%d,"pods_ready":6,"pods_total":6,"nodes":[%s],"workloads":[%s],"devices":{"bme280":{"available":true,"status":"available"}}},"pipeline_status":{"status":"critical"}}`,
		envelopeOf(factoryID, "infra_state", "cluster", at), factoryID, ready, strings.Join(nodes, ","), strings.Join(workloads, ","))}
}

func snapshotSample(factoryID string, at time.Time, score string) sample {
	stamp := at.UTC().Format("2006-01-02T15:04:05.000Z")
	return sample{StateSnapshotDataset, fmt.Sprintf(`{"pk":"FACTORY#%[1]s","sk":"HISTORY#STATE#%[2]s","factory_id":"%[1]s","environment_type":"vm-mac","factory_state":{"temperature_celsius":25,"humidity_percent":null},"infra_state":{"nodes_total":3,"nodes_ready":2,"pods_ready":5,"pods_total":6},"risk":{"score":%[3]s,"level":"warning"},"pipeline_status":{"status":"normal"},"updated_at":"%[2]s"}`,
		factoryID, stamp, score)}
}

// quietHour has every object of an hour in which nothing happens.
func quietHour(factoryID string, start time.Time, length time.Duration) []sample {
	var samples []sample
	for at := start; at.Before(start.Add(length)); at = at.Add(3 * time.Second) {
		samples = append(samples, stateSample(factoryID, at, calm()), riskSample(factoryID, at, "100", "normal"))
	}
	for at := start; at.Before(start.Add(length)); at = at.Add(20 * time.Second) {
		samples = append(samples, infraSample(factoryID, at, cluster{}))
	}
	return samples
}

// summarise is the summary of an hour's samples.
func summarise(factoryID string, day Day, hour Hour, settings Settings, samples []sample) FactoryHourSummary {
	gathered := NewFactoryHour(factoryID, day, hour, settings)
	for _, one := range samples {
		one.addTo(gathered)
	}
	return gathered.Summary()
}

// mergeSamples is the day of samples that are all offered to every hour.
func mergeSamples(factoryID string, day Day, settings Settings, samples []sample) FactoryDaily {
	var hours []FactoryHourSummary
	for _, hour := range day.Hours() {
		hours = append(hours, summarise(factoryID, day, hour, settings, samples))
	}
	return MergeFactoryDay(factoryID, day, settings, hours)
}

// mergeByHour is mergeSamples for many samples, each offered to its hour
// alone; one without a time to the first.
func mergeByHour(factoryID string, day Day, settings Settings, samples []sample) FactoryDaily {
	hours := day.Hours()
	gathered := make([]*FactoryHour, len(hours))
	for i, hour := range hours {
		gathered[i] = NewFactoryHour(factoryID, day, hour, settings)
	}
	for _, one := range samples {
		at := timeIn(one.body)
		for i, hour := range hours {
			if hour.Contains(at) || (at.IsZero() && i == 0) {
				one.addTo(gathered[i])
			}
		}
	}
	summaries := make([]FactoryHourSummary, 0, len(hours))
	for _, one := range gathered {
		summaries = append(summaries, one.Summary())
	}
	return MergeFactoryDay(factoryID, day, settings, summaries)
}

// timeIn is the time that a built body has.
func timeIn(body string) time.Time {
	for _, field := range []string{`"source_timestamp":"`, `"updated_at":"`} {
		if _, rest, ok := strings.Cut(body, field); ok {
			text, _, _ := strings.Cut(rest, `"`)
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				return at
			}
		}
	}
	return time.Time{}
}
