package monitoring

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func number(text string) *exact.Decimal {
	d := exact.MustParse(text)
	return &d
}

func agentAt(at time.Time, metrics map[string]*exact.Decimal) Observation {
	return Observation{
		Identity: Identity{Kind: Agent, Provider: "anthropic", Account: "team-a"},
		Preset:   "cli", ObservedAt: at, Metrics: metrics,
	}
}

func resourceAt(at time.Time, unit string, metrics map[string]*exact.Decimal) Observation {
	return Observation{
		Identity:    Identity{Kind: Resource, ResourceType: "oven"},
		Preset:      "modbus",
		Definitions: []Definition{{Key: "temperature", Unit: unit, Label: "Temperature", Kind: Gauge}, {Key: "cycles", Unit: "cycles", Kind: Counter}},
		Order:       []string{"cycles"},
		ObservedAt:  at, Metrics: metrics,
	}
}

func TestObservationsThatKeepTheRulesPass(t *testing.T) {
	for name, o := range map[string]Observation{
		"agent":              agentAt(noon, map[string]*exact.Decimal{"contextUtilization": number("42.5"), "inputTokens": number("12"), "cost": number("0.000000001"), "errors": nil}),
		"agent without":      agentAt(noon, nil),
		"resource":           resourceAt(noon, "celsius", map[string]*exact.Decimal{"temperature": number("-271.5"), "cycles": nil}),
		"5 minutes ahead":    agentAt(noon.Add(MaxClockAhead), nil),
		"resource heartbeat": {Identity: Identity{Kind: Resource}, ObservedAt: noon, Heartbeat: true},
		"greatest value":     resourceAt(noon, "celsius", map[string]*exact.Decimal{"temperature": number("-999999999999999.999999999")}),
		"resource with account": {
			Identity: Identity{Kind: Resource, ResourceType: "db", Provider: "aws", Account: "123456789012"}, ObservedAt: noon,
		},
	} {
		require.NoError(t, o.Check(noon), name)
	}
}

func TestObservationsThatBreakARuleNameItsField(t *testing.T) {
	manyDefinitions := make([]Definition, MaxMetrics+1)
	for i := range manyDefinitions {
		manyDefinitions[i] = Definition{Key: fmt.Sprintf("m%d", i), Unit: "x", Kind: Gauge}
	}
	agent := func(change func(*Observation)) Observation {
		o := agentAt(noon, map[string]*exact.Decimal{"requests": number("1")})
		change(&o)
		return o
	}
	resource := func(change func(*Observation)) Observation {
		o := resourceAt(noon, "celsius", map[string]*exact.Decimal{"temperature": number("1")})
		change(&o)
		return o
	}
	metric := func(key, value string) func(*Observation) {
		return func(o *Observation) { o.Metrics = map[string]*exact.Decimal{key: number(value)} }
	}
	for _, c := range []struct {
		field, rule string
		o           Observation
	}{
		{"kind", `"agent" or "resource"`, agent(func(o *Observation) { o.Kind = "human" })},
		{"provider", "must match", agent(func(o *Observation) { o.Provider = "" })},
		{"provider", "must match", resource(func(o *Observation) { o.Account = "alone" })},
		{"account", "1 to 128", agent(func(o *Observation) { o.Account = "" })},
		{"account", "no spaces", agent(func(o *Observation) { o.Account = "a b" })},
		{"account", "path step", agent(func(o *Observation) { o.Account = ".." })},
		{"preset", "must match", agent(func(o *Observation) { o.Preset = "Claude" })},
		{"resourceType", "for an agent", agent(func(o *Observation) { o.ResourceType = "oven" })},
		{"resourceType", "1 to 64", resource(func(o *Observation) { o.ResourceType = "" })},
		{"observedAt", "must be given", agent(func(o *Observation) { o.ObservedAt = time.Time{} })},
		{"observedAt", "2020-01-01", agent(func(o *Observation) { o.ObservedAt = time.Date(2019, 12, 31, 23, 59, 59, 0, time.UTC) })},
		{"observedAt", "5 minutes ahead", agent(func(o *Observation) { o.ObservedAt = noon.Add(MaxClockAhead + 1) })},
		{"metricDefinitions", "for an agent", agent(func(o *Observation) { o.Definitions = AgentMetrics })},
		{"metricOrder", "for an agent", agent(func(o *Observation) { o.Order = []string{"requests"} })},
		{"statusMessage", "for an agent", agent(func(o *Observation) { o.StatusMessage = "fine" })},
		{"statusMessage", "at most 500", resource(func(o *Observation) { o.StatusMessage = strings.Repeat("x", 501) })},
		{"statusMessage", "with a heartbeat", resource(func(o *Observation) {
			*o = Observation{Identity: o.Identity, ObservedAt: noon, Heartbeat: true, StatusMessage: "x"}
		})},
		{"metricDefinitions", "with a heartbeat", resource(func(o *Observation) { o.Heartbeat = true })},
		{"metrics", "with a heartbeat", agent(func(o *Observation) { o.Heartbeat = true })},
		{"metricDefinitions", "at most 50", resource(func(o *Observation) { o.Definitions = manyDefinitions })},
		{"metricDefinitions[0].key", "must match", resource(func(o *Observation) { o.Definitions[0].Key = "1st" })},
		{"metricDefinitions[0].unit", "1 to 32", resource(func(o *Observation) { o.Definitions[0].Unit = "" })},
		{"metricDefinitions[0].label", "at most 100", resource(func(o *Observation) { o.Definitions[0].Label = "a\nb" })},
		{"metricDefinitions[1].kind", `"gauge" or "counter"`, resource(func(o *Observation) { o.Definitions[1].Kind = "delta" })},
		{"metricDefinitions[1].key", "defined twice", resource(func(o *Observation) { o.Definitions[1] = o.Definitions[0] })},
		{"metricOrder[0]", "key of a metric definition", resource(func(o *Observation) { o.Order = []string{"pressure"} })},
		{"metricOrder[1]", "named twice", resource(func(o *Observation) { o.Order = []string{"cycles", "cycles"} })},
		{"metricOrder", "at most 50", resource(func(o *Observation) { o.Order = make([]string, 51) })},
		{"metrics.pressure", "no metric definition", resource(metric("pressure", "1"))},
		{"metrics.speed", "not a metric of an agent", agent(metric("speed", "1"))},
		{"metrics", "keys that match", agent(metric("\x00", "1"))},
		{"metrics.temperature", "15 digits", resource(metric("temperature", "1e15"))},
		{"metrics.temperature", "15 digits", resource(metric("temperature", "-1e15"))},
		{"metrics.temperature", "9 decimal places", resource(metric("temperature", "0.0000000001"))},
		{"metrics.cycles", "negative", resource(metric("cycles", "-1"))},
		{"metrics.contextUtilization", "0 to 100", agent(metric("contextUtilization", "100.1"))},
		{"metrics.contextUtilization", "negative", agent(metric("contextUtilization", "-0.1"))},
		{"metrics.inputTokens", "whole number", agent(metric("inputTokens", "1.5"))},
	} {
		var broken *InvalidError
		require.ErrorAs(t, c.o.Check(noon), &broken, "%s %s", c.field, c.rule)
		require.Equal(t, c.field, broken.Field, broken.Rule)
		require.Contains(t, broken.Rule, c.rule)
	}
}

func TestSourceIDs(t *testing.T) {
	for _, id := range []string{"agent-1", "a#b%c", "가나", strings.Repeat("x", 128)} {
		require.NoError(t, CheckSourceID(id), id)
	}
	for _, id := range []string{"", ".", "..", "a b", "a\x00", "\xff", strings.Repeat("x", 129)} {
		require.Error(t, CheckSourceID(id), "%q", id)
	}
}

func FuzzObservation(f *testing.F) {
	for _, o := range []Observation{
		agentAt(noon, map[string]*exact.Decimal{"requests": number("1"), "errors": nil}),
		resourceAt(noon, "celsius", map[string]*exact.Decimal{"temperature": number("20.5")}),
	} {
		body, err := json.Marshal(o)
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o Observation
		if json.Unmarshal(body, &o) != nil || o.Check(noon) != nil {
			return
		}
		minute, err := Minute{}.Add(o)
		require.NoError(t, err)
		for _, r := range minute.Parts[0].Series {
			require.True(t, r.Sum.Storable())
		}
		again, err := json.Marshal(o)
		require.NoError(t, err)
		var same Observation
		require.NoError(t, json.Unmarshal(again, &same))
		require.NoError(t, same.Check(noon))
	})
}
