package factory

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessedObjects(t *testing.T) {
	latest := applied(t, noon, envelope(SourceFactoryState, "arm", "2026-05-20T11:59:55Z", climatePayload))
	for source, payload := range map[SourceType]string{SourceFactoryState: climatePayload, SourceInfraState: clusterPayload, SourceImageSnapshot: picturePayload} {
		m := parse(t, envelope(source, "arm", "2026-05-20T11:58:30Z", payload), noon)
		block, err := Normalise(m, noon)
		require.NoError(t, err)
		object := ProcessedObject(m, block, &latest, noon, source == SourceInfraState)
		requireGolden(t, "processed_"+string(source), object)

		back, err := ReadProcessed([]byte(encode(t, object)), source)
		require.NoError(t, err)
		require.Equal(t, encode(t, block.Data()), encode(t, back.Data()))
	}
}

func TestAnInfraObjectOfAnUnknownFactoryHasAPipelineStatus(t *testing.T) {
	m := parse(t, envelope(SourceInfraState, "cluster", "2026-05-20T11:58:30Z", clusterPayload), noon)
	block, err := Normalise(m, noon)
	require.NoError(t, err)
	object := ProcessedObject(m, block, nil, noon, false)
	require.Equal(t, Warning, object.PipelineStatus.Status)
	require.Nil(t, object.PipelineStatus.LatestFactoryStateAgeSeconds)
	require.NotContains(t, encode(t, object), `"late":`)
}

func TestTheRiskObjectHasNeitherTimeNorVersion(t *testing.T) {
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:55Z", climatePayload))
	requireGolden(t, "processed_risk_score", RiskObject(latest))
	require.Equal(t, RiskVersion, latest.Risk.CalculationVersion, "the state keeps both")
}

func TestReadProcessedRefusesWhatIsNoObject(t *testing.T) {
	for _, body := range []string{"", "[]", `{"data":7}`, `{"data":{"temperature_celsius":"hot"}}`} {
		_, err := ReadProcessed([]byte(body), SourceFactoryState)
		require.ErrorContains(t, err, "read processed object", body)
	}
	for _, body := range []string{`{}`, `{"data":null}`} {
		_, err := ReadProcessed([]byte(body), SourceInfraState)
		requireInvalid(t, err, "data", body)
	}
	_, err := ReadProcessed([]byte(`{"data":{}}`), "risk_score")
	requireInvalid(t, err, "source_type")
}

func TestDocumentsKeepTheirCharacters(t *testing.T) {
	require.Equal(t, `{"a":"위험 <&> é"}`, encode(t, map[string]string{"a": "위험 <&> é"}))
	_, err := EncodeJSON(func() {})
	require.ErrorContains(t, err, "encode document")
}

func TestMillisHaveThreeDecimals(t *testing.T) {
	for in, want := range map[string]string{
		"2026-05-14T12:00:06Z": "2026-05-14T12:00:06.000Z", "2026-05-14T12:00:06.1Z": "2026-05-14T12:00:06.100Z", "2026-05-14T12:00:06.1239999Z": "2026-05-14T12:00:06.123Z",
		"2026-05-14T21:00:06.123+09:00": "2026-05-14T12:00:06.123Z",
	} {
		var m Millis
		require.NoError(t, json.Unmarshal([]byte(`"`+in+`"`), &m))
		require.Equal(t, want, m.String())
		require.Equal(t, `"`+want+`"`, encode(t, m))
		require.Equal(t, time.UTC, m.Location())
	}
	var m Millis
	require.Error(t, json.Unmarshal([]byte(`"yesterday"`), &m))
	require.Error(t, json.Unmarshal([]byte(`7`), &m))
}
