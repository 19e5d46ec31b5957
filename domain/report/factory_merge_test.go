package report

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slow are settings with an object a minute, for tests of whole days.
func slow() Settings {
	settings := DefaultSettings()
	settings.FactoryStateInterval, settings.RiskScoreInterval, settings.InfraStateInterval = time.Minute, time.Minute, time.Minute
	return settings
}

// slowDay has an object of each dataset a minute.
func slowDay(factoryID string, span Span, score string) []sample {
	return samplesEvery(factoryID, span, time.Minute, score)
}

func samplesEvery(factoryID string, span Span, interval time.Duration, score string) []sample {
	var samples []sample
	for at := span.Start; at.Before(span.End); at = at.Add(interval) {
		samples = append(samples, stateSample(factoryID, at, calm()), riskSample(factoryID, at, score, "normal"), infraSample(factoryID, at, cluster{}))
	}
	return samples
}

func TestAQuietDayIsNormal(t *testing.T) {
	for _, day := range []Day{parseDay(t, "2026-01-01", "Asia/Seoul"), parseDay(t, "2026-10-25", "Europe/Berlin"), parseDay(t, "2026-03-29", "Asia/Beirut"), parseDay(t, "2028-02-29", "UTC"), parseDay(t, "2026-10-25", "Antarctica/Troll")} {
		daily := mergeByHour(factoryA, day, slow(), slowDay(factoryA, day.Window(), "100"))
		minutes := int64(day.Length() / time.Minute)
		require.Equal(t, Normal, daily.OverallStatus)
		require.Equal(t, CollectionGood, daily.CollectionStatus)
		require.Equal(t, StatusSuccess, daily.Status)
		require.Equal(t, minutes, daily.DataQuality.FactoryStateExpectedCount)
		require.Equal(t, minutes, daily.DataQuality.InfraStateActualCount)
		require.Equal(t, "1", daily.DataQuality.RiskScoreCollectionRate.String())
		require.Zero(t, daily.DataQuality.DataGapCount)
		require.Empty(t, daily.Events)
		require.Equal(t, []string{"normal", "normal"}, []string{daily.Risk.DominantLevel, daily.Risk.WorstLevel})
		require.Empty(t, daily.RecommendedChecks)
		require.Len(t, daily.Series.RiskScore, int(minutes/5))
		require.True(t, slices.IsSortedFunc(daily.Series.RiskScore, func(a, b SeriesPoint) int { return a.At.Compare(b.At) }))
	}
}

func TestADaysVerdict(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	settings := DefaultSettings()
	settings.FactoryStateInterval, settings.RiskScoreInterval, settings.InfraStateInterval = 10*time.Minute, 10*time.Minute, 10*time.Minute
	quiet := samplesEvery(factoryA, day.Window(), 10*time.Minute, "100")
	noon := day.Window().Start.Add(12*time.Hour + 30*time.Second)
	for _, c := range []struct {
		name    string
		extra   []sample
		without int
		want    Verdict
	}{
		{"nothing", nil, 0, Normal},
		{"a dangerous score", []sample{riskSample(factoryA, noon, "0", "normal")}, 0, Danger},
		{"a bad score", []sample{riskSample(factoryA, noon, "80", "normal")}, 0, Warning},
		{"a critical pipeline", []sample{riskSample(factoryA, noon, "100", "critical")}, 0, Warning},
		{"a late pipeline", []sample{riskSample(factoryA, noon, "100", "warning")}, 0, Normal},
		{"a node", []sample{infraSample(factoryA, noon, cluster{down: []string{"master"}})}, 0, Warning},
		{"a restart", []sample{infraSample(factoryA, noon, cluster{restarts: 1})}, 0, Warning},
		{"a gap", nil, 9, Warning},
		{"heat alone", []sample{stateSample(factoryA, noon, measured{temperature: "50"})}, 0, Normal},
	} {
		daily := mergeByHour(factoryA, day, settings, append(c.extra, quiet[c.without:]...))
		require.Equal(t, c.want, daily.OverallStatus, c.name)
	}
}

func TestTheWorstDatasetJudgesTheCollection(t *testing.T) {
	for rate, want := range map[string]CollectionStatus{"1": CollectionGood, "0.99": CollectionGood, "0.9899": CollectionPartial, "0.95": CollectionPartial, "0.9499": CollectionPoor, "0": CollectionPoor} {
		daily := FactoryDaily{DataQuality: DailyQuality{FactoryStateCollectionRate: number("1"), RiskScoreCollectionRate: number("1"), InfraStateCollectionRate: number(rate)}}
		require.Equal(t, want, daily.collection(), rate)
	}
}

func TestADayWithoutAnyDataIsInsufficient(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	for name, daily := range map[string]FactoryDaily{
		"empty hours":  mergeSamples(factoryA, day, DefaultSettings(), []sample{snapshotSample(factoryA, day.Window().Start, "100")}),
		"no summaries": MergeFactoryDay(factoryA, day, DefaultSettings(), nil),
	} {
		require.Equal(t, StatusInsufficient, daily.Status, name)
		require.Equal(t, "unknown", daily.Risk.DominantLevel, name)
		require.Equal(t, "unknown", daily.Risk.WorstLevel, name)
		require.Equal(t, int64(28800), daily.DataQuality.FactoryStateExpectedCount, name)
		require.Equal(t, int64(4320), daily.DataQuality.InfraStateExpectedCount, name)
		require.Equal(t, int64(24), daily.DataQuality.EmptyHourCount+daily.DataQuality.MissingHourCount, name)
		require.Equal(t, "1440", daily.DataQuality.MaxGapMinutes.String(), name)
		require.Equal(t, int64(3), daily.DataQuality.DataGapCount, name)
		require.Equal(t, CollectionPoor, daily.CollectionStatus, name)
		doc := daily.Document(Korean)
		require.True(t, doc.Empty, name)
		require.Empty(t, doc.Charts, name)
		require.Equal(t, []string{"summary", "collection", "checks", "limitations", "verification"}, sectionIDs(doc), name)
	}
}

func sectionIDs(doc Document) []string {
	var ids []string
	for _, section := range doc.Sections {
		ids = append(ids, section.ID)
	}
	return ids
}

func TestAFactoryAddedAtNoonIsMeasuredByTheWholeDay(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	window := day.Window()
	daily := mergeByHour(factoryA, day, slow(), slowDay(factoryA, Span{Start: window.Start.Add(12 * time.Hour), End: window.End}, "100"))
	require.Equal(t, "0.5", daily.DataQuality.FactoryStateCollectionRate.String())
	require.Equal(t, int64(12), daily.DataQuality.EmptyHourCount)
	require.Equal(t, int64(12), daily.Pipeline.CriticalGapCount)
	require.Equal(t, GapHourStart, daily.DataQuality.GapWindows[0].GapType)
	require.Equal(t, "00:00~12:00", daily.DataQuality.GapWindows[0].TimeRange)
	require.Contains(t, daily.DataLimitations[2], "Data begin at 12:00.")
	found := false
	for _, section := range daily.Document(Korean).Sections {
		for _, finding := range section.Findings {
			found = found || finding.Text == "데이터는 12:00부터 있습니다. 기대 건수는 하루 전체를 기준으로 하므로 그 이전은 결측으로 집계됩니다."
		}
	}
	require.True(t, found)
}

func TestAMissingHourIsExpectedAllTheSame(t *testing.T) {
	day, settings := parseDay(t, "2026-01-01", "Asia/Seoul"), slow()
	var summaries []FactoryHourSummary
	for _, hour := range day.Hours() {
		if hour.Label != "07" {
			summaries = append(summaries, summarise(factoryA, day, hour, settings, slowDay(factoryA, Span{Start: hour.Start, End: hour.End}, "100")))
		}
	}
	foreign := summaries[3]
	foreign.FactoryID, foreign.Hour = "factory-b", "07"
	yesterday := summaries[3]
	yesterday.ReportDate, yesterday.Hour = "2025-12-31", "07"
	elsewhere := summaries[3]
	elsewhere.Timezone, elsewhere.Hour = "UTC", "07"
	slices.Reverse(summaries)
	daily := MergeFactoryDay(factoryA, day, settings, append([]FactoryHourSummary{foreign, yesterday, elsewhere}, summaries...))
	require.Equal(t, int64(1), daily.DataQuality.MissingHourCount)
	require.Zero(t, daily.DataQuality.EmptyHourCount)
	require.Equal(t, int64(1440), daily.DataQuality.FactoryStateExpectedCount)
	require.Equal(t, int64(1380), daily.DataQuality.FactoryStateActualCount)
	require.Equal(t, "3660", daily.DataQuality.MaxGapSeconds.String())
	require.Contains(t, daily.DataLimitations[2], "count as silent: 1.")
}

func TestALevelIsTheWorstOfItsMinutes(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	daily := mergeByHour(factoryA, day, slow(), append(slowDay(factoryA, day.Window(), "100"), riskSample(factoryA, day.Window().Start.Add(time.Second), "84.99", "normal")))
	require.Equal(t, []string{"warning", "warning"}, []string{daily.Risk.DominantLevel, daily.Risk.WorstLevel})
	daily = mergeByHour(factoryA, day, slow(), append(slowDay(factoryA, day.Window(), "100"), riskSample(factoryA, day.Window().Start.Add(time.Second), "0", "normal")))
	require.Equal(t, []string{"danger", "danger"}, []string{daily.Risk.DominantLevel, daily.Risk.WorstLevel})
	require.Equal(t, "0", daily.Risk.MinScore.String())
}

func TestTheDataTellTheEnvironmentOfAnUnknownFactory(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	daily := mergeSamples("factory-z", day, DefaultSettings(), []sample{snapshotSample("factory-z", day.Window().Start, "1")})
	require.Equal(t, Profile{EnvironmentType: "vm-mac", InputModuleType: "unknown", InterpretationMode: ProductionEdge}, daily.FactoryProfile)
}

func TestRestartsBetweenHoursCount(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	edge := day.Window().Start.Add(time.Hour)
	daily := mergeSamples(factoryA, day, DefaultSettings(), []sample{
		infraSample(factoryA, edge.Add(-20*time.Second), cluster{restarts: 1}), infraSample(factoryA, edge, cluster{restarts: 2}), infraSample(factoryA, edge.Add(5*time.Hour), cluster{restarts: 4}),
	})
	require.Equal(t, int64(18), daily.Infra.WorkloadRestartTotal, "six workloads, three restarts each")
}
