package factory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

// healthy is a factory at its best: 24.5 °C, 45 %, 1013 hPa, 3/3 nodes, 6/6
// pods, every device there, 10 s old.
func healthy() riskInput {
	node := func(name string) Node {
		return Node{NodeID: name, Ready: true, DiskUsagePercent: dec("30"), NetworkReachability: "ok"}
	}
	device := Device{Available: true}
	age := int64(10)
	return riskInput{
		state: FactoryState{
			TemperatureCelsius: dec("24.5"), HumidityPercent: dec("45"), PressureHPA: dec("1013"),
			FireScore: dec("0"), FallScore: dec("0"), BendScore: dec("0"), AbnormalSound: NoSound, SampleCount: 3,
		},
		infra: &InfraState{
			NodesTotal: 3, NodesReady: 3, PodsTotal: 6, PodsReady: 6,
			Nodes:   []Node{node("a"), node("b"), node("c")},
			Devices: map[string]Device{"bme280": device, "camera": device, "microphone": device},
		},
		pipeline: PipelineStatus{Status: Normal, LatestInfraStateAgeSeconds: &age},
	}
}

func (in riskInput) judge() Risk { return EvaluateRisk(in.state, in.infra, in.pipeline) }

// causesOf are the causes as "reason contribution", the worst first.
func causesOf(risk Risk) []string {
	causes := []string{}
	for _, cause := range risk.TopCauses {
		causes = append(causes, fmt.Sprintf("%s %s", cause.Reason, cause.Contribution))
	}
	return causes
}

func gatesOf(risk Risk) []string {
	gates := []string{}
	for _, gate := range risk.Gates {
		gates = append(gates, gate.Name)
	}
	return gates
}

func fresh(age int64) PipelineStatus {
	return PipelineStatus{Status: healthOfAge(&age), LatestInfraStateAgeSeconds: &age}
}

func TestRiskVectors(t *testing.T) {
	cases := []struct {
		name        string
		change      func(*riskInput)
		base, score string
		level       Level
		causes      []string
		gates       []string
	}{
		{"all normal", func(*riskInput) {}, "100", "100", LevelSafe, []string{}, []string{}},
		{"35 °C", func(in *riskInput) { in.state.TemperatureCelsius = dec("35") }, "95", "95", LevelSafe, []string{"temperature_weighted_penalty 5"}, []string{}},
		{
			"38 °C", func(in *riskInput) { in.state.TemperatureCelsius = dec("38") }, "90", "84", LevelWarning,
			[]string{"temperature_weighted_penalty 10", "temperature_critical 10"},
			[]string{"temperature_critical"},
		},
		{"77.5 % humidity", func(in *riskInput) { in.state.HumidityPercent = dec("77.5") }, "97.5", "97.5", LevelSafe, []string{"humidity_weighted_penalty 2.5"}, []string{}},
		{"sound only", func(in *riskInput) { in.state.AbnormalSound = "scream" }, "99.25", "99.25", LevelSafe, []string{"ai_event_rate_weighted_penalty 0.75"}, []string{}},
		{
			"fall 0.91", func(in *riskInput) { in.state.FallScore = dec("0.91") }, "86.35", "84", LevelWarning,
			[]string{"ai_score_warning 15", "ai_event_rate_weighted_penalty 13.65"},
			[]string{"ai_score_warning"},
		},
		{
			"nodes 2/3, one not reachable", func(in *riskInput) {
				in.infra.NodesReady = 2
				in.infra.Nodes[2].NetworkReachability = "unreachable"
			}, "91.66", "84", LevelWarning,
			[]string{"nodes_partially_not_ready 20", "node_status_weighted_penalty 6.67", "network_reachability_weighted_penalty 1.67"},
			[]string{"nodes_partially_not_ready"},
		},
		{
			"nodes 0/2, pods 0/2, network bad", func(in *riskInput) {
				in.infra.NodesTotal, in.infra.NodesReady, in.infra.PodsTotal, in.infra.PodsReady = 2, 0, 2, 0
				in.infra.Nodes = in.infra.Nodes[:2]
				in.infra.Nodes[0].NetworkReachability, in.infra.Nodes[1].NetworkReachability = "not_ready", "unreachable"
			}, "60", "0", LevelDanger,
			[]string{
				"nodes_all_not_ready 60", "pods_all_unready 60", "node_status_weighted_penalty 20",
				"pod_health_weighted_penalty 15", "network_reachability_weighted_penalty 5",
			},
			[]string{"nodes_all_not_ready", "pods_all_unready"},
		},
		{
			"camera unavailable", func(in *riskInput) { in.infra.Devices["camera"] = Device{} }, "96.67", "84", LevelWarning,
			[]string{"required_device_unavailable 12.67", "device_availability_weighted_penalty 3.33"},
			[]string{"required_device_unavailable"},
		},
		{
			"no infra_state ever", func(in *riskInput) { in.infra, in.pipeline = nil, PipelineStatus{Status: Critical} }, "90", "49", LevelDanger,
			[]string{"pipeline_status_critical 41", "data_freshness_weighted_penalty 10"},
			[]string{"pipeline_status_critical"},
		},
		// Incident 10.6: a factory that was switched off.
		{
			"silent for 61 s", func(in *riskInput) { in.pipeline = fresh(61) }, "99.83", "84", LevelWarning,
			[]string{"pipeline_status_warning 15.83", "data_freshness_weighted_penalty 0.17"},
			[]string{"pipeline_status_warning"},
		},
		{
			"silent for 121 s", func(in *riskInput) { in.pipeline = fresh(121) }, "90", "49", LevelDanger,
			[]string{"pipeline_status_critical 41", "data_freshness_weighted_penalty 10"},
			[]string{"pipeline_status_critical"},
		},
		{
			"silent for 301 s", func(in *riskInput) { in.pipeline = fresh(301) }, "90", "0", LevelDanger,
			[]string{"pipeline_status_outage 90", "data_freshness_weighted_penalty 10"},
			[]string{"pipeline_status_outage"},
		},
		{
			"everything wrong", func(in *riskInput) {
				in.state = FactoryState{
					TemperatureCelsius: dec("90"), HumidityPercent: dec("100"), PressureHPA: dec("800"), FireScore: dec("1"), AbnormalSound: "bang",
				}
				in.infra = &InfraState{
					NodesTotal: 1, PodsTotal: 1, Devices: map[string]Device{"bme280": {}, "camera": {}, "microphone": {}},
					Nodes: []Node{{NetworkReachability: "not_ready", DiskUsagePercent: dec("100")}},
				}
				in.pipeline = fresh(1000)
			}, "0", "0", LevelDanger,
			[]string{"node_status_weighted_penalty 20", "nodes_all_not_ready 20", "ai_score_critical 15", "pods_all_unready 15", "required_device_unavailable 10"},
			[]string{"temperature_critical", "humidity_critical", "ai_score_critical", "nodes_all_not_ready", "pods_all_unready", "required_device_unavailable", "pipeline_status_outage"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := healthy()
			c.change(&in)
			risk := in.judge()
			requireSoundRisk(t, &risk)
			require.Equal(t, c.base, risk.BaseScore.String())
			require.Equal(t, c.score, risk.Score.String())
			require.Equal(t, c.level, risk.Level)
			require.Equal(t, c.causes, causesOf(risk))
			require.Equal(t, c.gates, gatesOf(risk))
		})
	}
}

func TestTheWholeJudgementAsJSON(t *testing.T) {
	in := healthy()
	in.state.TemperatureCelsius, in.state.FallScore = dec("35.5"), dec("0.82")
	in.infra.NodesReady = 0
	in.infra.Devices["microphone"] = Device{}
	in.pipeline = fresh(400)
	requireGolden(t, "risk", in.judge())
}

// penaltyOf is the weighted contribution of a field, and the gates of it.
func penaltyOf(in riskInput, field string) (contribution string, gates []string) {
	contribution, gates = "0", []string{}
	for _, cause := range weightedCauses(in) {
		if cause.Field == field {
			contribution = cause.Contribution.String()
		}
	}
	for _, gate := range openGates(in) {
		if gate.Field == field {
			gates = append(gates, gate.Name+" "+string(gate.Level))
		}
	}
	return contribution, gates
}

func TestMeasurementsAtTheirBoundaries(t *testing.T) {
	type setter func(*riskInput, *exact.Decimal)
	setters := map[string]setter{
		fieldTemperature: func(in *riskInput, d *exact.Decimal) { in.state.TemperatureCelsius = d },
		fieldHumidity:    func(in *riskInput, d *exact.Decimal) { in.state.HumidityPercent = d },
		fieldPressure:    func(in *riskInput, d *exact.Decimal) { in.state.PressureHPA = d },
		fieldStorage:     func(in *riskInput, d *exact.Decimal) { in.infra.Nodes[1].DiskUsagePercent = d },
	}
	cases := []struct{ field, value, penalty, gate string }{
		{fieldTemperature, "-40", "0", ""},
		{fieldTemperature, "32", "0", ""},
		{fieldTemperature, "32.0029", "0", ""},
		{fieldTemperature, "32.003", "0", ""},
		{fieldTemperature, "32.0031", "0.01", ""},
		{fieldTemperature, "33", "1.67", ""},
		{fieldTemperature, "37.9999", "10", ""},
		{fieldTemperature, "38", "10", "temperature_critical warning"},
		{fieldTemperature, "1000000", "10", "temperature_critical warning"},
		{fieldHumidity, "0", "0", ""},
		{fieldHumidity, "70", "0", ""},
		{fieldHumidity, "70.1", "0.03", ""},
		{fieldHumidity, "84.99", "5", ""},
		{fieldHumidity, "85", "5", "humidity_critical warning"},
		{fieldHumidity, "300", "5", "humidity_critical warning"},
		{fieldPressure, "0", "5", ""},
		{fieldPressure, "969.9", "5", ""},
		{fieldPressure, "970", "5", ""},
		{fieldPressure, "970.1", "4.98", ""},
		{fieldPressure, "980", "2.5", ""},
		{fieldPressure, "989.9", "0.02", ""},
		{fieldPressure, "990", "0", ""},
		{fieldPressure, "1013", "0", ""},
		{fieldPressure, "1030", "0", ""},
		{fieldPressure, "1030.1", "0.02", ""},
		{fieldPressure, "1040", "2.5", ""},
		{fieldPressure, "1049.9", "4.98", ""},
		{fieldPressure, "1050", "5", ""},
		{fieldPressure, "2000", "5", ""},
		{fieldStorage, "75", "0", ""},
		{fieldStorage, "75.3", "0.1", ""},
		{fieldStorage, "82.5", "2.5", ""},
		{fieldStorage, "90", "5", ""},
		{fieldStorage, "100", "5", ""},
	}
	for _, c := range cases {
		in := healthy()
		setters[c.field](&in, dec(c.value))
		penalty, gates := penaltyOf(in, c.field)
		require.Equal(t, c.penalty, penalty, c)
		require.Equal(t, c.gate, strings.Join(gates, ","), c)
	}
	for field, set := range setters {
		in := healthy()
		set(&in, nil)
		penalty, gates := penaltyOf(in, field)
		require.Equal(t, "0", penalty, "unknown %s costs nothing", field)
		require.Empty(t, gates)
	}
}

func TestTheFullestNodeCounts(t *testing.T) {
	in := healthy()
	in.infra.Nodes[0].DiskUsagePercent, in.infra.Nodes[1].DiskUsagePercent, in.infra.Nodes[2].DiskUsagePercent = dec("80"), nil, dec("95")
	penalty, _ := penaltyOf(in, fieldStorage)
	require.Equal(t, "5", penalty)
	for i := range in.infra.Nodes {
		in.infra.Nodes[i].DiskUsagePercent = nil
	}
	penalty, _ = penaltyOf(in, fieldStorage)
	require.Equal(t, "0", penalty)
}

func TestAIGates(t *testing.T) {
	cases := []struct {
		score, sound  string
		penalty, gate string
	}{
		{"0.59", NoSound, "8.85", ""},
		{"0.59", "scream", "9.6", ""},
		{"0.5999", "scream", "9.75", ""},
		{"0.6", NoSound, "9", ""},
		{"0.6", "", "9", ""},
		{"0.6", "scream", "9.75", "ai_score_warning warning"},
		{"0.79", NoSound, "11.85", ""},
		{"0.7999", NoSound, "12", ""},
		{"0.8", NoSound, "12", "ai_score_warning warning"},
		{"0.9499", "scream", "15", "ai_score_warning warning"},
		{"0.95", NoSound, "14.25", "ai_score_critical danger"},
		{"0.95", "scream", "15", "ai_score_critical danger"},
		{"1", NoSound, "15", "ai_score_critical danger"},
		{"17", NoSound, "15", "ai_score_critical danger"},
		{"-1", NoSound, "0", ""},
		{"-1", "scream", "0.75", ""},
	}
	for _, c := range cases {
		for kind, set := range map[string]func(*FactoryState){
			"fire": func(s *FactoryState) { s.FireScore = dec(c.score) },
			"fall": func(s *FactoryState) { s.FallScore = dec(c.score) },
			"bend": func(s *FactoryState) { s.BendScore = dec(c.score) },
		} {
			in := healthy()
			in.state.AbnormalSound = c.sound
			in.state.FireScore, in.state.FallScore, in.state.BendScore = nil, nil, nil
			set(&in.state)
			penalty, gates := penaltyOf(in, fieldAI)
			require.Equal(t, c.penalty, penalty, "%s %v", kind, c)
			require.Equal(t, c.gate, strings.Join(gates, ","), "%s %v", kind, c)
		}
	}
}

func TestASoundWithoutAnyAIScoreHasNoObservedValue(t *testing.T) {
	in := healthy()
	in.state.FireScore, in.state.FallScore, in.state.BendScore, in.state.AbnormalSound = nil, nil, nil, "scream"
	risk := in.judge()
	require.Equal(t, []string{"ai_event_rate_weighted_penalty 0.75"}, causesOf(risk))
	require.Equal(t, Value{}, risk.TopCauses[0].Value)
}

func TestReadinessGates(t *testing.T) {
	for _, c := range []struct {
		ready, total  int64
		penalty, gate string
	}{
		{0, 0, "0", ""},
		{3, 3, "0", ""},
		{9, 3, "0", ""},
		{1, 0, "0", ""},
		{2, 3, "6.67", "nodes_partially_not_ready warning"},
		{1, 3, "13.33", "nodes_partially_not_ready warning"},
		{0, 3, "20", "nodes_all_not_ready danger"},
		{0, 9223372036854775807, "20", "nodes_all_not_ready danger"},
		{1, 9223372036854775807, "20", "nodes_partially_not_ready warning"},
	} {
		in := healthy()
		in.infra.NodesReady, in.infra.NodesTotal = c.ready, c.total
		penalty, gates := penaltyOf(in, fieldNodes)
		require.Equal(t, c.penalty, penalty, c)
		require.Equal(t, c.gate, strings.Join(gates, ","), c)
	}
	in := healthy()
	in.infra.PodsReady = 0
	risk := in.judge()
	require.Equal(t, "49", risk.Score.String(), "pods alone do not make the score 0")
	require.Nil(t, risk.Gates[0].ScoreCap)
}

func TestDeviceGates(t *testing.T) {
	cases := []struct {
		name, down    string
		samples       int64
		penalty, gate string
	}{
		{"all there", "", 0, "0", ""},
		{"camera", "camera", 0, "3.33", "required_device_unavailable warning"},
		{"climate sensor, yet measured", "bme280", 1, "3.33", "required_device_unavailable warning"},
		{"climate sensor and nothing measured", "bme280", 0, "3.33", "required_device_unavailable danger"},
		{"two", "camera,microphone", 0, "6.67", "required_device_unavailable warning"},
		{"all gone", "bme280,camera,microphone", 0, "10", "required_device_unavailable danger"},
		{"a device that no rule knows", "lidar", 0, "0", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := healthy()
			in.state.SampleCount = c.samples
			for name := range strings.SplitSeq(c.down, ",") {
				in.infra.Devices[name] = Device{}
			}
			penalty, gates := penaltyOf(in, fieldDevices)
			require.Equal(t, c.penalty, penalty)
			require.Equal(t, c.gate, strings.Join(gates, ","))
			for _, gate := range openGates(in) {
				require.Equal(t, textValue(c.down), gate.Value)
			}
		})
	}
}

func TestOnlyDevicesThatArePresentCount(t *testing.T) {
	in := healthy()
	in.infra.Devices = map[string]Device{"camera": {}, "microphone": {Available: true}}
	penalty, _ := penaltyOf(in, fieldDevices)
	require.Equal(t, "5", penalty)
	in.infra.Devices = nil
	penalty, gates := penaltyOf(in, fieldDevices)
	require.Equal(t, "0", penalty)
	require.Empty(t, gates)
}

func TestUnknownReachabilityIsLeftOut(t *testing.T) {
	for states, want := range map[string]string{
		"ok,ok,ok": "0", "reachable,ready,ok": "0", "unknown,unknown,unknown": "0", "unknown,ok,not_ready": "2.5",
		"unknown,unknown,unreachable": "5", "ok,odd,ok": "1.67", "OK,ok,ok": "1.67", ",ok,ok": "1.67",
	} {
		in := healthy()
		for i, state := range strings.Split(states, ",") {
			in.infra.Nodes[i].NetworkReachability = state
		}
		penalty, gates := penaltyOf(in, fieldNetwork)
		require.Equal(t, want, penalty, states)
		require.Empty(t, gates)
	}
	in := healthy()
	in.infra.Nodes = nil
	penalty, _ := penaltyOf(in, fieldNetwork)
	require.Equal(t, "0", penalty)
}

func TestFreshnessAtItsBoundaries(t *testing.T) {
	cases := []struct {
		age           int64
		penalty, gate string
		score         string
	}{
		{-5, "0", "", "100"},
		{0, "0", "", "100"},
		{60, "0", "", "100"},
		{61, "0.17", "pipeline_status_warning warning", "84"},
		{90, "5", "pipeline_status_warning warning", "84"},
		{120, "10", "pipeline_status_warning warning", "84"},
		{121, "10", "pipeline_status_critical danger", "49"},
		{300, "10", "pipeline_status_critical danger", "49"},
		{301, "10", "pipeline_status_outage danger", "0"},
	}
	for _, c := range cases {
		in := healthy()
		in.pipeline = fresh(c.age)
		penalty, gates := penaltyOf(in, fieldFreshness)
		require.Equal(t, c.penalty, penalty, c)
		require.Equal(t, c.gate, strings.Join(gates, ","), c)
		require.Equal(t, c.score, in.judge().Score.String(), c)
	}
}

func TestInfraFactorsNeedAnInfraState(t *testing.T) {
	in := healthy()
	in.infra = nil
	for _, field := range []string{fieldNodes, fieldPods, fieldDevices, fieldStorage, fieldNetwork} {
		penalty, gates := penaltyOf(in, field)
		require.Equal(t, "0", penalty, field)
		require.Empty(t, gates, field)
	}
}

func TestLevelsAreRealValuedBands(t *testing.T) {
	for score, want := range map[string]Level{
		"100": LevelSafe, "85": LevelSafe, "84.99": LevelWarning, "84.5": LevelWarning, "50": LevelWarning, "49.99": LevelDanger, "49.5": LevelDanger, "0": LevelDanger,
	} {
		require.Equal(t, want, LevelOf(exact.MustParse(score)), score)
	}
}

func TestCausesOfEqualWeightKeepTheOrderOfTheDesign(t *testing.T) {
	in := healthy()
	in.state.HumidityPercent, in.state.PressureHPA = dec("84.99"), dec("970")
	in.infra.Nodes[0].DiskUsagePercent = dec("90")
	for i := range in.infra.Nodes {
		in.infra.Nodes[i].NetworkReachability = "not_ready"
	}
	want := []string{"humidity_weighted_penalty 5", "pressure_weighted_penalty 5", "storage_pressure_weighted_penalty 5", "network_reachability_weighted_penalty 5"}
	for range 20 {
		require.Equal(t, want, causesOf(in.judge()))
	}
}

func TestATinyPenaltyIsLeftOutOnlyWhenItsRatioIsZero(t *testing.T) {
	in := healthy()
	in.state.TemperatureCelsius = dec("32.0001")
	require.Equal(t, []string{"temperature_weighted_penalty 0"}, causesOf(in.judge()))
}

func TestJudgingChangesNothing(t *testing.T) {
	in := healthy()
	in.infra.NodesReady = 0
	before := encode(t, in.infra) + encode(t, in.state)
	first := in.judge()
	first.Gates[0].ScoreCap = dec("77")
	require.Equal(t, "0", in.judge().Score.String(), "a caller's change reaches no later judgement")
	require.Equal(t, before, encode(t, in.infra)+encode(t, in.state))
}

func TestCausesCarryWhatWasObserved(t *testing.T) {
	for body, want := range map[string]Value{`7.5`: numberValue(exact.MustParse("7.5")), `"2/3"`: textValue("2/3"), `null`: {}} {
		var got Value
		require.NoError(t, got.UnmarshalJSON([]byte(body)))
		require.Equal(t, encode(t, want), encode(t, got))
		require.Equal(t, body, encode(t, got))
	}
	var got Value
	require.Error(t, got.UnmarshalJSON([]byte(`[1]`)))
	require.Error(t, got.UnmarshalJSON([]byte(`true`)))
}
