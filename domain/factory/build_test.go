package factory

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is when most tests happen.
var noon = time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)

func dec(text string) *exact.Decimal {
	d := exact.MustParse(text)
	return &d
}

func at(text string) time.Time {
	t, err := ParseInstant(text)
	if err != nil {
		panic(err)
	}
	return t
}

// envelope is a message body with every required key; payload is JSON.
func envelope(source SourceType, node string, sourceTimestamp, payload string) []byte {
	id := fmt.Sprintf("factory-x:%s:%s:%s", source, node, sourceTimestamp)
	return fmt.Appendf(nil, `{"schema_version":"0.1.0","message_id":%q,"factory_id":"factory-x","node_id":%q,`+
		`"environment_type":"vm-test","input_module_type":"dummy","source_type":%q,"source_timestamp":%q,`+
		`"published_at":null,"data_plane_instance_id":"publisher-1","payload":%s}`, id, node, source, sourceTimestamp, payload)
}

const climatePayload = `{"aggregation_window_seconds":3,
	"sensor":{"sample_count":3,"temperature_celsius_avg":23.75,"humidity_percent_avg":51.2,"pressure_hpa_avg":1011.5},
	"ai_result":{"sample_count":2,"fire_score":0.02,"fall_score":0.31,"bend_score":0,"abnormal_sound":"none"}}`

const clusterPayload = `{"heartbeat":{"agent_status":"alive","last_spool_write_status":"unknown","last_spool_write_at":null,"publish_sequence":41},
	"cluster":{"cluster_name":"line-7","kubernetes_version":"v1.33.1"},
	"node_summary":{"total":2,"ready":2,"not_ready":0},
	"nodes":[
		{"node_id":"head","role":"control-plane","ready":true,"cpu_usage_percent":20.5,"memory_usage_percent":40.25,"disk_usage_percent":33.33333,"network_reachability":"ok"},
		{"node_id":"arm","role":"worker","ready":true,"cpu_usage_percent":null,"memory_usage_percent":41,"disk_usage_percent":12,"network_reachability":"ok"}],
	"workload_summary":{"total":2,"running":2,"not_running":0},
	"workloads":[
		{"namespace":"line","name":"reader","status":"Running","ready":true,"restart_count":4,"node_id":"arm"},
		{"namespace":"line","name":"eyes","status":"Running","ready":true,"restart_count":0,"node_id":"head"}],
	"devices":{
		"bme280":{"available":true,"last_seen_at":"2026-05-20T11:59:58Z"},
		"camera":{"available":true,"last_seen_at":null},
		"microphone":{"available":true,"last_seen_at":"2026-05-20T11:59:59Z"}}}`

const picturePayload = `{"event_type":"FIRE","content_type":"image/jpeg","size_bytes":1024,
	"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","s3_bucket":"pictures",
	"s3_key":"image_snapshot/factory_id=factory-x/yyyy=2026/mm=05/dd=20/hh=11/260520115955_event_FIRE.jpg",
	"local_path":"/snapshots/260520115955_event_FIRE.jpg","upload_status":"uploaded"}`

func parse(t testing.TB, body []byte, now time.Time) Message {
	t.Helper()
	m, err := ParseMessage(body, now)
	require.NoError(t, err)
	return m
}

// applied is the state after bodies, each processed at its now.
func applied(t testing.TB, now time.Time, bodies ...[]byte) Latest {
	t.Helper()
	var latest *Latest
	for _, body := range bodies {
		m := parse(t, body, now)
		block, err := Normalise(m, now)
		require.NoError(t, err)
		next := Apply(latest, m, block, now)
		latest = &next
	}
	return *latest
}

func encode(t testing.TB, document any) string {
	t.Helper()
	body, err := EncodeJSON(document)
	require.NoError(t, err)
	return string(body)
}

// requireGolden compares a document with testdata/{name}.golden.json.
func requireGolden(t *testing.T, name string, document any) {
	t.Helper()
	got, err := json.MarshalIndent(document, "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".golden.json")
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}
