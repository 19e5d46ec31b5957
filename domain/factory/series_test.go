package factory

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

func plan(t testing.TB, window, since, limit string, now time.Time) ReadPlan {
	t.Helper()
	plan, err := PlanHistory(window, since, limit, now)
	require.NoError(t, err)
	return plan
}

// bucketOf is a bucket of sources messages, all metrics having the same value.
func bucketOf(start time.Time, sources int64, mean, least, greatest string) Graph {
	summary := &Summary{Mean: exact.MustParse(mean), Min: exact.MustParse(least), Max: exact.MustParse(greatest), Last: exact.MustParse(greatest)}
	ai := &AISummary{Mean: exact.MustParse(mean), Max: exact.MustParse(greatest)}
	usage := Usage{CPUUsagePercent: summary, MemoryUsagePercent: summary, DiskUsagePercent: summary}
	return Graph{
		BucketStart: start, BucketEnd: BucketEnd(start), BucketMinutes: BucketMinutes,
		Sensor:      SensorSummary{TemperatureCelsius: summary, HumidityPercent: summary, PressureHPA: summary},
		Risk:        RiskSummary{Score: byCalculation(summary)},
		AIDetection: AIDetection{MaxScore: dec(greatest), ByType: AIByType{FireScore: ai, FallScore: ai, BendScore: ai}},
		Infra:       InfraSummary{Usage: usage, Nodes: []NodeUsage{{NodeID: "head", Usage: usage}}},
		Quality:     GraphQuality{SourceCount: sources, IsEmpty: sources == 0},
	}
}

func TestARawElementFlattensTheState(t *testing.T) {
	row := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload),
		envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload)).History(2 * time.Hour)
	requireGolden(t, "raw_series", RawSeries([]Latest{row}, plan(t, "1h", "", "", noon)))
}

func TestARawElementOfAYoungFactoryHasNulls(t *testing.T) {
	row := Latest{FactoryID: "factory-x", UpdatedAt: MillisOf(noon)}
	var element map[string]any
	require.NoError(t, json.Unmarshal([]byte(encode(t, RawSeries([]Latest{row}, plan(t, "", "", "", noon))[0])), &element))
	require.Equal(t, map[string]any{
		"timestamp": "2026-05-20T12:00:00.000Z", "risk": nil, "factory_state": nil, "infra_state": nil,
		"risk_score": nil, "risk_level": nil, "top_cause_names": []any{},
		"temperature_celsius_avg": nil, "humidity_percent_avg": nil, "pressure_hpa_avg": nil,
		"fire_score": nil, "fall_score": nil, "bend_score": nil, "node_summary": nil, "nodes": []any{},
	}, element)
}

func TestRawRowsComeOldestFirstAndTheLimitKeepsTheNewest(t *testing.T) {
	var rows []Latest
	for i := range 5 {
		rows = append(rows, Latest{UpdatedAt: MillisOf(noon.Add(time.Duration(-i) * time.Second))})
	}
	points := RawSeries(rows, plan(t, "10m", "", "3", noon))
	require.Len(t, points, 3)
	require.Equal(t, "2026-05-20T11:59:58.000Z", points[0].Timestamp.String())
	require.Equal(t, "2026-05-20T12:00:00.000Z", points[2].Timestamp.String())
}

func TestSinceReturnsOnlyNewerRows(t *testing.T) {
	rows := []Latest{{UpdatedAt: MillisOf(noon.Add(-2 * time.Second))}, {UpdatedAt: MillisOf(noon.Add(-time.Second))}, {UpdatedAt: MillisOf(noon)}}
	points := RawSeries(rows, plan(t, "10m", "2026-05-20T11:59:59.000Z", "", noon))
	require.Len(t, points, 1)
	require.Equal(t, MillisOf(noon), points[0].Timestamp)
	require.Empty(t, RawSeries(rows, plan(t, "10m", "2100-01-01T00:00:00Z", "", noon)))
}

// Rows outlive their ttl in the store, so the window has to bound them.
func TestRowsBeforeTheWindowAreNoAnswer(t *testing.T) {
	rows := []Latest{{UpdatedAt: MillisOf(noon.Add(-time.Hour - time.Millisecond))}, {UpdatedAt: MillisOf(noon.Add(-time.Hour))}}
	require.Len(t, RawSeries(rows, plan(t, "1h", "", "", noon)), 1)
}

func TestABucketElement(t *testing.T) {
	a := NewAccumulator("factory-x", noon.Add(-30*time.Minute), DefaultGraphRules())
	row := applied(t, noon.Add(-28*time.Minute), envelope(SourceInfraState, "cluster", "2026-05-20T11:31:50Z", clusterPayload),
		envelope(SourceFactoryState, "arm", "2026-05-20T11:31:59Z", climatePayload))
	a.AddHistory(&row)
	requireGolden(t, "bucket_series", BucketSeries([]Graph{a.Graph()}, plan(t, "6h", "", "", noon)))
}

func TestAnEmptyBucketIsAGap(t *testing.T) {
	graph := bucketOf(noon.Add(-time.Hour), 0, "1", "1", "1")
	point := BucketSeries([]Graph{graph}, plan(t, "6h", "", "", noon))[0]
	require.Zero(t, point.SampleCount)
	require.Equal(t, bucketRisk{}, point.bucketRisk)
	require.Equal(t, bucketClimate{}, point.bucketClimate)
	require.Equal(t, bucketAI{}, point.bucketAI)
	require.Equal(t, bucketUsage{}, point.bucketUsage)
	require.Empty(t, point.NodesMean)
	require.True(t, point.Quality.IsEmpty)
}

func TestMergedElementsLieOnTheClock(t *testing.T) {
	now := at("2026-05-20T12:07:30Z")
	for window, minutes := range map[string]int{"12h": 10, "24h": 20} {
		read := plan(t, window, "", "", now)
		points := BucketSeries(readable(read, now), read)
		for i, point := range points {
			require.Zero(t, point.BucketStart.Minute()%minutes, window)
			require.Equal(t, int64(minutes), point.BucketMinutes)
			require.Equal(t, point.BucketStart.Add(time.Duration(minutes)*time.Minute-time.Millisecond), point.BucketEnd.Time)
			require.Equal(t, point.BucketStart, point.Timestamp)
			require.Nil(t, point.Quality)
			if i > 0 {
				require.Equal(t, time.Duration(minutes)*time.Minute, point.BucketStart.Sub(points[i-1].BucketStart))
			}
		}
	}
}

func TestMergedValuesAreWeightedBySampleCount(t *testing.T) {
	start := noon.Add(-time.Hour)
	graphs := []Graph{
		bucketOf(start, 100, "90", "40", "95"),
		bucketOf(start.Add(BucketLength), 0, "0", "0", "0"),
		bucketOf(start.Add(2*BucketLength), 50, "60", "55", "100"),
		bucketOf(start.Add(3*BucketLength), 1, "10.1234", "10", "11"),
	}
	graphs[3].Infra = InfraSummary{}
	points := BucketSeries(graphs, plan(t, "24h", "", "", noon))
	require.Len(t, points, 1)
	point := points[0]
	require.Equal(t, int64(151), point.SampleCount)
	require.Equal(t, "79.5372", point.RiskScore.String())
	require.Equal(t, point.RiskScore, point.RiskScoreAvg)
	require.Equal(t, "10", point.RiskScoreMin.String())
	require.Equal(t, "100", point.RiskScoreMax.String())
	require.Equal(t, "79.5372", point.PressureHPAAvg.String())
	require.Equal(t, "10", point.HumidityPercentMin.String())
	require.Equal(t, "100", point.TemperatureCelsiusMax.String())
	require.Equal(t, "79.5372", point.BendScore.String())
	require.Equal(t, "100", point.AIMaxScore.String())
	require.Equal(t, "80", point.CPUUsagePercentMean.String(), "the bucket without the metric has no weight")
	require.Equal(t, "100", point.DiskUsagePercentLast.String(), "last known value")
	require.Equal(t, []NodeMean{{NodeID: "head", CPUUsagePercent: dec("75"), MemoryUsagePercent: dec("75"), DiskUsagePercent: dec("100")}}, normalised(point.NodesMean))
}

// normalised writes decimals in their shortest form, so that they compare.
func normalised(nodes []NodeMean) []NodeMean {
	shortest := func(d *exact.Decimal) *exact.Decimal {
		if d == nil {
			return nil
		}
		return dec(d.String())
	}
	out := slices.Clone(nodes)
	for i := range out {
		out[i].CPUUsagePercent, out[i].MemoryUsagePercent, out[i].DiskUsagePercent = shortest(out[i].CPUUsagePercent), shortest(out[i].MemoryUsagePercent), shortest(out[i].DiskUsagePercent)
	}
	return out
}

func TestAMergedElementOfEmptyBucketsIsAGap(t *testing.T) {
	start := noon.Add(-time.Hour)
	points := BucketSeries([]Graph{bucketOf(start, 0, "1", "1", "1"), bucketOf(start.Add(BucketLength), 0, "1", "1", "1")}, plan(t, "12h", "", "", noon))
	require.Len(t, points, 1)
	require.Nil(t, points[0].RiskScore)
	require.Nil(t, points[0].TemperatureCelsiusMin)
	require.Empty(t, points[0].NodesMean)
}

func TestASinceCallReturnsAChangedElementWhole(t *testing.T) {
	now := at("2026-05-20T12:12:00Z")
	all := BucketSeries(readable(plan(t, "24h", "", "", now), now), plan(t, "24h", "", "", now))
	last := all[len(all)-1]
	require.Equal(t, at("2026-05-20T12:00:00Z"), last.BucketStart)
	require.Equal(t, int64(2), last.SampleCount, "12:00 and 12:05 are over")

	now = at("2026-05-20T12:17:00Z")
	delta := plan(t, "24h", last.Timestamp.Format(time.RFC3339), "", now)
	points := BucketSeries(readable(delta, now), delta)
	require.Len(t, points, 1)
	require.Equal(t, last.BucketStart, points[0].BucketStart)
	require.Equal(t, int64(3), points[0].SampleCount, "the whole element, not only its new bucket")

	unchanged := plan(t, "24h", "2026-05-20T12:10:00Z", "", now)
	require.Empty(t, BucketSeries(readable(unchanged, now), unchanged))
}

// Whatever the moment, a full call and deltas after it show the same elements.
func TestDeltasAgreeWithAFullCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]string{"6h", "12h", "24h", "2d"}).Draw(t, "window")
		first := noon.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "first")))
		second := first.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "gap")))
		full := func(now time.Time, since string) []BucketPoint {
			read, err := PlanHistory(window, since, "", now)
			require.NoError(t, err)
			return BucketSeries(readable(read, now), read)
		}
		shown := map[time.Time]int64{}
		before := full(first, "")
		for _, point := range before {
			shown[point.Timestamp] = point.SampleCount
		}
		for _, point := range full(second, before[len(before)-1].Timestamp.Format(time.RFC3339)) {
			shown[point.Timestamp] = point.SampleCount
		}
		for _, point := range full(second, "") {
			require.Equal(t, point.SampleCount, shown[point.Timestamp], point.Timestamp)
		}
	})
}

func TestABucketLimitKeepsTheNewestElements(t *testing.T) {
	read := plan(t, "24h", "", "3", noon)
	points := BucketSeries(readable(read, noon), read)
	require.Len(t, points, 3)
	require.Equal(t, noon.Add(-20*time.Minute), points[2].BucketStart)
}

// Incident 10.2: a cap on the number of items hid old spikes.
func TestASingleLowSampleTwentyHoursAgoIsVisible(t *testing.T) {
	low := noon.Add(-20 * time.Hour)
	var graphs []Graph
	for _, start := range ClosedBuckets(noon, 288) {
		a := NewAccumulator("factory-x", start, DefaultGraphRules())
		for i := range 100 {
			when := start.Add(time.Duration(3*i) * time.Second)
			score := "100"
			if when.Equal(low) {
				score = "12.5"
			}
			calculated := MillisOf(when)
			a.AddHistory(&Latest{
				FactoryState: &FactoryState{MessageID: fmt.Sprint(when.Unix()), SourceTimestamp: when},
				Risk:         &Risk{Score: exact.MustParse(score), CalculatedAt: &calculated},
			})
		}
		graphs = append(graphs, a.Graph())
	}
	points := BucketSeries(graphs, plan(t, "24h", "", "", noon))
	require.Len(t, points, 72)
	var lows []BucketPoint
	for _, point := range points {
		if point.RiskScoreMin.String() == "12.5" {
			lows = append(lows, point)
		}
	}
	require.Len(t, lows, 1)
	require.Equal(t, low.Truncate(20*time.Minute), lows[0].BucketStart)
	require.Equal(t, "99.7812", lows[0].RiskScoreAvg.String())
}

func TestWeightedMeansAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []BucketPoint
		sum, weight := new(big.Rat), new(big.Rat)
		for range rapid.IntRange(1, 4).Draw(t, "buckets") {
			units := rapid.Int64Range(-1e6, 1e7).Draw(t, "value")
			count := rapid.Int64Range(0, 300).Draw(t, "count")
			points = append(points, BucketPoint{SampleCount: count, bucketRisk: bucketRisk{RiskScoreAvg: dec(big.NewRat(units, 10000).FloatString(4))}})
			sum.Add(sum, new(big.Rat).Mul(big.NewRat(units, 10000), big.NewRat(count, 1)))
			weight.Add(weight, big.NewRat(count, 1))
		}
		got := weightedMean(points, func(p *BucketPoint) *exact.Decimal { return p.RiskScoreAvg })
		if weight.Sign() == 0 {
			require.Nil(t, got)
			return
		}
		require.Equal(t, halfEven(sum.Quo(sum, weight), 4), got.String())
	})
}

func BenchmarkBucketSeries(b *testing.B) {
	read := plan(b, "24h", "", "", noon)
	var graphs []Graph
	for _, start := range ClosedBuckets(noon, 288) {
		graphs = append(graphs, bucketOf(start, 100, "90.1234", "40", "95"))
	}
	for b.Loop() {
		if len(BucketSeries(graphs, read)) != 72 {
			b.Fatal("lost an element")
		}
	}
}
