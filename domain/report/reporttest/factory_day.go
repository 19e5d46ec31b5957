package reporttest

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"millrace/domain/factory"
)

// FactoryDay is a day of a factory whose state comes every 3 seconds and whose
// infrastructure every 20: about 62,000 objects in 24 hours.
type FactoryDay struct {
	FactoryID string
	// Start and End bound the day, half open.
	Start, End time.Time
	// Calm leaves out every drill and every odd object.
	Calm bool
}

// Nominal distances of messages.
const (
	stateEvery = 3 * time.Second
	infraEvery = 20 * time.Second
	// lag is how long a message takes to be processed.
	lag = 800 * time.Millisecond
)

// Objects are the processed objects of the day in the order of processing, made
// by the rules that make the real ones.
func (d FactoryDay) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		var latest *factory.Latest
		for at, n := d.Start.UTC(), 0; at.Before(d.End); at, n = at.Add(time.Second), n+1 {
			offset := at.Sub(d.Start)
			for _, source := range d.due(offset) {
				var made []Object
				latest, made = d.process(latest, d.message(source, at, n))
				for _, object := range made {
					if !yield(object) {
						return
					}
				}
			}
		}
		if d.Calm {
			return
		}
		for _, object := range d.odd() {
			if !yield(object) {
				return
			}
		}
	}
}

func (d FactoryDay) due(offset time.Duration) []factory.SourceType {
	var due []factory.SourceType
	if offset%infraEvery == 0 && (d.Calm || !InfraGap.In(offset)) {
		due = append(due, factory.SourceInfraState)
	}
	if offset%stateEvery == 0 && (d.Calm || !StateGap.In(offset)) {
		due = append(due, factory.SourceFactoryState)
	}
	return due
}

// process does with a message what the consumer does with it.
func (d FactoryDay) process(latest *factory.Latest, m factory.Message) (*factory.Latest, []Object) {
	now := m.SourceTimestamp.Add(lag)
	block, err := factory.Normalise(m, now)
	if err != nil {
		panic(err) // a mistake in this package
	}
	next := factory.Apply(latest, m, block, now)
	made := []Object{d.object(string(m.SourceType), m, factory.ProcessedObject(m, block, latest, now, false))}
	if m.SourceType == factory.SourceFactoryState {
		made = append(made, d.object(factory.DatasetRiskScore, m, factory.RiskObject(next)))
	}
	return &next, made
}

func (d FactoryDay) object(dataset string, m factory.Message, document any) Object {
	return Object{Key: factory.ProcessedKey(d.FactoryID, dataset, m.SourceTimestamp, m.MessageID), Dataset: dataset, Body: encoded(document)}
}

func encoded(document any) []byte {
	body, err := factory.EncodeJSON(document)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return body
}

func (d FactoryDay) message(source factory.SourceType, at time.Time, n int) factory.Message {
	r := d.reading(at.Sub(d.Start), n)
	node, payload := "worker2", r.state()
	if source == factory.SourceInfraState {
		node, payload = "cluster", r.infra(n)
	}
	return factory.Message{
		SchemaVersion: factory.SchemaVersion, FactoryID: d.FactoryID, NodeID: node, EnvironmentType: "physical-rpi",
		MessageID:  fmt.Sprintf("%s:%s:%s:%s", d.FactoryID, source, node, at.UTC().Format(time.RFC3339)),
		SourceType: source, SourceTimestamp: at.UTC(), Payload: payload,
	}
}

func (r reading) state() map[string]any {
	return map[string]any{
		"aggregation_window_seconds": json.Number("3"),
		"sensor": map[string]any{
			"sample_count": json.Number("5"), "temperature_celsius_avg": json.Number(r.temperature),
			"humidity_percent_avg": json.Number(r.humidity), "pressure_hpa_avg": json.Number(r.pressure),
		},
		"ai_result": map[string]any{
			"sample_count": json.Number("3"), "fire_score": json.Number("0.01"), "fall_score": json.Number(r.fall),
			"bend_score": json.Number("0.02"), "abnormal_sound": factory.NoSound,
		},
	}
}

var (
	nodeNames = []string{"master", "worker1", "worker2"}
	workloads = [][2]string{
		{"monitoring", "bme280-sensor"},
		{"ai-apps", "safe-edge-integrated-ai"},
		{"ai-apps", "safe-edge-audio"},
		{"monitoring", "influxdb"},
		{"monitoring", "prometheus"},
		{"monitoring", "grafana"},
	}
)

func (r reading) infra(n int) map[string]any {
	var nodes, pods []any
	for i, name := range nodeNames {
		nodes = append(nodes, map[string]any{
			"node_id": name, "role": "worker", "ready": r.nodesReady, "network_reachability": "ok",
			"cpu_usage_percent": json.Number(hundredths(1200, n+i, 200)), "memory_usage_percent": json.Number(hundredths(4100, n+i, 400)),
			"disk_usage_percent": json.Number(hundredths(2500, n+i, 200)),
		})
	}
	for i, w := range workloads {
		restarts := 0
		if i == 0 {
			restarts = r.restarts
		}
		pods = append(pods, workload(w[0], w[1], true, restarts))
	}
	if r.stuck {
		pods = append(pods, workload("ai-apps", InjectedName, false, 0))
	}
	devices := map[string]any{}
	for _, name := range factory.RequiredDevices {
		devices[name] = map[string]any{"available": true}
	}
	return map[string]any{
		"heartbeat": map[string]any{"agent_status": "alive", "publish_sequence": json.Number(fmt.Sprint(n))},
		"nodes":     nodes, "workloads": pods, "devices": devices,
	}
}

func workload(namespace, name string, ready bool, restarts int) map[string]any {
	status := "Running"
	if !ready {
		status = "CrashLoopBackOff"
	}
	return map[string]any{
		"namespace": namespace, "name": name, "status": status, "ready": ready, "node_id": "worker2",
		"restart_count": json.Number(fmt.Sprint(restarts)),
	}
}

// hundredths is base with a jitter that n decides, both in hundredths.
func hundredths(base, n, jitter int) string {
	value := base + (n*7919)%(2*jitter+1) - jitter
	return fmt.Sprintf("%d.%02d", value/100, value%100)
}
