package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// troubledDay has many events of long names.
func troubledDay(t *testing.T) FactoryDaily {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	var samples []sample
	for i := range 24 * 5 {
		at := day.Window().Start.Add(time.Duration(i) * 12 * time.Minute)
		name := strings.Repeat("가", 100) + fmt.Sprint(i)
		cause := strings.Repeat("나", 60) + fmt.Sprint(i%7)
		samples = append(samples, riskSample(factoryA, at, fmt.Sprint(i%80), "critical", cause))
		body := fmt.Sprintf(`{"source_message_id":"factory-a:infra_state:cluster:%d","factory_id":"factory-a","source_timestamp":%q,"data":{"nodes":[{"node_id":%q}],"workloads":[{"namespace":"x","name":%q}]}}`, i, at.Format(time.RFC3339), fmt.Sprint(i)+name, fmt.Sprint(i)+name)
		samples = append(samples, sample{InfraStateDataset, body})
	}
	return mergeSamples(factoryA, day, DefaultSettings(), samples)
}

func TestAContextHasTheWorstEventsAlone(t *testing.T) {
	daily := troubledDay(t)
	settings := DefaultSettings()
	context := daily.Context(settings)
	require.Len(t, context.Events, 10)
	require.Equal(t, daily.Events[:10], context.Events)
	require.Equal(t, daily.EventCount-10, context.EventsOmittedCount)
	require.LessOrEqual(t, len(asJSON(t, context)), settings.MaxContextBytes)
	require.Equal(t, "100 = safest, 0 = most dangerous", context.ScoreDirection)
}

func TestAContextFitsIntoItsBytes(t *testing.T) {
	daily := troubledDay(t)
	settings := DefaultSettings()
	before := len(asJSON(t, daily.Context(settings)))
	previous := 11
	for limit := before; limit >= minContextBytes; limit -= 500 {
		settings.MaxContextBytes = limit
		context := daily.Context(settings)
		require.LessOrEqual(t, len(asJSON(t, context)), limit)
		require.Equal(t, daily.EventCount, context.EventsOmittedCount+int64(len(context.Events)))
		require.LessOrEqual(t, len(context.Events), previous)
		require.Equal(t, daily.Events[:len(context.Events)], context.Events, "the worst stay")
		previous = len(context.Events)
		require.Equal(t, asJSON(t, context), asJSON(t, daily.Context(settings)))
	}
	require.Equal(t, troubledDay(t), daily, "the day itself is left alone")
}

func TestAContextHasNoPayloadsAndNoCurves(t *testing.T) {
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(asJSON(t, troubledDay(t).Context(DefaultSettings()))), &keys))
	for _, absent := range []string{"series", "merge_basis", "gaps", "hours", "payload", "data"} {
		require.NotContains(t, keys, absent)
	}
}
