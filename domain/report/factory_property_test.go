package report

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anySamples are objects all over a day: bursts of neighbours with silences
// between them.
func anySamples(t *rapid.T, day Day) []sample {
	window := day.Window()
	var samples []sample
	for burst := range rapid.IntRange(0, 8).Draw(t, "bursts") {
		at := window.Start.Add(time.Duration(rapid.Int64Range(0, int64(window.Length()/time.Second)-1).Draw(t, "start")) * time.Second)
		if rapid.Bool().Draw(t, "at an edge") {
			at = at.Truncate(time.Hour).Add(-9 * time.Second)
		}
		for range rapid.IntRange(1, 8).Draw(t, "length") {
			samples = append(samples, anySample(t, at, burst))
			at = at.Add(time.Duration(rapid.SampledFrom([]int{1, 3, 3, 3, 4, 6, 20, 45, 130}).Draw(t, "step")) * time.Second)
		}
	}
	return samples
}

func anySample(t *rapid.T, at time.Time, burst int) sample {
	figure := func(name string, least, greatest int) string {
		return fmt.Sprintf("%d.%02d", rapid.IntRange(least, greatest).Draw(t, name), rapid.IntRange(0, 99).Draw(t, "hundredths"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "dataset") {
	case 0:
		m := calm()
		m.temperature, m.fall = figure("temperature", 20, 45), "0."+fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "fall"))
		m.sound = rapid.SampledFrom([]string{"none", "bang", ""}).Draw(t, "sound")
		return stateSample(factoryA, at, m)
	case 1:
		return infraSample(factoryA, at, cluster{
			restarts: rapid.IntRange(0, 4).Draw(t, "restarts"),
			down:     rapid.SampledFrom([][]string{nil, {"worker1"}, {"master", "worker1", "worker2"}}).Draw(t, "down"),
			bad:      rapid.SampledFrom([][]string{nil, nil, {"ai-fall"}}).Draw(t, "bad"),
		})
	case 2:
		return snapshotSample(factoryA, at, fmt.Sprint(burst))
	}
	return riskSample(factoryA, at, figure("score", 0, 99), rapid.SampledFrom([]string{"normal", "warning", "critical"}).Draw(t, "pipeline"),
		rapid.SampledFrom([]string{"temperature", "nodes", "fall"}).Draw(t, "cause"))
}

func shuffled(t *rapid.T, samples []sample) []sample {
	list := append([]sample{}, samples...)
	rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func TestTheOrderOfObjectsChangesNothing(t *testing.T) {
	day, settings := parseDay(t, "2026-10-25", "Europe/Berlin"), DefaultSettings()
	rapid.Check(t, func(t *rapid.T) {
		samples := anySamples(t, day)
		daily := mergeByHour(factoryA, day, settings, samples)
		again := mergeByHour(factoryA, day, settings, shuffled(t, samples))
		require.Equal(t, asJSON(t, daily), asJSON(t, again))
		require.Equal(t, asJSON(t, daily.Context(settings)), asJSON(t, again.Context(settings)))
		require.Equal(t, daily.Document(Korean), again.Document(Korean))
	})
}

func TestObjectsReadTwiceAreCountedAsDuplicatesAlone(t *testing.T) {
	day, settings := parseDay(t, "2026-01-01", "Asia/Seoul"), DefaultSettings()
	rapid.Check(t, func(t *rapid.T) {
		var samples []sample
		for _, one := range anySamples(t, day) {
			if one.dataset != StateSnapshotDataset {
				samples = append(samples, one)
			}
		}
		once := mergeByHour(factoryA, day, settings, samples)
		twice := mergeByHour(factoryA, day, settings, shuffled(t, append(samples, samples...)))
		within := 0
		for _, one := range samples {
			within += int(oneIf(day.Window().Contains(timeIn(one.body))))
		}
		require.Equal(t, once.DataQuality.DuplicateMessageCount+int64(within), twice.DataQuality.DuplicateMessageCount)
		twice.DataQuality.DuplicateMessageCount = once.DataQuality.DuplicateMessageCount
		require.Equal(t, asJSON(t, once), asJSON(t, twice))
	})
}

// TestADayMadeOfHoursIsTheWholeDay compares the merge with the aggregate of one
// "hour" that lasts all day.
func TestADayMadeOfHoursIsTheWholeDay(t *testing.T) {
	for _, day := range []Day{parseDay(t, "2026-01-01", "Asia/Seoul"), parseDay(t, "2026-10-25", "Europe/Berlin"), parseDay(t, "2026-10-04", "Australia/Lord_Howe"), parseDay(t, "2026-05-01", "Asia/Kathmandu")} {
		window := day.Window()
		all := Hour{Label: "all", Start: window.Start, End: window.End, Spans: []Span{window}}
		settings := DefaultSettings()
		rapid.Check(t, func(t *rapid.T) {
			samples := anySamples(t, day)
			daily := mergeByHour(factoryA, day, settings, samples)
			whole := summarise(factoryA, day, all, settings, samples)

			require.Equal(t, whole.InputCounts.DatasetCounts, DatasetCounts{
				FactoryState: daily.DataQuality.FactoryStateActualCount, RiskScore: daily.DataQuality.RiskScoreActualCount, InfraState: daily.DataQuality.InfraStateActualCount,
			})
			require.Equal(t, whole.ExpectedCounts.FactoryState, daily.DataQuality.FactoryStateExpectedCount)
			require.Equal(t, asJSON(t, whole.DataQuality.DataGapCount), asJSON(t, daily.DataQuality.DataGapCount))
			require.Equal(t, asJSON(t, whole.DataQuality.MaxGapSeconds), asJSON(t, daily.DataQuality.MaxGapSeconds))
			require.Equal(t, asJSON(t, whole.DataQuality.GapMinutes), asJSON(t, daily.DataQuality.GapMinutes))

			daily.Risk.DominantLevel, daily.Risk.WorstLevel = "", ""
			daily.Risk.WorstPeriods, whole.Risk.WorstPeriods = nil, nil
			require.Equal(t, asJSON(t, whole.Risk), asJSON(t, daily.Risk))
			daily.FactoryState.SpikeEvents, whole.FactoryState.SpikeEvents = nil, nil
			require.Equal(t, asJSON(t, whole.FactoryState), asJSON(t, daily.FactoryState))
			require.Equal(t, asJSON(t, whole.Infra), asJSON(t, daily.Infra))
			require.Equal(t, asJSON(t, whole.Pipeline.CriticalMinutes), asJSON(t, daily.Pipeline.CriticalMinutes))
			require.Equal(t, asJSON(t, whole.Snapshot), asJSON(t, daily.Snapshot))
		})
	}
}

// TestSummariesSurviveTheStore merges what was written and read again.
func TestSummariesSurviveTheStore(t *testing.T) {
	day, settings := parseDay(t, "2026-01-01", "Asia/Seoul"), DefaultSettings()
	rapid.Check(t, func(t *rapid.T) {
		samples := anySamples(t, day)
		var written, read []FactoryHourSummary
		for _, hour := range day.Hours() {
			written = append(written, summarise(factoryA, day, hour, settings, samples))
		}
		require.NoError(t, json.Unmarshal([]byte(asJSON(t, written)), &read))
		daily := MergeFactoryDay(factoryA, day, settings, written)
		require.Equal(t, asJSON(t, daily), asJSON(t, MergeFactoryDay(factoryA, day, settings, read)))
		var stored FactoryDaily
		require.NoError(t, json.Unmarshal([]byte(asJSON(t, daily)), &stored))
		require.Equal(t, asJSON(t, daily.Context(settings)), asJSON(t, stored.Context(settings)))
		require.Equal(t, asJSON(t, daily.Document(English)), asJSON(t, stored.Document(English)))
	})
}

func FuzzNoObjectStopsAReport(f *testing.F) {
	day, hour, start := newYear(f)
	for _, one := range []sample{
		stateSample(factoryA, start, calm()), riskSample(factoryA, start, "0", "critical", "a"), infraSample(factoryA, start, cluster{down: []string{"master"}}),
		snapshotSample(factoryA, start, "1"),
		{RiskScoreDataset, `{"factory_id":"factory-a","updated_at":"2026-01-01T06:10:00Z","risk":{"score":1e-400}}`},
		{FactoryStateDataset, `[`},
	} {
		f.Add(one.dataset, []byte(one.body))
	}
	settings := DefaultSettings()
	f.Fuzz(func(t *testing.T, dataset string, body []byte) {
		gathered := NewFactoryHour(factoryA, day, hour, settings)
		gathered.Add(dataset, body)
		gathered.Add(dataset, body)
		summary := gathered.Summary()
		require.LessOrEqual(t, summary.InputCounts.RiskScore+summary.InputCounts.FactoryState+summary.InputCounts.InfraState, int64(1))
		daily := MergeFactoryDay(factoryA, day, settings, []FactoryHourSummary{summary})
		require.LessOrEqual(t, len(asJSON(t, daily.Context(settings))), settings.MaxContextBytes)
		require.NotEmpty(t, daily.Document(English).Sections)
	})
}

func FuzzNoSummaryStopsAMerge(f *testing.F) {
	day, hour, start := newYear(f)
	f.Add([]byte(asJSON(f, summarise(factoryA, day, hour, DefaultSettings(), quietHour(factoryA, start, time.Minute)))))
	f.Add([]byte(`{"factory_id":"factory-a","report_date":"2026-01-01","timezone":"Asia/Seoul","hour":"15","merge_basis":{"distributions":{"risk_score":{"count":3,"values":[1]}}}}`))
	settings := DefaultSettings()
	f.Fuzz(func(t *testing.T, body []byte) {
		var summary FactoryHourSummary
		if json.Unmarshal(body, &summary) != nil {
			return
		}
		daily := MergeFactoryDay(factoryA, day, settings, []FactoryHourSummary{summary})
		require.NotEmpty(t, daily.Document(Korean).Sections)
	})
}
