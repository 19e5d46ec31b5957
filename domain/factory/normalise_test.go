package factory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func message(source SourceType, payload string) Message {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(payload)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		panic(err)
	}
	return Message{FactoryID: "factory-x", MessageID: "m", SourceType: source, SourceTimestamp: noon, Payload: object}
}

func climate(payload string) FactoryState {
	return NormaliseFactoryState(message(SourceFactoryState, payload))
}

func infra(payload string) InfraState { return NormaliseInfraState(message(SourceInfraState, payload)) }

func TestNormalisedBlocks(t *testing.T) {
	requireGolden(t, "factory_state", climate(climatePayload))
	requireGolden(t, "infra_state", infra(clusterPayload))
	snapshot, err := NormaliseImageSnapshot(message(SourceImageSnapshot, picturePayload), MillisOf(noon))
	require.NoError(t, err)
	requireGolden(t, "image_snapshot", snapshot)
}

// Incident 10.25: what was not measured must never read as 0.
func TestWhatWasNotMeasuredStaysNull(t *testing.T) {
	for _, payload := range []string{
		`{}`,
		`{"sensor":null,"ai_result":null}`,
		`{"sensor":{},"ai_result":{}}`,
		`{"sensor":{"temperature_celsius_avg":null,"humidity_percent_avg":null,"pressure_hpa_avg":null},"ai_result":{"fire_score":null,"fall_score":null,"bend_score":null,"abnormal_sound":null}}`,
		`{"sensor":{"temperature_celsius_avg":"24.5","humidity_percent_avg":"","pressure_hpa_avg":"NaN"},"ai_result":{"fire_score":"0.9","fall_score":"high","bend_score":"1","abnormal_sound":7}}`,
		`{"sensor":{"temperature_celsius_avg":true,"humidity_percent_avg":false,"pressure_hpa_avg":{}},"ai_result":{"fire_score":true,"fall_score":[],"bend_score":{}}}`,
		`{"sensor":[1,2],"ai_result":"text"}`,
		`{"sensor":{"temperature_celsius_avg":1e300,"humidity_percent_avg":-1e127,"pressure_hpa_avg":1e999999},"ai_result":{"fire_score":1e126}}`,
	} {
		state := climate(payload)
		for name, value := range map[string]any{
			"temperature": state.TemperatureCelsius, "humidity": state.HumidityPercent, "pressure": state.PressureHPA,
			"fire": state.FireScore, "fall": state.FallScore, "bend": state.BendScore,
		} {
			require.Nil(t, value, "%s of %s", name, payload)
		}
		require.Equal(t, NoSound, state.AbnormalSound, payload)
		require.Zero(t, state.SampleCount)
	}
}

func TestNumbersKeepFourDecimalsHalfEven(t *testing.T) {
	for literal, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "24.5": "24.5", "24.50": "24.5", "1e2": "100", "2.5E-1": "0.25", "-3": "-3",
		"0.00005": "0", "0.00015": "0.0002", "0.00025": "0.0002", "0.000250001": "0.0003", "-0.00005": "0", "0.00004": "0",
		"123456789012345678901234567890":          "123456789012345678901234567890",
		"12345678901234567890.1234567890":         "12345678901234567890.1235",
		"0.123456789012345678901234567890":        "0.1235",
		"9999999999999999999999999999999999":      "9999999999999999999999999999999999",
		"9999999999999999999999999999999999.9999": "9999999999999999999999999999999999.9999",
		"1e-300": "0", "1e125": "1" + strings.Repeat("0", 125), "9007199254740993": "9007199254740993",
	} {
		got := climate(`{"sensor":{"temperature_celsius_avg":` + literal + `}}`).TemperatureCelsius
		require.NotNil(t, got, literal)
		require.Equal(t, want, got.String(), literal)
		require.True(t, got.Storable(), literal)
	}
	for _, literal := range []string{"99999999999999999999999999999999999.9999", "1" + strings.Repeat("1", 38), "1e126", strings.Repeat("1", 600)} {
		require.Nil(t, climate(`{"sensor":{"temperature_celsius_avg":`+literal+`}}`).TemperatureCelsius, literal)
	}
}

func TestCountsAreWholeAndNotNegative(t *testing.T) {
	for literal, want := range map[string]int64{
		"3": 3, "0": 0, "-1": 0, "2.9": 2, "1e3": 1000, "1e30": 0, "-1e30": 0, `"5"`: 0, "true": 0, "null": 0, "9223372036854775807": 9223372036854775807, "9223372036854775808": 0,
	} {
		state := climate(`{"sensor":{"sample_count":` + literal + `},"ai_result":{"sample_count":` + literal + `}}`)
		require.Equal(t, want, state.SampleCount, literal)
		require.Equal(t, want, state.AISampleCount, literal)
	}
}

func TestSilenceHasManySpellings(t *testing.T) {
	for label, want := range map[string]string{
		"": NoSound, "none": NoSound, "None": NoSound, " NONE ": NoSound, "  ": NoSound,
		"scream": "scream", " glass ": "glass", "none2": "none2", "a\nb": "a�b",
	} {
		quoted, err := json.Marshal(label)
		require.NoError(t, err)
		require.Equal(t, want, climate(`{"ai_result":{"abnormal_sound":`+string(quoted)+`}}`).AbnormalSound, label)
	}
}

func TestSummariesOfNodes(t *testing.T) {
	const three = `"nodes":[{"ready":true},{"ready":false},{"status":"Ready"}]`
	cases := []struct {
		name, payload string
		want          NodeSummary
	}{
		{"given", `{"node_summary":{"total":5,"ready":4,"not_ready":1},` + three + `}`, NodeSummary{5, 4, 1}},
		{"missing: counted", `{` + three + `}`, NodeSummary{3, 2, 1}},
		{"null: counted", `{"node_summary":null,` + three + `}`, NodeSummary{3, 2, 1}},
		{"of a wrong type: counted", `{"node_summary":[3,2,1],` + three + `}`, NodeSummary{3, 2, 1}},
		{"total only", `{"node_summary":{"total":4},` + three + `}`, NodeSummary{4, 2, 2}},
		{"ready only", `{"node_summary":{"ready":1},` + three + `}`, NodeSummary{3, 1, 2}},
		{"not_ready missing", `{"node_summary":{"total":3,"ready":3},` + three + `}`, NodeSummary{3, 3, 0}},
		{"negative: counted", `{"node_summary":{"total":-1,"ready":-5,"not_ready":-2},` + three + `}`, NodeSummary{3, 2, 1}},
		{"texts: counted", `{"node_summary":{"total":"5","ready":"5"},` + three + `}`, NodeSummary{3, 2, 1}},
		{"beyond int64: counted", `{"node_summary":{"total":1e20,"ready":1e20},` + three + `}`, NodeSummary{3, 2, 1}},
		{"more ready than there are", `{"node_summary":{"total":2,"ready":9},` + three + `}`, NodeSummary{2, 9, 0}},
		{"zeroes are values", `{"node_summary":{"total":3,"ready":0,"not_ready":3},` + three + `}`, NodeSummary{3, 0, 3}},
		{"nothing known", `{}`, NodeSummary{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := infra(c.payload)
			require.Equal(t, c.want, got.NodeSummary)
			require.Equal(t, c.want.Total, got.NodesTotal)
			require.Equal(t, c.want.Ready, got.NodesReady)
		})
	}
}

func TestSummariesOfWorkloads(t *testing.T) {
	const three = `"workloads":[{"ready":true,"status":"Failed"},{"ready":false,"status":"Running"},{"status":"Pending"}]`
	for payload, want := range map[string]WorkloadSummary{
		`{` + three + `}`: {3, 2, 1},
		`{"workload_summary":{"total":6,"running":5},` + three + `}`:                     {6, 5, 1},
		`{"workload_summary":{"total":6,"running":5,"not_running":0},` + three + `}`:     {6, 5, 0},
		`{"workload_summary":{"total":-6,"running":null},` + three + `}`:                 {3, 2, 1},
		`{"workload_summary":{"restart_count_total":4,"unhealthy":1},` + three + `}`:     {3, 2, 1},
		`{"workload_summary":"6/6"}`:                                                     {},
		`{"workload_summary":{"total":9223372036854775807,"running":0,"not_running":1}}`: {9223372036854775807, 0, 1},
	} {
		got := infra(payload)
		require.Equal(t, want, got.WorkloadSummary, payload)
		require.Equal(t, [2]int64{want.Total, want.Running}, [2]int64{got.PodsTotal, got.PodsReady})
	}
}

// Incident 10.24: renamed fields once read as 0 of 3 nodes ready.
func TestCapturedShapesAreReadWhole(t *testing.T) {
	got := infra(`{"heartbeat":{"agent_status":"alive","last_spool_write_at":null,"last_spool_write_status":"unknown"},
		"node_summary":{"not_ready":0,"ready":3,"total":3},
		"nodes":[{"cpu_usage_percent":null,"disk_usage_percent":null,"memory_usage_percent":null,"network_reachability":"unknown","node_id":"m0","ready":true,"role":"control-plane"},
			{"node_id":"w1","ready":true,"role":"worker"},{"name":"w2","status":"Ready"}],
		"workload_summary":{"not_running":0,"running":6,"total":6},
		"devices":{"bme280":{"available":true,"last_seen_at":"2026-05-19T03:58:16Z"}}}`)
	require.Equal(t, int64(3), got.NodesReady)
	require.Equal(t, int64(6), got.PodsReady)
	require.Equal(t, []Node{
		{NodeID: "m0", Role: "control-plane", Ready: true, Status: "Ready", NetworkReachability: "unknown"},
		{NodeID: "w1", Role: "worker", Ready: true, Status: "Ready", NetworkReachability: "unknown"},
		{NodeID: "w2", Role: "unknown", Ready: true, Status: "Ready", NetworkReachability: "unknown"},
	}, got.Nodes)
	require.Nil(t, got.LastSpoolWriteAt)
	require.Nil(t, got.Cut)
}

func TestWrongTypesInTheInfraPayloadAreAsIfMissing(t *testing.T) {
	empty := infra(`{}`)
	for _, payload := range []string{
		`{"heartbeat":7,"cluster":[],"nodes":{},"workloads":"x","devices":[1],"node_summary":true,"workload_summary":null}`,
		`{"heartbeat":{"agent_status":7,"publish_sequence":"9","last_spool_write_at":{}},"cluster":{"cluster_name":null,"kubernetes_version":1.3}}`,
		`{"nodes":[7,"x",null,[{}]],"workloads":[true,1],"devices":{"bme280":true,"camera":"available","microphone":null}}`,
	} {
		require.Equal(t, empty, infra(payload), payload)
	}
	require.Equal(t, unknown, empty.AgentStatus)
	require.NotNil(t, empty.Nodes)
	require.NotNil(t, empty.Workloads)
	require.NotNil(t, empty.Devices)

	node := infra(`{"nodes":[{"node_id":7,"name":["x"],"role":{},"ready":"yes","status":1,"cpu_usage_percent":"12","network_reachability":false}]}`).Nodes[0]
	require.Equal(t, Node{NodeID: unknown, Role: unknown, Status: "NotReady", NetworkReachability: unknown}, node)
	workload := infra(`{"workloads":[{"name":1,"ready":1,"restart_count":-4,"containers_ready":"1","containers_total":-1}]}`).Workloads[0]
	require.Equal(t, Workload{Status: unknown, NodeID: unknown}, workload)
}

func TestDevices(t *testing.T) {
	for payload, want := range map[string]Device{
		`{"available":true}`:                       {Available: true, Status: "available"},
		`{"available":false}`:                      {Available: false, Status: "unavailable"},
		`{"available":false,"status":"available"}`: {Available: false, Status: "available"},
		`{"status":"available"}`:                   {Available: true, Status: "available"},
		`{"status":"degraded"}`:                    {Available: false, Status: "degraded"},
		`{"available":"true"}`:                     {Available: false, Status: "unavailable"},
		`{}`:                                       {Available: false, Status: "unavailable"},
		`{"available":true,"status":7,"last_seen_at":7}`: {Available: true, Status: "available"},
	} {
		require.Equal(t, want, infra(`{"devices":{"camera":` + payload + `}}`).Devices["camera"], payload)
	}
}

func TestListsBeyondTheirBoundsAreCutAndCounted(t *testing.T) {
	got := infra(fmt.Sprintf(`{"nodes":[%s],"workloads":[%s],"devices":{%s}}`,
		repeated(60, `{"node_id":"n%d","ready":true}`), repeated(250, `{"name":"w%d","ready":true}`), repeated(30, `"d%02d":{"available":true}`)+`,"microphone":{"available":false}`))
	require.Len(t, got.Nodes, MaxNodes)
	require.Len(t, got.Workloads, MaxWorkloads)
	require.Len(t, got.Devices, MaxDevices+1, "a required device stays whatever its name sorts as")
	require.Contains(t, got.Devices, "microphone")
	require.Equal(t, &Cut{Nodes: 10, Workloads: 50, Devices: 10}, got.Cut)
	require.Equal(t, int64(60), got.NodesTotal, "counted before the cut")
	require.Equal(t, int64(250), got.PodsReady)
	require.Equal(t, "n49", got.Nodes[49].NodeID, "order is kept")
}

func repeated(count int, format string) string {
	parts := make([]string, count)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

func TestNodesInTroubleSurviveTheCut(t *testing.T) {
	got := infra(`{"nodes":[` + repeated(60, `{"node_id":"n%d","ready":true}`) +
		`,{"node_id":"down"},{"node_id":"cut off","ready":true,"network_reachability":"unreachable"},{"node_id":"full","ready":true,"disk_usage_percent":75}]}`)
	kept := make([]string, 0, MaxNodes)
	for _, node := range got.Nodes {
		kept = append(kept, node.NodeID)
	}
	require.Equal(t, []string{"down", "cut off", "full"}, kept[MaxNodes-3:])
	require.Equal(t, "n46", kept[MaxNodes-4])
}

func TestStringsAreBoundedCleanedAndCounted(t *testing.T) {
	long := strings.Repeat("é", 1000)
	got := infra(fmt.Sprintf(`{"heartbeat":{"agent_status":%q},"cluster":{"cluster_name":%q},"nodes":[{"node_id":%q,"role":"a\u0000b\u2028c"}]}`, long, long, long))
	require.Equal(t, strings.Repeat("é", MaxString), got.AgentStatus)
	require.Equal(t, strings.Repeat("é", MaxString), *got.ClusterName)
	require.Equal(t, strings.Repeat("é", MaxString), got.Nodes[0].NodeID)
	require.Equal(t, "a�b�c", got.Nodes[0].Role)
	require.Equal(t, 3, got.Cut.Strings)
}

func TestPicturesOfAnotherFactoryAreRefused(t *testing.T) {
	for _, key := range []string{
		"", "x.jpg", "image_snapshot/factory_id=factory-y/x.jpg", "image_snapshot/factory_id=factory-x", "/image_snapshot/factory_id=factory-x/x.jpg",
		"image_snapshot/factory_id=factory-x/../factory_id=factory-y/x.jpg", "image_snapshot/factory_id=factory-xx/x.jpg", "image_snapshot/factory_id=factory-x//x.jpg",
		"image_snapshot/factory_id=factory-x/a b.jpg", "image_snapshot/factory_id=factory-x/a\n.jpg", "image_snapshot/factory_id=factory-x/a#b.jpg",
		"image_snapshot/factory_id=factory-x/" + strings.Repeat("a", 512),
	} {
		m := message(SourceImageSnapshot, `{}`)
		m.Payload["s3_key"] = key
		_, err := Normalise(m, noon)
		requireInvalid(t, err, "payload.s3_key", key)
	}
	for _, payload := range []string{`{}`, `{"s3_key":7}`, `{"s3_key":null}`} {
		_, err := Normalise(message(SourceImageSnapshot, payload), noon)
		requireInvalid(t, err, "payload.s3_key", payload)
	}
}

func TestAPictureWithoutDetailsIsKept(t *testing.T) {
	got, err := NormaliseImageSnapshot(message(SourceImageSnapshot, `{"s3_key":"image_snapshot/factory_id=factory-x/yyyy=2026/x.jpg","size_bytes":-1,"event_type":null}`), MillisOf(noon))
	require.NoError(t, err)
	require.Equal(t, "UNKNOWN", got.EventType)
	require.Zero(t, got.SizeBytes)
}

func TestNormalisingDoesNotChangeTheMessage(t *testing.T) {
	m := message(SourceInfraState, clusterPayload)
	before := encode(t, m.Payload)
	NormaliseInfraState(m)
	require.Equal(t, before, encode(t, m.Payload))
}

func FuzzNormalise(f *testing.F) {
	for _, payload := range []string{climatePayload, clusterPayload, picturePayload, `{}`, `{"nodes":[{"disk_usage_percent":1e400}]}`, `{"sensor":{"temperature_celsius_avg":-0.00005}}`} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		object, err := parseObject(payload)
		if err != nil {
			return
		}
		var latest *Latest
		for i, source := range []SourceType{SourceFactoryState, SourceInfraState, SourceImageSnapshot, SourceFactoryState} {
			m := Message{FactoryID: "factory-x", MessageID: fmt.Sprint("m", i), SourceType: source, SourceTimestamp: noon, Payload: object}
			block, err := Normalise(m, noon)
			if err != nil {
				requireInvalidAny(t, err)
				continue
			}
			next := Apply(latest, m, block, noon)
			latest = &next
		}
		requireSoundRisk(t, latest.Risk)
		body := encode(t, latest)
		require.LessOrEqual(t, len(body), MaxLatestBytes)
		var back Latest
		require.NoError(t, json.Unmarshal([]byte(body), &back))
		require.Equal(t, body, encode(t, back))
	})
}

func BenchmarkNormaliseAndScore(b *testing.B) {
	stored := applied(b, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:55Z", climatePayload))
	for name, body := range map[string][]byte{
		"factory_state": envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload),
		"infra_state":   envelope(SourceInfraState, "cluster", "2026-05-20T11:59:59Z", clusterPayload),
	} {
		m := parse(b, body, noon)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				block, err := Normalise(m, noon)
				if err != nil {
					b.Fatal(err)
				}
				if Apply(&stored, m, block, noon).Risk == nil {
					b.Fatal("no risk")
				}
			}
		})
	}
}
