package factory

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

var bucketStart = at("2026-05-20T12:00:00Z")

func newBucket() *Accumulator {
	return NewAccumulator("factory-x", bucketStart, DefaultGraphRules())
}

// reading is a factory_state block of the bucket, seconds after its start.
func reading(second float64, id string, temperature, fire *exact.Decimal) *FactoryState {
	return &FactoryState{
		MessageID: id, SourceTimestamp: bucketStart.Add(time.Duration(second * float64(time.Second))),
		TemperatureCelsius: temperature, FireScore: fire,
	}
}

func cluster(second int, id string, nodes ...Node) *InfraState {
	return &InfraState{MessageID: id, SourceTimestamp: bucketStart.Add(time.Duration(second) * time.Second), Nodes: nodes}
}

func scored(second float64, score string) *Latest {
	calculated := MillisOf(bucketStart.Add(time.Duration(second * float64(time.Second))))
	return &Latest{Risk: &Risk{Score: exact.MustParse(score), CalculatedAt: &calculated}, UpdatedAt: calculated}
}

func TestAnEmptyBucketIsExplicit(t *testing.T) {
	requireGolden(t, "graph_empty", newBucket().Graph())
}

func TestAFullGraphDocument(t *testing.T) {
	a := newBucket()
	for i := range 100 {
		temperature := exact.FromInt(int64(240+i%7)).Quo(exact.FromInt(10), 4)
		state := reading(float64(3*i), fmt.Sprint("s", i), &temperature, dec("0.1"))
		state.HumidityPercent, state.PressureHPA = dec("45.5"), dec("1009.125")
		state.FallScore, state.BendScore = dec("0.7"), dec("0")
		if i == 40 {
			state.FireScore = dec("0.93")
		}
		a.AddFactoryState(state)
		a.AddSnapshot(scored(float64(3*i)+0.25, "99.25"))
	}
	for i := range 15 {
		a.AddInfraState(cluster(20*i, fmt.Sprint("i", i),
			Node{NodeID: "head", Role: "control-plane", CPUUsagePercent: dec("10"), MemoryUsagePercent: dec("30"), DiskUsagePercent: dec("20")},
			Node{NodeID: "arm", Role: "worker", CPUUsagePercent: dec("20.0001"), MemoryUsagePercent: dec("31"), DiskUsagePercent: nil}))
	}
	graph := a.Graph()
	requireGolden(t, "graph_full", graph)
	requireGolden(t, "graph_archive", graph.Archive())
}

func TestOnlyValuesFromInsideTheBucketCount(t *testing.T) {
	a := newBucket()
	for second, id := range map[float64]string{-0.001: "before", 0: "first", 0.4: "same second", 299.999: "last", 300: "after"} {
		a.AddFactoryState(reading(second, id, dec("20"), nil))
		a.AddSnapshot(scored(second, "90"))
	}
	a.AddInfraState(cluster(-1, "infra before"))
	a.AddInfraState(cluster(300, "infra after"))
	graph := a.Graph()
	require.Equal(t, int64(3), graph.Quality.SourceCount)
	require.Equal(t, int64(3), graph.Sensor.TemperatureCelsius.Count)
	require.Equal(t, int64(3), graph.Risk.Score.Count)
	require.Equal(t, bucketStart, graph.Sensor.TemperatureCelsius.FirstAt)
}

// Incident 10.4: refresh rows repeat the last state long after the factory fell
// silent.
func TestRefreshRowsAddRiskButNoSensorValues(t *testing.T) {
	stale := applied(t, bucketStart.Add(-time.Minute), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:00Z", climatePayload))
	a := newBucket()
	for minute := range 5 {
		stale = Refresh(stale, bucketStart.Add(time.Duration(minute)*time.Minute))
		row := stale.History(2 * time.Hour)
		a.AddHistory(&row)
	}
	graph := a.Graph()
	require.True(t, graph.Quality.IsEmpty)
	require.Nil(t, graph.Sensor.TemperatureCelsius)
	require.Equal(t, int64(5), graph.Risk.Score.Count)
}

func TestAMetricWithoutValuesIsAbsent(t *testing.T) {
	a := newBucket()
	a.AddFactoryState(reading(1, "m", nil, nil))
	a.AddInfraState(cluster(2, "i", Node{NodeID: "head"}))
	graph := a.Graph()
	require.JSONEq(t, `{}`, encode(t, graph.Sensor))
	require.JSONEq(t, `{}`, encode(t, graph.Infra))
	require.JSONEq(t, `{}`, encode(t, graph.AIDetection.ByType))
	require.Nil(t, graph.AIDetection.MaxScore)
	require.Equal(t, int64(2), graph.Quality.SourceCount)
	require.False(t, graph.Quality.IsEmpty)
}

func TestExtremesTieOnTheFirst(t *testing.T) {
	a := newBucket()
	for second, value := range map[int]string{10: "21", 20: "25", 30: "21.0000", 40: "25.00", 50: "23"} {
		a.AddFactoryState(reading(float64(second), fmt.Sprint(second), dec(value), nil))
	}
	got := a.Graph().Sensor.TemperatureCelsius
	require.Equal(t, bucketStart.Add(10*time.Second), got.MinAt)
	require.Equal(t, bucketStart.Add(20*time.Second), got.MaxAt)
	require.Equal(t, "23", got.Mean.String())
	require.Equal(t, "21", got.First.String())
	require.Equal(t, "23", got.Last.String())
}

func TestMeansAreRoundedOnceHalfEven(t *testing.T) {
	for want, values := range map[string][]string{
		"0.0001":  {"0.0001", "0.0001", "0.0001"},
		"0.0002":  {"0.0001", "0.0002"},
		"0.0004":  {"0.0003", "0.0004"},
		"23.3333": {"20", "20", "30"},
		"-0.0002": {"-0.0001", "-0.0002"},
	} {
		a := newBucket()
		for i, value := range values {
			a.AddFactoryState(reading(float64(i), fmt.Sprint(i), dec(value), nil))
		}
		require.Equal(t, want, a.Graph().Sensor.TemperatureCelsius.Mean.String(), values)
	}
}

func TestOneValuePerSourceTimeIsThatOfTheGreaterMessage(t *testing.T) {
	states := []*FactoryState{
		reading(3, "a", dec("20"), dec("0.1")),
		reading(3, "b", dec("30"), nil),
		reading(3, "b", dec("30"), nil),
	}
	for range 6 {
		rand.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
		a := newBucket()
		for _, state := range states {
			a.AddFactoryState(state)
		}
		graph := a.Graph()
		require.Equal(t, int64(2), graph.Quality.SourceCount, "distinct messages")
		require.Equal(t, int64(1), graph.Quality.FactoryStateCount, "distinct times")
		require.Equal(t, "30", graph.Sensor.TemperatureCelsius.Mean.String())
		require.Equal(t, "0.1", graph.AIDetection.MaxScore.String(), "null does not hide a value")
	}
}

func TestTheClusterValueIsTheMeanOfNodesThatHaveOne(t *testing.T) {
	a := newBucket()
	a.AddInfraState(cluster(0, "i0",
		Node{NodeID: "a", CPUUsagePercent: dec("10")}, Node{NodeID: "b", Ready: true, CPUUsagePercent: dec("20")}, Node{NodeID: "c"}))
	a.AddInfraState(cluster(20, "i1", Node{NodeID: "b", Role: "worker", CPUUsagePercent: dec("40")}, Node{NodeID: "a", Role: "head"}))
	infra := a.Graph().Infra
	require.Equal(t, "15", infra.CPUUsagePercent.First.String())
	require.Equal(t, "40", infra.CPUUsagePercent.Last.String())
	require.Nil(t, infra.MemoryUsagePercent)
	require.Len(t, infra.Nodes, 2, "a node without any value is left out")
	require.Equal(t, "a", infra.Nodes[0].NodeID)
	require.Equal(t, "head", infra.Nodes[0].Role, "role of the last sample")
	require.Equal(t, int64(2), infra.Nodes[1].CPUUsagePercent.Count)
}

func TestNodesThatChangeTheirNamesCantFillTheItem(t *testing.T) {
	a := newBucket()
	for i := range 15 {
		nodes := make([]Node, 40)
		for j := range nodes {
			nodes[j] = Node{NodeID: fmt.Sprintf("node-%d-%d", i, j), CPUUsagePercent: dec("1.2345"), MemoryUsagePercent: dec("1"), DiskUsagePercent: dec("1")}
		}
		a.AddInfraState(cluster(20*i, fmt.Sprint(i), nodes...))
	}
	graph := a.Graph()
	require.Len(t, graph.Infra.Nodes, MaxNodes)
	require.Equal(t, 15*40-MaxNodes, graph.Infra.NodesCut)
	require.Less(t, len(encode(t, graph)), 100*1024)
}

func TestAIThresholdIncludesItself(t *testing.T) {
	a := newBucket()
	for second, fire := range map[int]string{0: "0.6999", 3: "0.7", 6: "0.71", 9: "0"} {
		a.AddFactoryState(reading(float64(second), fmt.Sprint(second), nil, dec(fire)))
	}
	ai := a.Graph().AIDetection
	fire := ai.ByType.FireScore
	require.Equal(t, int64(2), fire.AboveThresholdCount)
	require.Equal(t, "0.5", fire.AboveThresholdRatio.String())
	require.Equal(t, bucketStart.Add(3*time.Second), *fire.FirstAboveThresholdAt)
	require.Equal(t, "fire_score", *ai.MaxScoreType)
	require.Equal(t, bucketStart.Add(6*time.Second), *ai.MaxScoreAt)
	require.Nil(t, ai.ByType.FallScore)
}

func TestOfEqualAIMaximaTheEarliestThenTheFirstNamedCounts(t *testing.T) {
	summary := func(score string, second int) *AISummary {
		return &AISummary{Max: exact.MustParse(score), MaxAt: bucketStart.Add(time.Duration(second) * time.Second)}
	}
	cases := []struct {
		byType AIByType
		want   string
	}{
		{AIByType{FireScore: summary("0.9", 9), FallScore: summary("0.9", 3), BendScore: summary("0.8", 0)}, "fall_score"},
		{AIByType{FireScore: summary("0.9", 3), FallScore: summary("0.9", 3)}, "fire_score"},
		{AIByType{FallScore: summary("0", 9), BendScore: summary("0.1", 9)}, "bend_score"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, *detection(exact.MustParse("0.7"), c.byType).MaxScoreType)
	}
}

// The old rate counted infra_state messages too and hid a loss of 13 %.
func TestCollectionRateSpeaksOfFactoryStateOnly(t *testing.T) {
	a := newBucket()
	for i := range 87 {
		a.AddFactoryState(reading(float64(3*i), fmt.Sprint("s", i), nil, nil))
	}
	for i := range 15 {
		a.AddInfraState(cluster(20*i, fmt.Sprint("i", i)))
	}
	quality := a.Graph().Quality
	require.Equal(t, int64(102), quality.SourceCount)
	require.Equal(t, "0.87", quality.CollectionRate.String())
	require.Equal(t, int64(13), quality.MissingCount)
	require.True(t, quality.IsPartial)
}

func TestCollectionRateNeverExceedsOne(t *testing.T) {
	a := newBucket()
	for i := range 300 {
		a.AddFactoryState(reading(float64(i), fmt.Sprint(i), nil, nil))
	}
	quality := a.Graph().Quality
	require.Equal(t, "1", quality.CollectionRate.String())
	require.Zero(t, quality.MissingCount)
	require.False(t, quality.IsPartial)
}

func TestExpectedCountRoundsUp(t *testing.T) {
	for interval, want := range map[time.Duration]int64{3 * time.Second: 100, 7 * time.Second: 43, 20 * time.Second: 15, 10 * time.Minute: 1} {
		require.Equal(t, want, GraphRules{SampleInterval: interval}.expectedCount(), interval)
	}
}

func TestAnAggregateIsNeverReplacedByAPoorerOne(t *testing.T) {
	graph := func(sources int64) Graph { return Graph{Quality: GraphQuality{SourceCount: sources}} }
	stored := graph(10)
	require.True(t, graph(0).Replaces(nil))
	require.True(t, graph(10).Replaces(&stored))
	require.True(t, graph(11).Replaces(&stored))
	require.False(t, graph(9).Replaces(&stored))
}

func TestGraphTimesFollowFromTheBucketAlone(t *testing.T) {
	graph := newBucket().Graph()
	require.Equal(t, graph.BucketEnd, graph.CreatedAt)
	require.Equal(t, graph.BucketEnd, graph.UpdatedAt)
	require.Equal(t, bucketStart.Add(48*time.Hour).Unix(), graph.TTL)
	require.Equal(t, "HISTORY#STATE#2026-05-20T12:00:00.000Z", graph.Quality.SourceWindowStartSK)
}

// flow is what a run of ingest leaves behind: rows, and objects with snapshots.
type flow struct {
	rows   []Latest
	blocks []Block
}

// drawFlow lets messages arrive in order with gaps, equal source times, nulls,
// refreshes in between and repeats, around one bucket.
func drawFlow(t *rapid.T) flow {
	var out flow
	var latest *Latest
	now := bucketStart.Add(-20 * time.Second)
	for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
		now = now.Add(time.Duration(rapid.IntRange(0, 9000).Draw(t, "ms")) * time.Millisecond)
		if latest != nil && rapid.IntRange(0, 9).Draw(t, "refresh") == 0 {
			next := Refresh(*latest, now)
			latest = &next
			out.rows = append(out.rows, next.History(2*time.Hour))
			continue
		}
		m := drawMessage(t, i, now)
		block, err := Normalise(m, now)
		require.NoError(t, err)
		if StandingOf(m, latest) != Newer {
			continue
		}
		next := Apply(latest, m, block, now)
		latest = &next
		out.blocks = append(out.blocks, block)
		out.rows = append(out.rows, next.History(2*time.Hour))
	}
	return out
}

func drawMessage(t *rapid.T, i int, now time.Time) Message {
	number := rapid.SampledFrom([]any{nil, json.Number("0.7"), json.Number("23.45678"), json.Number("99.99995"), json.Number("-4")})
	m := Message{
		FactoryID: "factory-x", SourceType: SourceFactoryState, MessageID: fmt.Sprintf("m%03d", i),
		SourceTimestamp: now.Truncate(time.Second),
	}
	if rapid.Bool().Draw(t, "infra") {
		m.SourceType = SourceInfraState
		nodes := []any{}
		for j := range rapid.IntRange(0, 3).Draw(t, "nodes") {
			nodes = append(nodes, map[string]any{"node_id": fmt.Sprint("n", j), "cpu_usage_percent": number.Draw(t, "cpu"), "disk_usage_percent": number.Draw(t, "disk")})
		}
		m.Payload = map[string]any{"nodes": nodes}
		return m
	}
	m.Payload = map[string]any{
		"sensor":    map[string]any{"temperature_celsius_avg": number.Draw(t, "temperature")},
		"ai_result": map[string]any{"fire_score": number.Draw(t, "fire"), "bend_score": number.Draw(t, "bend")},
	}
	return m
}

func TestHistoryAndProcessedObjectsGiveTheSameBytesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrived := drawFlow(t)
		fromHistory, fromObjects := newBucket(), newBucket()
		for i := range arrived.rows {
			fromHistory.AddHistory(&arrived.rows[i])
		}
		steps := make([]func(), 0, len(arrived.rows)+len(arrived.blocks))
		for i := range arrived.rows {
			snapshot := stored(t, arrived.rows[i].Snapshot())
			steps = append(steps, func() { fromObjects.AddSnapshot(&snapshot) })
		}
		for _, block := range arrived.blocks {
			steps = append(steps, func() {
				if block.FactoryState != nil {
					fromObjects.AddFactoryState(block.FactoryState)
				} else {
					fromObjects.AddInfraState(block.InfraState)
				}
			})
		}
		steps = append(steps, steps...)
		for _, i := range rapid.Permutation(indices(len(steps))).Draw(t, "order") {
			steps[i]()
		}
		want, err := EncodeJSON(fromHistory.Graph())
		require.NoError(t, err)
		got, err := EncodeJSON(fromObjects.Graph())
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// stored is a document as it comes back from a store.
func stored(t *rapid.T, document Latest) (back Latest) {
	body, err := EncodeJSON(document)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &back))
	return back
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func TestAGraphSurvivesTheStore(t *testing.T) {
	a := newBucket()
	a.AddFactoryState(reading(1, "m", dec("20.5"), dec("0.75")))
	a.AddInfraState(cluster(2, "i", Node{NodeID: "head", DiskUsagePercent: dec("12")}))
	a.AddSnapshot(scored(1.123, "84"))
	want := encode(t, a.Graph())
	var back Graph
	require.NoError(t, json.Unmarshal([]byte(want), &back))
	require.Equal(t, want, encode(t, back))
}

func BenchmarkGraph(b *testing.B) {
	latest := applied(b, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload))
	rows := make([]Latest, 0, 120)
	for i := range 120 {
		row := latest
		state := *latest.FactoryState
		state.MessageID, state.SourceTimestamp = fmt.Sprint(i), bucketStart.Add(time.Duration(i*2500)*time.Millisecond)
		row.FactoryState = &state
		rows = append(rows, row)
	}
	for b.Loop() {
		a := newBucket()
		for i := range rows {
			a.AddHistory(&rows[i])
		}
		if a.Graph().Quality.SourceCount != 120 {
			b.Fatal("lost a row")
		}
	}
}
