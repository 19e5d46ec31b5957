package factory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

// outgoing is a message as a generator writes it, changed by the given edit.
func outgoing(t *testing.T, edit func(map[string]any)) []byte {
	t.Helper()
	envelope := map[string]any{
		"schema_version":         "0.1.0",
		"message_id":             "factory-b:factory_state:worker1:2026-11-30T12:00:03Z",
		"factory_id":             "factory-b",
		"node_id":                "worker1",
		"environment_type":       "vm-mac",
		"input_module_type":      "dummy",
		"source_type":            "factory_state",
		"source_timestamp":       "2026-11-30T12:00:03Z",
		"published_at":           nil,
		"data_plane_instance_id": "generator-1",
		"payload":                map[string]any{"sensor": map[string]any{"temperature_celsius_avg": json.Number("24.50")}},
	}
	if edit != nil {
		edit(envelope)
	}
	body, err := json.Marshal(envelope)
	require.NoError(t, err)
	return body
}

func TestParseOutgoingTakesAMessageOfTheContract(t *testing.T) {
	t.Parallel()
	message, err := factory.ParseOutgoing(outgoing(t, nil))
	require.NoError(t, err)
	require.Equal(t, "factory-b:factory_state:worker1:2026-11-30T12:00:03Z", message.MessageID)
	require.Equal(t, "aegis/factory-b/factory_state", message.Topic())
}

func TestParseOutgoingWantsEveryEnvelopeKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"schema_version", "message_id", "factory_id", "node_id", "environment_type", "input_module_type",
		"source_type", "source_timestamp", "published_at", "data_plane_instance_id", "payload",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			_, err := factory.ParseOutgoing(outgoing(t, func(m map[string]any) { delete(m, key) }))
			requireOutboxInvalid(t, err, key, "is required")
		})
	}
}

func TestParseOutgoingNamesTheFieldAndTheRule(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(map[string]any) {
		return func(m map[string]any) { m[key] = value }
	}
	cases := map[string]struct {
		edit  func(map[string]any)
		field string
	}{
		"empty factory_id":       {set("factory_id", ""), "factory_id"},
		"factory_id is a number": {set("factory_id", 7), "factory_id"},
		"factory_id leaves its topic level": {
			set("factory_id", "factory-b/jobs"), "factory_id",
		},
		"factory_id is a wildcard":     {set("factory_id", "#"), "factory_id"},
		"empty message_id":             {set("message_id", ""), "message_id"},
		"message_id is null":           {set("message_id", nil), "message_id"},
		"message_id leaves its folder": {set("message_id", "../../etc/passwd"), "message_id"},
		"message_id too long":          {set("message_id", strings.Repeat("a", 1000)), "message_id"},
		"unknown source_type":          {set("source_type", "heartbeat"), "source_type"},
		"payload is a list":            {set("payload", []any{}), "payload"},
		"payload is null":              {set("payload", nil), "payload"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := factory.ParseOutgoing(outgoing(t, c.edit))
			requireOutboxInvalid(t, err, c.field, "")
		})
	}
}

func TestParseOutgoingRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{", "null", "[]", `"text"`, "{}{}", strings.Repeat(" ", factory.MaxBody) + "{}"} {
		_, err := factory.ParseOutgoing([]byte(body))
		requireOutboxInvalid(t, err, "body", "")
	}
}

func TestParseOutgoingLeavesOtherValuesToTheCloud(t *testing.T) {
	t.Parallel()
	_, err := factory.ParseOutgoing(outgoing(t, func(m map[string]any) {
		m["source_timestamp"] = "1970-01-01"
		m["node_id"] = ""
		m["something_new"] = true
	}))
	require.NoError(t, err)
}

func TestWireStampsAndIsCanonical(t *testing.T) {
	t.Parallel()
	body := []byte(`{ "payload" : {"z":1.50, "a":"<é&>"}, "source_type":"infra_state", "message_id":"m",
		"factory_id":"factory-c", "node_id":"cluster", "environment_type":"vm-windows", "input_module_type":"dummy",
		"schema_version":"0.1.0", "source_timestamp":"2026-11-30T12:00:00Z", "published_at":null,
		"data_plane_instance_id":"generator" }` + "\n")
	message, err := factory.ParseOutgoing(body)
	require.NoError(t, err)
	zone := time.FixedZone("KST", 9*60*60)
	wire, err := message.Wire(time.Date(2026, 11, 30, 21, 0, 5, 999, zone), "publisher-1")
	require.NoError(t, err)
	require.Equal(t, `{"data_plane_instance_id":"publisher-1","environment_type":"vm-windows","factory_id":"factory-c",`+
		`"input_module_type":"dummy","message_id":"m","node_id":"cluster","payload":{"a":"<é&>","z":1.50},`+
		`"published_at":"2026-11-30T12:00:05Z","schema_version":"0.1.0","source_timestamp":"2026-11-30T12:00:00Z",`+
		`"source_type":"infra_state"}`, string(wire))
}

func TestWireRefusesABodyThatTheBrokerWouldRefuse(t *testing.T) {
	t.Parallel()
	empty := len(outgoing(t, func(m map[string]any) { m["payload"] = map[string]any{"pad": ""} }))
	message, err := factory.ParseOutgoing(outgoing(t, func(m map[string]any) {
		m["payload"] = map[string]any{"pad": strings.Repeat("x", factory.MaxBody-empty)}
	}))
	require.NoError(t, err, "the file itself is just small enough")
	_, err = message.Wire(time.Unix(0, 0), "an-instance-with-a-rather-long-name")
	requireOutboxInvalid(t, err, "body", "must be at most 128 KiB")
}

func TestEncodeWireSortsKeysAndKeepsDigits(t *testing.T) {
	t.Parallel()
	body, err := factory.EncodeWire(struct {
		Z json.Number `json:"z"`
		A any         `json:"a"`
	}{Z: "24.50", A: map[string]any{"y": nil, "b": "<>"}})
	require.NoError(t, err)
	require.Equal(t, `{"a":{"b":"<>","y":null},"z":24.50}`, string(body))
}

func TestNewMessageID(t *testing.T) {
	t.Parallel()
	at := factory.FormatSecond(time.Date(2026, 11, 30, 12, 0, 3, 900_000_000, time.UTC))
	require.Equal(t, "factory-b:infra_state:cluster:2026-11-30T12:00:03Z",
		factory.NewMessageID("factory-b", factory.SourceInfraState, "cluster", at))
}

func FuzzParseOutgoing(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"schema_version":"0.1.0","message_id":"m","factory_id":"factory-b","node_id":"n","environment_type":"e",` +
		`"input_module_type":"i","source_type":"factory_state","source_timestamp":"t","published_at":null,` +
		`"data_plane_instance_id":"d","payload":{"v":1e400}}`))
	f.Add([]byte("{\"message_id\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := factory.ParseOutgoing(body)
		if err != nil {
			var invalid *factory.InvalidError
			require.ErrorAs(t, err, &invalid)
			return
		}
		require.Equal(t, 2, strings.Count(message.Topic(), "/"))
		require.False(t, strings.ContainsAny(message.Topic(), "#+\x00"))
		wire, err := message.Wire(time.Unix(0, 0), "i")
		if err != nil {
			return
		}
		again, err := factory.ParseOutgoing(wire)
		require.NoError(t, err)
		rewired, err := again.Wire(time.Unix(0, 0), "i")
		require.NoError(t, err)
		require.Equal(t, string(wire), string(rewired), "the wire form is a fixed point")
	})
}

func requireOutboxInvalid(t *testing.T, err error, field, rule string) {
	t.Helper()
	var invalid *factory.InvalidError
	require.ErrorAs(t, err, &invalid, fmt.Sprint(err))
	require.Equal(t, field, invalid.Field)
	if rule != "" {
		require.Equal(t, rule, invalid.Rule)
	}
}
