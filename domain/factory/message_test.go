package factory

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// edited is a valid message with one key replaced; a nil value removes the key.
func edited(t testing.TB, key string, value any) []byte {
	t.Helper()
	var message map[string]any
	decoder := json.NewDecoder(bytes.NewReader(envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&message))
	if value == nil {
		delete(message, key)
	} else {
		message[key] = value
	}
	body, err := json.Marshal(message)
	require.NoError(t, err)
	return body
}

func TestAValidMessageIsRead(t *testing.T) {
	m := parse(t, edited(t, "source_timestamp", "2026-05-20T20:59:59.250+09:00"), noon)
	require.Equal(t, "factory-x", m.FactoryID)
	require.Equal(t, "arm", m.NodeID)
	require.Equal(t, "vm-test", m.EnvironmentType)
	require.Equal(t, SourceFactoryState, m.SourceType)
	require.Equal(t, at("2026-05-20T11:59:59.25Z"), m.SourceTimestamp)
	require.Equal(t, time.UTC, m.SourceTimestamp.Location())
	require.Contains(t, m.Payload, "sensor")
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	_, err := ParseMessage(edited(t, "received_at", 1779249597000), noon)
	require.NoError(t, err)
}

func TestEveryRequiredKeyIsMissed(t *testing.T) {
	for _, key := range requiredKeys {
		_, err := ParseMessage(edited(t, key, nil), noon)
		requireInvalid(t, err, key)
	}
	for _, key := range []string{"environment_type", "input_module_type", "data_plane_instance_id"} {
		_, err := ParseMessage(edited(t, key, nil), noon)
		require.NoError(t, err, key)
	}
}

func TestWrongKindsAreRefusedByName(t *testing.T) {
	wrong := []any{json.RawMessage("null"), 7, true, []any{}, map[string]any{}}
	for _, key := range []string{"schema_version", "message_id", "factory_id", "node_id", "source_type", "source_timestamp"} {
		for _, value := range wrong {
			_, err := ParseMessage(edited(t, key, value), noon)
			requireInvalid(t, err, key, value)
		}
	}
	for _, value := range []any{json.RawMessage("null"), 7, "text", []any{map[string]any{}}} {
		_, err := ParseMessage(edited(t, "payload", value), noon)
		requireInvalid(t, err, "payload", value)
	}
	for _, value := range []any{7, true, []any{}} {
		_, err := ParseMessage(edited(t, "published_at", value), noon)
		requireInvalid(t, err, "published_at", value)
	}
	m, err := ParseMessage(edited(t, "environment_type", 7), noon)
	require.NoError(t, err, "not required, so a wrong kind is as if it were missing")
	require.Empty(t, m.EnvironmentType)
}

func TestBodiesThatAreNoJSONObject(t *testing.T) {
	for _, body := range []string{
		"", " ", "null", "7", `"text"`, "[]", "{", `{"a":1}{"b":2}`, `{"a":1} x`, `{'a':1}`, "\xff\xfe{}", "{\"a\":\x00}",
		`{"a":NaN}`, `{"a":01}`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000),
	} {
		_, err := ParseMessage([]byte(body), noon)
		requireInvalid(t, err, "body", body)
		require.Empty(t, PeekMessageID([]byte(body)))
	}
}

func TestABodyBeyondTheBrokersLimitIsRefused(t *testing.T) {
	body := edited(t, "padding", "")
	padded := func(size int) []byte { return append(slicesRepeat(' ', size-len(body)), body...) }
	_, err := ParseMessage(padded(MaxBody), noon)
	require.NoError(t, err)
	_, err = ParseMessage(padded(MaxBody+1), noon)
	requireInvalid(t, err, "body")
}

func slicesRepeat(b byte, count int) []byte { return bytes.Repeat([]byte{b}, count) }

// hostile are ids that would escape a key segment or a log line.
var hostile = []string{
	"", "/", "a/b", "..", "a..b/", "../../etc", "a#b", "a b", "a\x00b", "a\nb", "a\tb", "ä", "a\u202eb", "a+b", "a*b", "%2e%2e", "\\", "a\n",
	strings.Repeat("a", 1000), "a\xffb",
}

func TestHostileIDsAreRefused(t *testing.T) {
	for _, key := range []string{"factory_id", "node_id", "message_id"} {
		for _, id := range hostile {
			if key == "node_id" && id == ".." {
				continue
			}
			_, err := ParseMessage(edited(t, key, id), noon)
			requireInvalid(t, err, key, id)
		}
	}
}

func TestIDsAtTheEdgesOfTheirAlphabets(t *testing.T) {
	for id, valid := range map[string]bool{
		"a": true, "0": true, "factory-a": true, "a-": true, strings.Repeat("a", 64): true,
		"-a": false, "A": false, "a_b": false, "a.b": false, strings.Repeat("a", 65): false,
		"cloud-infra": false, "artifacts": false, "observability": false, "app.x": false, "artifact": true,
	} {
		require.Equal(t, valid, CheckFactoryID(id) == nil, id)
	}
	for id, valid := range map[string]bool{"cluster": true, "Node_1.local-x": true, strings.Repeat("n", 128): true, strings.Repeat("n", 129): false, "a:b": false} {
		require.Equal(t, valid, CheckNodeID(id) == nil, id)
	}
	for id, valid := range map[string]bool{
		"factory-a:factory_state:worker2:2026-05-19T03:58:17Z": true, strings.Repeat("m", 256): true, strings.Repeat("m", 257): false,
		"a..b": false, ".": true, "a.b": true, ".a": true,
	} {
		require.Equal(t, valid, CheckMessageID(id) == nil, id)
	}
}

func TestUnknownSourceTypesAreRefused(t *testing.T) {
	for _, source := range []string{"", "FACTORY_STATE", "factory_state ", "state_snapshot", "risk_score", "../raw"} {
		_, err := ParseMessage(edited(t, "source_type", source), noon)
		requireInvalid(t, err, "source_type", source)
	}
	for _, source := range SourceTypes {
		require.True(t, source.Valid())
	}
}

func TestSourceTimestamps(t *testing.T) {
	for text, want := range map[string]string{
		"2026-05-20T11:59:59Z":                "2026-05-20T11:59:59Z",
		"2026-05-20t11:59:59z":                "2026-05-20T11:59:59Z",
		"2026-05-20T11:59:59.123456789Z":      "2026-05-20T11:59:59.123456789Z",
		"2026-05-20T11:59:59.1234567899Z":     "2026-05-20T11:59:59.123456789Z",
		"2026-05-20T20:59:59+09:00":           "2026-05-20T11:59:59Z",
		"2026-05-20T17:44:59+05:45":           "2026-05-20T11:59:59Z",
		"2026-05-20T11:59:59-00:00":           "2026-05-20T11:59:59Z",
		"2026-05-19T12:29:59.5-23:30":         "2026-05-20T11:59:59.5Z",
		"2020-01-01T00:00:00Z":                "2020-01-01T00:00:00Z",
		"2020-01-01T08:59:59.999999999+08:59": "2020-01-01T00:00:59.999999999Z",
		"2026-05-20T12:05:00Z":                "2026-05-20T12:05:00Z",
	} {
		m, err := ParseMessage(edited(t, "source_timestamp", text), noon)
		require.NoError(t, err, text)
		require.Equal(t, want, m.SourceTimestamp.Format(time.RFC3339Nano), text)
	}
}

func TestSourceTimestampsThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "now", "2026-05-20", "2026-05-20T11:59:59", "2026-05-20 11:59:59Z", "2026-05-20T11:59Z", "2026-05-20T11:59:59,5Z",
		"2026-05-20T11:59:59+0900", "2026-05-20T11:59:59+09", "2026-05-20T1:59:59Z", "2026-05-20T11:59:60Z", "2026-05-20T24:00:00Z",
		"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-05-20T11:59:59+24:00", "2026-05-20T11:59:59.Z", " 2026-05-20T11:59:59Z",
		"2026-05-20T11:59:59Z\n", "1779278399", "0000-00-00T00:00:00Z", "-2026-05-20T11:59:59Z", "12026-05-20T11:59:59Z",
		"1970-01-01T00:00:00Z", "2019-12-31T23:59:59.999999999Z", "2100-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		"2026-05-20T12:05:00.000000001Z", "2026-05-20T12:05:01Z",
	} {
		_, err := ParseMessage(edited(t, "source_timestamp", text), noon)
		requireInvalid(t, err, "source_timestamp", text)
	}
}

func TestTheTopicMustAgree(t *testing.T) {
	m := parse(t, envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload), noon)
	require.NoError(t, m.CheckTopic("aegis/factory-x/factory_state"))
	for topic, field := range map[string]string{
		"aegis/factory-y/factory_state":   "factory_id",
		"aegis/factory-x/infra_state":     "source_type",
		"aegis/factory-x":                 "topic",
		"aegis/factory-x/factory_state/":  "topic",
		"other/factory-x/factory_state":   "topic",
		"/aegis/factory-x/factory_state":  "topic",
		"":                                "topic",
		"AEGIS/factory-x/factory_state":   "topic",
		"aegis/factory-x/factory_state/x": "topic",
	} {
		requireInvalid(t, m.CheckTopic(topic), field, topic)
	}
}

func TestTopicLevelsTakesWhateverThereIs(t *testing.T) {
	for topic, want := range map[string][2]string{
		"":              {"", ""},
		"aegis":         {"", ""},
		"aegis/f":       {"f", ""},
		"aegis/f/s":     {"f", "s"},
		"aegis/f/s/x/y": {"f", "s"},
		"aegis//s":      {"", "s"},
	} {
		factoryID, source := TopicLevels(topic)
		require.Equal(t, want, [2]string{factoryID, source}, topic)
	}
}

func TestPeekMessageIDReadsBrokenMessages(t *testing.T) {
	require.Equal(t, "m-1", PeekMessageID([]byte(`{"message_id":"m-1","payload":7}`)))
	require.Empty(t, PeekMessageID([]byte(`{"message_id":7}`)))
	require.Empty(t, PeekMessageID([]byte(`{"message_id":"m-1"`)))
}

func FuzzParseMessage(f *testing.F) {
	for _, source := range SourceTypes {
		f.Add(envelope(source, "arm", "2026-05-20T11:59:59Z", climatePayload), "aegis/factory-x/factory_state")
	}
	f.Add(envelope(SourceInfraState, "cluster", "2026-05-20T11:59:59Z", clusterPayload), "aegis/a/b/c")
	f.Add(envelope(SourceImageSnapshot, "arm", "2026-05-20T11:59:59Z", picturePayload), "aegis")
	f.Add([]byte(`{"message_id":"../../x"}`), "aegis/../..")
	f.Fuzz(func(t *testing.T, body []byte, topic string) {
		leaf := RawLeaf(PeekMessageID(body), "trace-1")
		factoryID, source := TopicLevels(topic)
		requireHarmlessKey(t, RawKey(factoryID, source, noon, leaf), 7)
		m, err := ParseMessage(body, noon)
		if err != nil {
			requireInvalidAny(t, err)
			return
		}
		require.Equal(t, m.MessageID, leaf, "the leaf of a valid message is its id")
		requireHarmlessKey(t, ProcessedKey(m.FactoryID, string(m.SourceType), m.SourceTimestamp, m.MessageID), 8)
		block, err := Normalise(m, noon)
		if err != nil {
			requireInvalidAny(t, err)
			return
		}
		latest := Apply(nil, m, block, noon)
		require.LessOrEqual(t, len(encode(t, latest)), MaxLatestBytes)
	})
}

func requireInvalidAny(t *testing.T, err error) {
	t.Helper()
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	require.NotEmpty(t, invalid.Field)
}

func BenchmarkParseMessage(b *testing.B) {
	for name, body := range map[string][]byte{
		"factory_state": envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload),
		"infra_state":   envelope(SourceInfraState, "cluster", "2026-05-20T11:59:59Z", clusterPayload),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := ParseMessage(body, noon); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
