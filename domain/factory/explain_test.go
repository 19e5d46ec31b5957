package factory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainPutsMessagesInOrder(t *testing.T) {
	older := envelope(SourceFactoryState, "arm", "2026-05-20T11:59:50Z", `{"sensor":{"temperature_celsius_avg":60}}`)
	newer := envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload)
	infra := envelope(SourceInfraState, "cluster", "2026-05-20T11:59:55Z", clusterPayload)
	latest, err := Explain([][]byte{newer, infra, older}, noon)
	require.NoError(t, err)
	require.Equal(t, "95.35", latest.Risk.Score.String())
	require.Equal(t, Normal, latest.PipelineStatus.Status)
	require.Equal(t, int64(5), *latest.PipelineStatus.LatestInfraStateAgeSeconds)
}

func TestExplainWithoutInfraStateIsRed(t *testing.T) {
	latest, err := Explain([][]byte{envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload)}, noon)
	require.NoError(t, err)
	require.Equal(t, "49", latest.Risk.Score.String())
	require.Equal(t, "pipeline_status_critical", latest.Risk.TopCauses[0].Reason)
}

func TestExplainSaysWhyItCant(t *testing.T) {
	valid := envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload)
	for want, bodies := range map[string][][]byte{
		"no message":                                 nil,
		"would be quarantined: body":                 {[]byte("{")},
		"would be quarantined: source_timestamp":     {envelope(SourceFactoryState, "arm", "2100-01-01T00:00:00Z", climatePayload)},
		"would be quarantined: payload.s3_key":       {envelope(SourceImageSnapshot, "arm", "2026-05-20T11:59:59Z", `{}`)},
		"two factories: factory-other and factory-x": {valid, []byte(strings.ReplaceAll(string(valid), "factory-x", "factory-other"))},
	} {
		_, err := Explain(bodies, noon)
		require.ErrorContains(t, err, want)
	}
}
