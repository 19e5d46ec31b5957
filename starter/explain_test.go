package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	factoryFile = "testdata/factory_state.json"
	infraFile   = "testdata/infra_state.json"
	judged      = "2026-05-20T08:28:00Z"
)

var laterNow = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func explained(t *testing.T, c explainCommand, stdin string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, c.explain(strings.NewReader(stdin), &out, laterNow))
	return out.String()
}

func TestExplanationsAreInTheShapeOfLatest(t *testing.T) {
	for name, c := range map[string]explainCommand{
		"both":         {FactoryState: factoryFile, InfraState: infraFile, At: judged},
		"factory_only": {FactoryState: factoryFile, At: judged},
		"infra_only":   {InfraState: infraFile, At: judged},
		"silent":       {FactoryState: factoryFile, InfraState: infraFile, At: "2026-05-20T17:33:00.5+09:00"},
	} {
		t.Run(name, func(t *testing.T) {
			got := explained(t, c, "")
			golden := filepath.Join("testdata", "explain_"+name+".golden.json")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

func TestAnExplanationSaysWhyAFactoryIsNotSafe(t *testing.T) {
	var state struct {
		FactoryState   map[string]any `json:"factory_state"`
		InfraState     map[string]any `json:"infra_state"`
		PipelineStatus struct {
			Status string `json:"status"`
		} `json:"pipeline_status"`
		Risk struct {
			Score     json.Number `json:"score"`
			BaseScore json.Number `json:"base_score"`
			Level     string      `json:"level"`
			BaseLevel string      `json:"base_level"`
			Gates     []struct {
				Name string `json:"name"`
			} `json:"gates"`
			TopCauses []struct {
				Reason string `json:"reason"`
			} `json:"top_causes"`
		} `json:"risk"`
	}
	got := explained(t, explainCommand{FactoryState: factoryFile, InfraState: infraFile, At: judged}, "")
	require.NoError(t, json.Unmarshal([]byte(got), &state))
	require.Equal(t, "normal", state.PipelineStatus.Status)
	require.Equal(t, []string{"64.68", "64.68", "warning", "warning"}, []string{
		state.Risk.Score.String(), state.Risk.BaseScore.String(), state.Risk.Level, state.Risk.BaseLevel,
	})
	var gates, causes []string
	for _, gate := range state.Risk.Gates {
		gates = append(gates, gate.Name)
	}
	for _, cause := range state.Risk.TopCauses {
		causes = append(causes, cause.Reason)
	}
	require.Equal(t, []string{"temperature_critical", "ai_score_warning", "nodes_partially_not_ready", "required_device_unavailable"}, gates)
	require.Equal(t, []string{
		"nodes_partially_not_ready", "ai_score_warning", "ai_event_rate_weighted_penalty", "temperature_weighted_penalty", "temperature_critical",
	}, causes)
	require.Nil(t, state.FactoryState["pressure_hpa"], "what was not measured stays null")
	require.Contains(t, state.FactoryState, "pressure_hpa")
	require.Equal(t, "2026-05-20T08:27:50Z", state.InfraState["source_timestamp"], "times are in UTC")
	require.NotContains(t, strings.ReplaceAll(got, `"value": "`, ""), `: "64`, "numbers are JSON numbers")
}

func TestAMessageIsReadFromStandardInput(t *testing.T) {
	body, err := os.ReadFile(infraFile)
	require.NoError(t, err)
	want := explained(t, explainCommand{FactoryState: factoryFile, InfraState: infraFile, At: judged}, "")
	got := explained(t, explainCommand{FactoryState: factoryFile, InfraState: "-", At: judged}, string(body))
	require.Equal(t, want, got)
}

func TestWithoutATimeMessagesAreJudgedNow(t *testing.T) {
	now := explained(t, explainCommand{FactoryState: factoryFile}, "")
	require.Equal(t, now, explained(t, explainCommand{FactoryState: factoryFile, At: laterNow.Format(time.RFC3339)}, ""))
	require.Contains(t, now, `"pipeline_status_critical"`)
}

func TestBadInputNamesTheFieldAndTheRule(t *testing.T) {
	body, err := os.ReadFile(factoryFile)
	require.NoError(t, err)
	replaced := func(old, with string) string {
		require.Contains(t, string(body), old)
		return strings.Replace(string(body), old, with, 1)
	}
	for name, c := range map[string]struct{ stdin, want string }{
		"not JSON":             {`{"schema_version":`, "body: must be JSON"},
		"empty":                {"", "body: must be JSON"},
		"two values":           {`{} {}`, "body: must be one JSON value"},
		"not an object":        {`[1]`, "body: must be a JSON object"},
		"huge":                 {strings.Repeat(" ", 128*1024) + "{}", "body: must be at most 128 KiB"},
		"a missing key":        {replaced(`"node_id":"worker2",`, ""), "node_id: is required"},
		"a wrong type":         {replaced(`"schema_version":"0.1.0"`, `"schema_version":1`), "schema_version: must be a string"},
		"payload not object":   {`{"schema_version":"1","message_id":"m","factory_id":"f","node_id":"n","source_type":"factory_state","source_timestamp":"2026-05-20T08:27:57Z","published_at":null,"payload":[]}`, "payload: must be an object"},
		"unknown source type":  {replaced(`"source_type":"factory_state"`, `"source_type":"weather"`), "source_type: must be factory_state, infra_state or image_snapshot"},
		"another source type":  {replaced(`"source_type":"factory_state"`, `"source_type":"infra_state"`), "source_type: must be factory_state, not infra_state"},
		"a slash in an id":     {replaced(`"factory_id":"factory-t"`, `"factory_id":"a/b"`), "factory_id: must match"},
		"dots in an id":        {replaced(`"message_id":"factory-t:`, `"message_id":"..:`), "message_id: must match"},
		"a reserved id":        {replaced(`"factory_id":"factory-t"`, `"factory_id":"cloud-infra"`), "factory_id: is a reserved name"},
		"1,000 characters":     {replaced(`"node_id":"worker2"`, `"node_id":"`+strings.Repeat("n", 1000)+`"`), "node_id: must match"},
		"a time without zone":  {replaced(`"source_timestamp":"2026-05-20T08:27:57Z"`, `"source_timestamp":"2026-05-20T08:27:57"`), "source_timestamp: must be an RFC 3339 instant with a zone"},
		"1970":                 {replaced(`"source_timestamp":"2026-05-20T08:27:57Z"`, `"source_timestamp":"1970-01-01T00:00:00Z"`), "source_timestamp: must not be before 2020-01-01"},
		"2100":                 {replaced(`"source_timestamp":"2026-05-20T08:27:57Z"`, `"source_timestamp":"2100-01-01T00:00:00Z"`), "source_timestamp: must not be more than 5 minutes ahead"},
		"5 min 1 s ahead":      {replaced(`"source_timestamp":"2026-05-20T08:27:57Z"`, `"source_timestamp":"2026-05-20T08:33:01Z"`), "source_timestamp: must not be more than 5 minutes ahead"},
		"control in a node id": {replaced(`"node_id":"worker2"`, `"node_id":"a\u0000"`), "node_id: must match"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := (&explainCommand{FactoryState: "-", At: judged}).explain(strings.NewReader(c.stdin), &out, laterNow)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--factory-state")
			require.Empty(t, out.String(), "nothing is printed")
		})
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.json")
	body, err := os.ReadFile(infraFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, bytes.ReplaceAll(body, []byte("factory-t"), []byte("factory-u")), 0o600))
	for name, c := range map[string]struct {
		command explainCommand
		want    string
	}{
		"neither file":         {explainCommand{}, "--factory-state FILE, --infra-state FILE or both"},
		"no such file":         {explainCommand{FactoryState: "testdata/none.json"}, "--factory-state: open message: open testdata/none.json"},
		"a folder":             {explainCommand{InfraState: "testdata"}, "--infra-state: read message"},
		"both from stdin":      {explainCommand{FactoryState: "-", InfraState: "-"}, "standard input can be only one"},
		"a time without zone":  {explainCommand{FactoryState: factoryFile, At: "2026-05-20T08:28:00"}, `--at: "2026-05-20T08:28:00" must be an RFC 3339 instant`},
		"messages of two":      {explainCommand{FactoryState: factoryFile, InfraState: other, At: judged}, "messages of two factories: factory-u and factory-t"},
		"infra as factory":     {explainCommand{FactoryState: infraFile, At: judged}, "source_type: must be factory_state, not infra_state"},
		"before the message":   {explainCommand{FactoryState: factoryFile, At: "2026-05-20T08:00:00Z"}, "source_timestamp: must not be more than 5 minutes ahead"},
		"an impossible moment": {explainCommand{FactoryState: factoryFile, At: "2026-02-30T00:00:00Z"}, "--at"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.command.explain(strings.NewReader("{}"), new(bytes.Buffer), laterNow)
			require.ErrorContains(t, err, c.want)
		})
	}
}
