package alert

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

var noon = factory.MillisOf(time.Date(2026, 6, 2, 2, 0, 0, 0, time.UTC))

// sks are the sort keys of the alerts raised, in order.
func sks(d Decision) []string {
	keys := []string{}
	for _, a := range d.Alerts {
		keys = append(keys, a.Key().SK)
	}
	return keys
}

// whys are the suppressed candidates as "sort key: why".
func whys(d Decision) []string {
	list := []string{}
	for _, s := range d.Suppressed {
		list = append(list, s.Alert.Key().SK+": "+s.Why)
	}
	return list
}

// judged is a factory's state as the product itself judges it.
func judged(state factory.FactoryState, infra *factory.InfraState, infraAge int64) factory.Latest {
	last := noon.Add(-time.Duration(infraAge) * time.Second)
	pipeline := factory.EvaluatePipeline(&last, &last, noon.Time)
	risk := factory.EvaluateRisk(state, infra, pipeline)
	return factory.Latest{FactoryID: "factory-c", UpdatedAt: noon, FactoryState: &state, InfraState: infra, Risk: &risk, PipelineStatus: &pipeline}
}

func healthy() *factory.InfraState {
	return &factory.InfraState{NodesTotal: 2, NodesReady: 2, PodsTotal: 2, PodsReady: 2}
}

func celsius(text string) factory.FactoryState {
	t := exact.MustParse(text)
	return factory.FactoryState{TemperatureCelsius: &t}
}

func TestRealJudgementsRaiseTheAlertsTheRulesCallFor(t *testing.T) {
	outage := healthy()
	outage.NodesReady, outage.PodsReady = 0, 0
	partial := healthy()
	partial.NodesReady = 1
	score := exact.MustParse("0.97")
	for name, test := range map[string]struct {
		latest factory.Latest
		want   []string
	}{
		"all normal":                    {judged(celsius("24.5"), healthy(), 10), []string{}},
		"35 degrees is still safe":      {judged(celsius("35"), healthy(), 10), []string{}},
		"38 degrees":                    {judged(celsius("38"), healthy(), 10), []string{"warning#temperature_critical#state_snapshot"}},
		"one node of two":               {judged(celsius("24"), partial, 10), []string{"warning#nodes_partially_not_ready#state_snapshot"}},
		"a total outage, two keys":      {judged(celsius("24"), outage, 10), []string{"danger#nodes_all_not_ready#state_snapshot", "danger#pods_all_unready#state_snapshot"}},
		"an outage with a silent edge":  {judged(celsius("24"), outage, 150), []string{"danger#pipeline_status#critical", "danger#nodes_all_not_ready#state_snapshot", "danger#pods_all_unready#state_snapshot"}},
		"silent for 61 s":               {judged(celsius("24"), healthy(), 61), []string{"warning#pipeline_status#warning"}},
		"silent for 121 s":              {judged(celsius("24"), healthy(), 121), []string{"danger#pipeline_status#critical"}},
		"silent for 301 s":              {judged(celsius("24"), healthy(), 301), []string{"danger#pipeline_status#critical"}},
		"a fire":                        {judged(factory.FactoryState{FireScore: &score}, healthy(), 10), []string{"danger#ai_score_critical#state_snapshot"}},
		"no infra_state ever":           {neverInfra(), []string{"danger#pipeline_status#critical"}},
		"no factory_state, edge silent": {factory.Latest{FactoryID: "factory-c", UpdatedAt: noon, PipelineStatus: &factory.PipelineStatus{Status: factory.Critical}}, []string{"danger#pipeline_status#critical"}},
		"nothing judged yet":            {factory.Latest{FactoryID: "factory-c", UpdatedAt: noon}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Factory(test.latest)
			require.Equal(t, test.want, sks(got))
			body, err := json.Marshal(test.latest)
			require.NoError(t, err)
			parsed, err := ParseFactory(body)
			require.NoError(t, err)
			require.Equal(t, test.want, sks(parsed), "the stored snapshot decides as the state in memory does")
			for _, a := range got.Alerts {
				require.NoError(t, a.Check())
				require.NotEmpty(t, a.Because)
				require.Equal(t, "processed/factory-c/state_snapshot/yyyy=2026/mm=06/dd=02/hh=02/2026-06-02T02:00:00.000Z.json", a.SourceKey)
			}
		})
	}
}

func neverInfra() factory.Latest {
	pipeline := factory.EvaluatePipeline(nil, nil, noon.Time)
	risk := factory.EvaluateRisk(celsius("24"), nil, pipeline)
	return factory.Latest{FactoryID: "factory-c", UpdatedAt: noon, Risk: &risk, PipelineStatus: &pipeline}
}

func snapshotJSON(pipeline, risk string) []byte {
	return fmt.Appendf(nil, `{"factory_id":"factory-b","updated_at":"2026-06-02T02:00:00.000Z","pipeline_status":{"status":%q,"latest_infra_state_age_seconds":90},"risk":%s}`, pipeline, risk)
}

func TestFactoryVectors(t *testing.T) {
	for name, test := range map[string]struct {
		pipeline, risk string
		alerts         []string
		suppressed     []string
	}{
		"safe and normal": {"normal", `{"score":100,"level":"safe","top_causes":[],"gates":[]}`, []string{}, []string{}},
		"danger by a cause without its gate": {
			"normal", `{"score":49,"level":"danger","top_causes":[{"field":"node_status","reason":"nodes_all_not_ready","value":"0/2","contribution":50,"severity":"danger"}]}`,
			[]string{"danger#nodes_all_not_ready#state_snapshot"},
			[]string{"danger#nodes_all_not_ready#state_snapshot: same_key:F1: risk.level is danger"},
		},
		"warning without causes": {"normal", `{"score":84,"level":"warning","top_causes":[]}`, []string{"warning#risk_level#state_snapshot"}, []string{}},
		"warning without causes, pipeline warning": {
			"warning", `{"score":84,"level":"warning"}`,
			[]string{"warning#pipeline_status#warning"},
			[]string{"warning#risk_level#state_snapshot: pipeline_alert_covers"},
		},
		"only freshness causes, pipeline warning": {
			"warning", `{"score":84,"level":"warning","top_causes":[{"field":"data_freshness","reason":"pipeline_status_warning","contribution":10,"severity":"warning"}],"gates":[{"name":"pipeline_status_warning","level":"warning","field":"data_freshness"}]}`,
			[]string{"warning#pipeline_status#warning"},
			[]string{"warning#risk_level#state_snapshot: pipeline_alert_covers"},
		},
		"freshness causes known by name only": {
			"critical", `{"score":0,"level":"danger","top_causes":[{"field":"x","reason":"pipeline_status_outage","severity":"danger"}],"gates":[{"name":"data_freshness_late","level":"danger"}]}`,
			[]string{"danger#pipeline_status#critical"},
			[]string{
				"danger#data_freshness_late#state_snapshot: pipeline_alert_covers", "danger#pipeline_status_outage#state_snapshot: pipeline_alert_covers",
				"danger#risk_level#state_snapshot: pipeline_alert_covers",
			},
		},
		"freshness is an ordinary cause while the pipeline is normal": {
			"normal", `{"score":49,"level":"danger","top_causes":[{"field":"data_freshness","reason":"pipeline_status_critical","contribution":41,"severity":"danger"}]}`,
			[]string{"danger#pipeline_status_critical#state_snapshot"},
			[]string{"danger#pipeline_status_critical#state_snapshot: same_key:F1: risk.level is danger"},
		},
		"a gate by its older names": {
			"normal", `{"score":100,"level":"safe","gates":[{"reason":"pods_all_unready","severity":"danger","field":"pod_health"}]}`,
			[]string{"danger#pods_all_unready#state_snapshot"},
			[]string{},
		},
		"a gate with a field only": {"normal", `{"score":100,"level":"safe","gates":[{"level":"danger","field":"pod_health"}]}`, []string{"danger#pod_health#state_snapshot"}, []string{}},
		"a cause with a field only": {
			"normal", `{"score":60,"level":"warning","top_causes":[{"field":"Node Status!","contribution":3,"severity":"warning"}]}`,
			[]string{"warning#node_status_#state_snapshot"},
			[]string{},
		},
		"the greatest contribution names the level": {
			"normal", `{"score":60,"level":"warning","top_causes":[{"field":"a","reason":"small","contribution":3,"severity":"warning"},{"field":"b","reason":"big","contribution":3.5,"severity":"warning"}]}`,
			[]string{"warning#big#state_snapshot"},
			[]string{},
		},
		"a gate without a field covers no cause": {
			"normal", `{"score":0,"level":"danger","top_causes":[{"field":"","reason":"x_weighted_penalty","contribution":90,"severity":"danger"},{"field":"temperature","reason":"temperature_critical","contribution":10}],"gates":[{"name":"nodes_all_not_ready","level":"danger"}]}`,
			[]string{"danger#x_weighted_penalty#state_snapshot", "danger#nodes_all_not_ready#state_snapshot"},
			[]string{"danger#x_weighted_penalty#state_snapshot: same_key:F1: risk.level is danger"},
		},
		"a weighted cause of a gated field is the gate's": {
			"normal", `{"score":0,"level":"danger","top_causes":[{"field":"node_status","reason":"node_status_weighted_penalty","contribution":90,"severity":"danger"},{"field":"node_status","reason":"nodes_all_not_ready","contribution":50,"severity":"danger"}],"gates":[{"name":"nodes_all_not_ready","level":"danger","field":"node_status"}]}`,
			[]string{"danger#nodes_all_not_ready#state_snapshot"},
			[]string{
				"danger#node_status_weighted_penalty#state_snapshot: gate_covers:nodes_all_not_ready",
				"danger#nodes_all_not_ready#state_snapshot: same_key:F1: risk.level is danger",
				"danger#nodes_all_not_ready#state_snapshot: same_key:F1: risk.level is danger",
			},
		},
		"an unknown level raises nothing": {"normal", `{"level":"purple"}`, []string{}, []string{}},
		"no risk yet":                     {"warning", `null`, []string{"warning#pipeline_status#warning"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseFactory(snapshotJSON(test.pipeline, test.risk))
			require.NoError(t, err)
			require.Equal(t, test.alerts, sks(d))
			require.Equal(t, test.suppressed, whys(d))
		})
	}
}

func TestTheRicherAlertOfAKeyIsKept(t *testing.T) {
	outage := healthy()
	outage.NodesReady, outage.PodsReady = 0, 0
	d := Factory(judged(celsius("24"), outage, 10))
	require.Len(t, d.Alerts[0].Details.Gates, 2)
	require.Greater(t, len(d.Alerts[0].Details.Causes), 1)
	require.Equal(t, "0", d.Alerts[0].Score.String())
	require.Equal(t, "normal", d.Alerts[0].Status)
}

func TestSnapshotsThatNameNothingAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":       `{`,
		"no factory":    `{"updated_at":"2026-06-02T02:00:00Z"}`,
		"cloud's scope": `{"factory_id":"cloud-infra","updated_at":"2026-06-02T02:00:00Z"}`,
		"no time":       `{"factory_id":"factory-a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFactory([]byte(body))
			require.Error(t, err)
		})
	}
	d, err := ParseFactory([]byte(`{"factory_id":"factory-a","risk":{"level":"danger","calculated_at":"2026-06-02T02:00:00Z"}}`))
	require.NoError(t, err)
	require.Equal(t, noon, d.Alerts[0].SourceUpdatedAt, "without updated_at the time of the judgement serves")
}

// Whatever the snapshot, keys are unique, every candidate has its reason, and a
// pipeline alert leaves no freshness alert beside it.
func TestAnySnapshotIsDecidedConsistently(t *testing.T) {
	level := rapid.SampledFrom([]string{"safe", "warning", "danger", ""})
	field := rapid.SampledFrom([]string{"node_status", "pod_health", "data_freshness", "temperature"})
	name := rapid.SampledFrom([]string{"nodes_all_not_ready", "pipeline_status_critical", "node_status_weighted_penalty", "x", ""})
	rapid.Check(t, func(t *rapid.T) {
		s := factorySnapshot{FactoryID: "factory-a", UpdatedAt: &noon, PipelineStatus: &factoryPipeline{Status: rapid.SampledFrom([]string{"normal", "warning", "critical"}).Draw(t, "pipeline")}}
		s.Risk = &factoryRisk{Level: level.Draw(t, "level")}
		for range rapid.IntRange(0, 5).Draw(t, "causes") {
			s.Risk.TopCauses = append(s.Risk.TopCauses, Cause{Field: field.Draw(t, "field"), Reason: name.Draw(t, "reason"), Severity: level.Draw(t, "severity")})
		}
		for range rapid.IntRange(0, 5).Draw(t, "gates") {
			s.Risk.Gates = append(s.Risk.Gates, Gate{Field: field.Draw(t, "field"), Name: name.Draw(t, "name"), Level: level.Draw(t, "level")})
		}
		d := s.decide()
		seen := map[string]bool{}
		for _, a := range d.Alerts {
			require.NoError(t, a.Check())
			require.False(t, seen[a.Key().SK], "key %s twice", a.Key().SK)
			seen[a.Key().SK] = true
			if s.pipeline() != "normal" && a.Reason != reasonPipeline {
				require.False(t, ofFreshness("", a.Reason), a.Reason)
			}
		}
		for _, suppressed := range d.Suppressed {
			require.NotEmpty(t, suppressed.Why)
		}
	})
}

func BenchmarkFactory(b *testing.B) {
	outage := healthy()
	outage.NodesReady, outage.PodsReady = 0, 0
	for name, latest := range map[string]factory.Latest{"normal": judged(celsius("24"), healthy(), 10), "outage": judged(celsius("24"), outage, 150)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Factory(latest)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "snapshots/s")
		})
	}
}
