package alertcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"millrace/domain/alert"
	"millrace/domain/factory"
	storage "millrace/storage/alert"
	"millrace/storage/storagetest"
)

func parse(t *testing.T, args ...string) (*Command, error) {
	t.Helper()
	var c Command
	parser, err := kong.New(&c, kong.Exit(func(int) { t.Error("exits") }))
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return &c, err
}

const outage = `{"factory_id":"factory-c","updated_at":"2026-06-02T02:00:00.000Z","pipeline_status":{"status":"critical","latest_infra_state_age_seconds":150},
"risk":{"score":0,"level":"danger","top_causes":[
 {"field":"data_freshness","reason":"pipeline_status_critical","value":"critical","contribution":90,"severity":"danger"},
 {"field":"node_status","reason":"nodes_all_not_ready","value":"0/2","contribution":50,"severity":"danger"}],
"gates":[{"name":"pipeline_status_critical","level":"danger","field":"data_freshness"},{"name":"nodes_all_not_ready","level":"danger","field":"node_status"}]}}`

const cloud = `{"updated_at":"2026-06-02T02:00:00.000Z",
"fast":{"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"warning","lambdas":[{"name":"f","errors_5m":1}]}},
"slow":{"eks_management":{"status":"critical","pods":{"status":"critical"}},"storage_freshness":{"status":"normal"}}}`

// tested runs "alert test" on a body.
func tested(t *testing.T, body string, args ...string) (map[string][]map[string]any, error) {
	t.Helper()
	c, err := parse(t, append([]string{"test", "-"}, args...)...)
	require.NoError(t, err)
	var out bytes.Buffer
	if err := c.Test.test(strings.NewReader(body), &out); err != nil {
		return nil, err
	}
	var verdict map[string][]map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &verdict), out.String())
	return verdict, nil
}

func keysOf(list []map[string]any) []string {
	keys := []string{}
	for _, element := range list {
		keys = append(keys, fmt.Sprint(element["sk"]))
	}
	return keys
}

func TestASnapshotOfAnotherKindIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ body, source, problem string }{
		"a factory as fast":    {outage, "fast", "must be factory"},
		"a factory as slow":    {outage, "slow", "must be factory"},
		"the cloud as factory": {cloud, "factory", "must be fast or slow"},
		"slow as fast":         {`{"updated_at":"2026-06-02T02:00:00Z","slow":{}}`, "fast", "must be slow"},
		"fast as slow":         {`{"updated_at":"2026-06-02T02:00:00Z","fast":{}}`, "slow", "must be fast"},
		"a list":               {`[]`, "auto", "must be a JSON object"},
		"a status of a wrong type": {
			`{"updated_at":"2026-06-02T02:00:00Z","fast":{"data_pipeline":{"status":3}}}`, "fast", "fast.data_pipeline.status: must not be a JSON number",
		},
		"a pipeline status of a wrong type": {
			`{"factory_id":"factory-a","updated_at":"2026-06-02T02:00:00Z","pipeline_status":"late"}`, "auto", "pipeline_status: must not be a JSON string",
		},
		"a factory id of a wrong type": {`{"factory_id":5}`, "auto", "factory_id: must not be a JSON number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tested(t, test.body, "--source="+test.source)
			require.ErrorContains(t, err, test.problem)
		})
	}
}

func TestASnapshotIsJudgedOffline(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		args []string
		want []string
	}{
		"a factory":                  {outage, nil, []string{"danger#pipeline_status#critical", "danger#nodes_all_not_ready#state_snapshot"}},
		"a factory, told":            {outage, []string{"--source=factory"}, []string{"danger#pipeline_status#critical", "danger#nodes_all_not_ready#state_snapshot"}},
		"both halves of the cloud":   {cloud, nil, []string{"warning#data_pipeline_lambda_errors#fast", "danger#pods_critical#slow"}},
		"one half":                   {cloud, []string{"--source=fast"}, []string{"warning#data_pipeline_lambda_errors#fast"}},
		"the other half":             {cloud, []string{"--source=slow"}, []string{"danger#pods_critical#slow"}},
		"what is missing is unknown": {`{"updated_at":"2026-06-02T02:00:00Z"}`, []string{"--source=fast"}, []string{"warning#data_pipeline_unknown#fast", "warning#backend_runtime_unknown#fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := tested(t, test.body, test.args...)
			require.NoError(t, err)
			require.Equal(t, test.want, keysOf(verdict["alerts"]))
			for _, a := range verdict["alerts"] {
				require.Contains(t, []any{"ALERT#factory-c", "ALERT#cloud-infra"}, a["pk"])
				require.NotEmpty(t, a["severity"])
				require.NotEmpty(t, a["reason"])
				require.Contains(t, a["text"], "AEGIS Alert | ")
			}
			for _, s := range verdict["suppressed"] {
				require.NotEmpty(t, s["why"])
				require.NotEmpty(t, s["reason"])
			}
		})
	}
}

func TestAlertsAndSuppressionsAreListsEvenWhenEmpty(t *testing.T) {
	verdict, err := tested(t, `{"factory_id":"factory-a","updated_at":"2026-06-02T02:00:00Z","risk":{"level":"safe"}}`)
	require.NoError(t, err)
	require.NotNil(t, verdict["alerts"])
	require.NotNil(t, verdict["suppressed"])
	require.Empty(t, verdict["alerts"])
}

func TestTheConfirmationAndTheLanguageAreShown(t *testing.T) {
	verdict, err := tested(t, cloud, "--source=fast", "--language=en")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"observations": 2.0, "within_seconds": 90.0}, verdict["alerts"][0]["confirmation"])
	require.Contains(t, verdict["alerts"][0]["text"], "What is wrong?")
	require.Equal(t, []string{"warning#data_pipeline_warning#fast"}, keysOf(verdict["suppressed"]))
}

func TestWhatIsNoSnapshotIsRefused(t *testing.T) {
	for body, problem := range map[string]string{
		`{`: "read snapshot", `{}`: "--source", `{"factory_id":"A/B"}`: "factory_id", strings.Repeat(" ", maxSnapshot+1): "longer",
	} {
		_, err := tested(t, body)
		require.ErrorContains(t, err, problem)
	}
	_, err := parse(t, "test", "x", "--source=lambda")
	require.Error(t, err)
	require.Error(t, TestCommand{Snapshot: "/no/such/file"}.test(nil, nil))
	file := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, os.WriteFile(file, []byte(outage), 0o600))
	var out bytes.Buffer
	require.NoError(t, TestCommand{Snapshot: file, Source: "auto"}.test(nil, &out))
	require.Contains(t, out.String(), "nodes_all_not_ready")
}

var now = time.Date(2026, 6, 2, 12, 0, 0, 0, time.UTC)

func newStore(t *testing.T) storage.Store {
	return storage.Store{Status: storagetest.Table(t, storagetest.Factory)}
}

func TestAlertsAreListed(t *testing.T) {
	s := newStore(t)
	for i, scope := range []string{"factory-a", "cloud-infra", "app.shop", "factory-a"} {
		at := factory.MillisOf(now.Add(-time.Duration(i) * 12 * time.Hour))
		a := alert.Alert{Scope: scope, Severity: alert.Danger, Reason: "r", Status: "s", SourceUpdatedAt: at}
		require.NoError(t, s.Log(t.Context(), alert.NewRecord(a, alert.Suppressed, fmt.Sprintf("why_%d", i), "detail", at)))
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"the last day":     {[]string{"--to=2026-06-02T12:00:01Z"}, []string{"why_0", "why_1"}},
		"one scope":        {[]string{"--scope=factory-a", "--since=48h", "--to=2026-06-02T12:00:01Z"}, []string{"why_0", "why_3"}},
		"an application":   {[]string{"--scope=app.shop", "--since=48h"}, []string{"why_2"}},
		"from and to":      {[]string{"--from=2026-06-01T00:00:00Z", "--to=2026-06-02T12:00:00Z"}, []string{"why_1", "why_3"}},
		"the newest alone": {[]string{"--limit=1", "--to=2026-06-02T12:00:01Z"}, []string{"why_0"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(t, append([]string{"list"}, test.args...)...)
			require.NoError(t, err)
			var text, document bytes.Buffer
			require.NoError(t, c.List.list(t.Context(), s, now, &text))
			lines := strings.Split(strings.TrimSpace(text.String()), "\n")
			require.Len(t, lines, 1+len(test.want))
			c.List.JSON = true
			require.NoError(t, c.List.list(t.Context(), s, now, &document))
			var list struct{ Alerts []alert.Record }
			require.NoError(t, json.Unmarshal(document.Bytes(), &list))
			whys := []string{}
			for i, r := range list.Alerts {
				whys = append(whys, r.Why)
				require.Contains(t, lines[1+i], r.Why)
			}
			require.Equal(t, test.want, whys)
		})
	}
	for _, args := range [][]string{{"--scope=A/B"}, {"--limit=0"}} {
		_, err := parse(t, append([]string{"list"}, args...)...)
		require.Error(t, err)
	}
	for _, args := range [][]string{{"--from=x"}, {"--to=x"}, {"--from=2026-06-02T12:00:00Z"}} {
		c, err := parse(t, append([]string{"list"}, args...)...)
		require.NoError(t, err)
		require.ErrorContains(t, c.List.list(t.Context(), s, now, nil), strings.SplitN(args[0], "=", 2)[0])
	}
}

func TestASilenceIsAddedListedAndEnded(t *testing.T) {
	s := newStore(t)
	c, err := parse(t, "silence", "factory-a", "--for=2h", "--why=maintenance", "--by=kim", "--reason=pods_all_unready")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, c.Silence.Add.add(t.Context(), s, now, &out))
	require.Contains(t, out.String(), "pods_all_unready of factory-a silenced until 2026-06-02T14:00:00.000Z")
	silences, err := s.Silences(t.Context(), "factory-a", now)
	require.NoError(t, err)
	require.Len(t, silences, 1)

	out.Reset()
	require.NoError(t, ListSilences{Scope: "factory-a"}.list(t.Context(), s, now, &out))
	require.Contains(t, out.String(), silences[0].ID+"  pods_all_unready of factory-a until 2026-06-02T14:00:00.000Z by kim: maintenance")
	c, err = parse(t, "silence", "end", "factory-a", silences[0].ID)
	require.NoError(t, err)
	require.NoError(t, c.Silence.End.end(t.Context(), s, &out))
	out.Reset()
	require.NoError(t, ListSilences{Scope: "factory-a"}.list(t.Context(), s, now, &out))
	require.Empty(t, out.String())
}

func TestSilencesThatCannotBeAreRefused(t *testing.T) {
	for problem, c := range map[string]AddSilence{
		"--for":   {Scope: "factory-a", Why: "x"},
		"scope":   {Scope: "A/B", Why: "x", For: time.Hour},
		"until":   {Scope: "factory-a", Why: "x", For: 31 * 24 * time.Hour},
		"--until": {Scope: "factory-a", Why: "x", Until: "tomorrow"},
		"why":     {Scope: "factory-a", For: time.Hour},
		"reason":  {Scope: "factory-a", Why: "x", For: time.Hour, Reason: "A b"},
	} {
		require.ErrorContains(t, c.add(t.Context(), storage.Store{}, now, nil), problem)
	}
	s, err := AddSilence{Scope: "factory-a", Why: "x", Until: "2026-06-02T13:00:00Z"}.silence(now)
	require.NoError(t, err)
	require.NotEmpty(t, s.CreatedBy, "the operating system's user")
	_, err = parse(t, "silence", "factory-a", "--for=1h")
	require.ErrorContains(t, err, "--why")
	_, err = parse(t, "silence", "factory-a", "--for=1h", "--until=x", "--why=x")
	require.Error(t, err)
	require.Error(t, EndSilence{Scope: "factory-a", ID: "?"}.end(t.Context(), storage.Store{}, nil))
	require.Error(t, ListSilences{Scope: "?"}.list(t.Context(), storage.Store{}, now, nil))
}
