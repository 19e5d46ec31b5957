package factory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// widest is a label as long as any, of characters that take four bytes.
var widest = strings.Repeat("😀", 300)

// widestBodies are messages that make every part of the state as large as it
// gets.
func widestBodies(t testing.TB) [][]byte {
	t.Helper()
	quoted, err := json.Marshal(widest)
	require.NoError(t, err)
	w, id := string(quoted), strings.Repeat("m", 256)
	number := strings.Repeat("9", 34) + ".1234"
	key := "image_snapshot/factory_id=factory-x/" + strings.Repeat("k", 512-36)
	body := func(source SourceType, payload string) []byte {
		return fmt.Appendf(nil, `{"schema_version":"0.1.0","message_id":%q,"factory_id":"factory-x","node_id":"n","environment_type":%s,"source_type":%q,`+
			`"source_timestamp":"2026-05-20T11:59:59.123456789Z","published_at":null,"payload":%s}`, id, w, source, payload)
	}
	device := fmt.Sprintf(`{"status":%s,"last_seen_at":%s}`, w, w)
	return [][]byte{
		body(SourceImageSnapshot, fmt.Sprintf(`{"event_type":%s,"content_type":%s,"size_bytes":9223372036854775807,"sha256":%s,"s3_bucket":%s,"s3_key":%q}`, w, w, w, w, key)),
		body(SourceFactoryState, fmt.Sprintf(`{"aggregation_window_seconds":9223372036854775807,"sensor":{"sample_count":9223372036854775807,"temperature_celsius_avg":%s,"humidity_percent_avg":%s,"pressure_hpa_avg":%s},
			"ai_result":{"sample_count":9223372036854775807,"fire_score":%s,"fall_score":%s,"bend_score":%s,"abnormal_sound":%s}}`, number, number, number, number, number, number, w)),
		body(SourceInfraState, fmt.Sprintf(`{"heartbeat":{"agent_status":%s,"last_successful_publish_at":%s,"last_spool_write_status":%s,"last_spool_write_at":%s,"publish_sequence":9223372036854775807},
			"cluster":{"cluster_name":%s,"kubernetes_version":%s},"node_summary":{"total":9223372036854775807,"ready":1,"not_ready":9223372036854775807},
			"workload_summary":{"total":9223372036854775807,"running":1,"not_running":9223372036854775807},
			"nodes":[%s],"devices":{"bme280":%s,"camera":%s,"microphone":%s}}`, w, w, w, w, w, w, repeated(50, `{"node_id":"n%d","network_reachability":`+w+`,"disk_usage_percent":`+number+`}`), device, device, device)),
	}
}

func TestTheLargestPossibleStateFits(t *testing.T) {
	latest := applied(t, noon, widestBodies(t)...)
	latest = Refresh(latest, noon.Add(time.Hour))
	size := len(encode(t, latest))
	require.LessOrEqual(t, size, MaxLatestBytes)
	require.Len(t, latest.InfraState.Devices, 3, "required devices stay")
	t.Logf("largest state: %d bytes", size)
}

func TestAHugeClusterIsCutToSizeAndCounted(t *testing.T) {
	name := strings.Repeat("w", 120)
	payload := fmt.Sprintf(`{"nodes":[%s],"workloads":[%s,{"name":"broken","status":"CrashLoopBackOff","ready":false}],"devices":{%s,"camera":{"available":true}}}`,
		repeated(50, `{"node_id":"node-%02d","role":"worker","ready":true,"cpu_usage_percent":12.5,"network_reachability":"ok"}`),
		repeated(199, `{"namespace":"line","name":"`+name+`%d","status":"Running","ready":true}`), repeated(19, `"extra-%d":{"available":true}`))
	body := envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", payload)
	latest := applied(t, noon, body, envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload))
	require.LessOrEqual(t, len(encode(t, latest)), MaxLatestBytes)
	infra := latest.InfraState
	require.LessOrEqual(t, jsonSize(infra), MaxInfraBytes)
	require.Greater(t, jsonSize(infra), MaxInfraBytes-1024, "no more is cut than has to be")
	require.Equal(t, 200, len(infra.Workloads)+infra.Cut.Workloads)
	require.Equal(t, 50, len(infra.Nodes)+infra.Cut.Nodes)
	require.Equal(t, 19, infra.Cut.Devices)
	require.Contains(t, infra.Devices, "camera")
	require.Equal(t, int64(200), infra.PodsTotal)
	require.Equal(t, "broken", infra.Workloads[len(infra.Workloads)-1].Name, "workloads in trouble stay longest")
	require.Equal(t, infra.fit(), *infra, "fitting again changes nothing")

	block, err := Normalise(parse(t, body, noon), noon)
	require.NoError(t, err)
	require.Len(t, block.InfraState.Workloads, 200, "the processed object keeps what the state can't")
}

func TestASmallStateIsNotCut(t *testing.T) {
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload))
	require.Nil(t, latest.InfraState.Cut)
}

func TestShedDropsHealthyOnesFromTheEnd(t *testing.T) {
	healthy := func(n int) bool { return n%2 == 0 }
	cost := func(int) int { return 10 }
	for excess, want := range map[int][]int{
		-5: {1, 2, 3, 4, 5, 6}, 0: {1, 2, 3, 4, 5, 6}, 1: {1, 2, 3, 4, 5}, 10: {1, 2, 3, 4, 5}, 11: {1, 2, 3, 5}, 30: {1, 3, 5}, 31: {1, 3}, 60: {}, 999: {},
	} {
		list := []int{1, 2, 3, 4, 5, 6}
		kept, cut := shed(list, excess, cost, healthy)
		require.Equal(t, want, kept, excess)
		require.Equal(t, len(list)-len(want), cut)
		require.Equal(t, []int{1, 2, 3, 4, 5, 6}, list, "the list itself stays")
	}
}

func TestStandingOfAMessage(t *testing.T) {
	body := func(id, when string) Message {
		m := message(SourceFactoryState, climatePayload)
		m.MessageID, m.SourceTimestamp = id, at(when)
		return m
	}
	stored := Apply(nil, body("m", "2026-05-20T11:59:59Z"), Block{FactoryState: &FactoryState{MessageID: "m", SourceTimestamp: at("2026-05-20T11:59:59Z")}}, noon)
	for _, c := range []struct {
		id, when string
		want     Standing
	}{
		{"m", "2026-05-20T11:59:59Z", Duplicate},
		{"m", "2026-05-20T20:59:59+09:00", Duplicate},
		{"m", "2026-05-20T11:59:59.000000001Z", Newer},
		{"m", "2026-05-20T12:00:00Z", Newer},
		{"a", "2026-05-20T12:00:00Z", Newer},
		{"n", "2026-05-20T11:59:59Z", Newer},
		{"l", "2026-05-20T11:59:59Z", Late},
		{"z", "2026-05-20T11:59:58.999Z", Late},
	} {
		require.Equal(t, c.want, StandingOf(body(c.id, c.when), &stored), c)
	}
	infra := message(SourceInfraState, clusterPayload)
	infra.SourceTimestamp = noon.Add(-24 * time.Hour)
	require.Equal(t, Newer, StandingOf(infra, &stored), "each source type has its own order")
	require.Equal(t, Newer, StandingOf(body("m", "2020-01-01T00:00:00Z"), nil))
}

// Messages may come in any order and any number of times: the state ends up the
// same.
func TestTheNewestMessageWinsWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := make([]Message, 0, 8)
		for i := range rapid.IntRange(1, 8).Draw(t, "messages") {
			m := message(rapid.SampledFrom(SourceTypes[:2]).Draw(t, "source"), climatePayload)
			m.MessageID = fmt.Sprint("m", i)
			m.SourceTimestamp = noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second)
			messages = append(messages, m)
		}
		end := func(order []int) Latest {
			var latest *Latest
			for _, i := range order {
				if StandingOf(messages[i], latest) != Newer {
					continue
				}
				block, err := Normalise(messages[i], noon)
				require.NoError(t, err)
				next := Apply(latest, messages[i], block, noon)
				latest = &next
			}
			return *latest
		}
		straight := end(indices(len(messages)))
		shuffled := end(rapid.Permutation(append(indices(len(messages)), indices(len(messages))...)).Draw(t, "order"))
		require.Equal(t, straight.FactoryState, shuffled.FactoryState)
		require.Equal(t, straight.InfraState, shuffled.InfraState)
		require.Equal(t, straight.LastInfraStateAt, shuffled.LastInfraStateAt)
	})
}

func TestUpdatedAtRisesWhateverTheClockDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := message(SourceFactoryState, climatePayload)
		latest := Apply(nil, m, Block{FactoryState: &FactoryState{}}, noon)
		require.Equal(t, int64(1), latest.Rev)
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			now := noon.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "clock")))
			before := latest
			if rapid.Bool().Draw(t, "refresh") {
				latest = Refresh(before, now)
			} else {
				latest = Apply(&before, m, Block{FactoryState: &FactoryState{}}, now)
			}
			require.Equal(t, before.Rev+1, latest.Rev)
			require.True(t, latest.UpdatedAt.After(before.UpdatedAt.Time))
			require.Less(t, HistorySK(before.UpdatedAt), HistorySK(latest.UpdatedAt))
			require.False(t, latest.UpdatedAt.Before(MillisOf(now).Time), "never earlier than the clock")
			require.Equal(t, latest.UpdatedAt, *latest.Risk.CalculatedAt)
		}
	})
}

func TestApplyLeavesTheStoredStateAlone(t *testing.T) {
	stored := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:55Z", climatePayload))
	before := encode(t, stored)
	for _, body := range append(widestBodies(t), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", `{}`)) {
		m := parse(t, body, noon)
		block, err := Normalise(m, noon)
		require.NoError(t, err)
		Apply(&stored, m, block, noon.Add(time.Minute))
	}
	Refresh(stored, noon.Add(time.Hour))
	require.Equal(t, before, encode(t, stored))
}

func TestStateHistoryAndSnapshotDocuments(t *testing.T) {
	latest := applied(t, noon, envelope(SourceImageSnapshot, "arm", "2026-05-20T11:59:55Z", picturePayload),
		envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload),
		envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59.5Z", climatePayload))
	requireGolden(t, "latest", latest)
	requireGolden(t, "history", latest.History(2*time.Hour))
	requireGolden(t, "snapshot", latest.Snapshot())
	require.Equal(t, LatestSK, latest.SK, "projections leave the state alone")
}

func TestAPictureChangesNothingElse(t *testing.T) {
	stored := applied(t, noon, envelope(SourceFactoryState, "arm", "2026-05-20T11:59:55Z", climatePayload))
	m := parse(t, envelope(SourceImageSnapshot, "arm", "2026-05-20T11:59:59Z", picturePayload), noon)
	block, err := Normalise(m, noon.Add(time.Hour))
	require.NoError(t, err)
	next := Apply(&stored, m, block, noon.Add(time.Hour))
	require.Equal(t, stored.Risk, next.Risk)
	require.Equal(t, stored.PipelineStatus, next.PipelineStatus)
	require.Equal(t, stored.FactoryState, next.FactoryState)
	require.Equal(t, m.SourceTimestamp, *next.LastImageSnapshotAt)
}

func TestWithoutAFactoryStateThereIsNoRisk(t *testing.T) {
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload))
	require.Nil(t, latest.Risk)
	require.Equal(t, Normal, latest.PipelineStatus.Status)
	require.Nil(t, latest.PipelineStatus.LatestFactoryStateAgeSeconds)
	require.Nil(t, Refresh(latest, noon.Add(time.Hour)).Risk)
}

func TestRefreshJudgesSilenceOnly(t *testing.T) {
	stored := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T12:00:00Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T12:00:00Z", climatePayload))
	for seconds, want := range map[int]string{60: "95.35", 61: "84", 121: "49", 301: "0"} {
		next := Refresh(stored, noon.Add(time.Duration(seconds)*time.Second))
		require.Equal(t, want, next.Risk.Score.String(), seconds)
		require.Equal(t, stored.FactoryState, next.FactoryState)
		require.Equal(t, stored.LastInfraStateAt, next.LastInfraStateAt)
		require.Empty(t, next.MessageID)
	}
}

func TestALatestSurvivesTheStore(t *testing.T) {
	for _, bodies := range [][][]byte{
		widestBodies(t),
		{envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", `{}`)},
		{envelope(SourceInfraState, "cluster", "2026-05-20T11:59:59Z", `{"nodes":[{}],"devices":{"camera":{}}}`)},
	} {
		want := encode(t, applied(t, noon, bodies...))
		var back Latest
		require.NoError(t, json.Unmarshal([]byte(want), &back))
		require.Equal(t, want, encode(t, back))
		require.NotContains(t, want, `"NaN"`)
	}
}

func TestNumbersAreNeverTextInJSON(t *testing.T) {
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload))
	var document map[string]any
	require.NoError(t, json.Unmarshal([]byte(encode(t, latest)), &document))
	requireNoNumericText(t, document)
}

func requireNoNumericText(t *testing.T, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for _, element := range value {
			requireNoNumericText(t, element)
		}
	case []any:
		for _, element := range value {
			requireNoNumericText(t, element)
		}
	case string:
		require.NotRegexp(t, `^-?[0-9]+(\.[0-9]+)?([eE].*)?$`, value)
	}
}
