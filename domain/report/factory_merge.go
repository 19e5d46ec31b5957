package report

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// levelUnknown is the level of a day without scores.
const levelUnknown = "unknown"

// MergeFactoryDay is a factory's day made of the summaries of its hours, in any
// order. An hour without a summary counts as expected and as silent, and so does
// one whose summary is of another factory, date or zone; of two summaries of an
// hour the first counts. Sums, averages, extremes, percentiles and gaps are those
// of all the day's samples (see MergeBasis); events are made of those that the
// hours kept.
func MergeFactoryDay(factoryID string, day Day, settings Settings, hours []FactoryHourSummary) FactoryDaily {
	m := dayMerge{factoryID: factoryID, day: day, settings: settings}
	m.take(hours)
	daily := FactoryDaily{
		SchemaVersion: SchemaVersion, SummaryType: "factory_daily", FactoryID: factoryID,
		ReportDate: day.Date(), Timezone: day.Timezone(), Status: StatusSuccess,
		Window:         DayWindow{StartUTC: day.Window().Start, EndUTC: day.Window().End},
		FactoryProfile: m.profile(), Snapshot: m.final(), Thresholds: settings.thresholds(),
	}
	basis := m.basis()
	gaps := gapsOf(joined(slices.Clone(basis.Silences)), settings)
	events := m.events()
	daily.DataQuality = m.quality(basis, day.gapFigures(gaps))
	daily.Risk = m.risk(basis, events)
	daily.FactoryState = stateBlock(basis, settings)
	daily.FactoryState.SpikeEvents = spikes(events)
	daily.Infra = m.infra(basis)
	daily.Pipeline = m.pipeline(basis, gaps, daily.DataQuality.MaxGapSeconds)
	for _, hour := range m.hours {
		daily.FactoryState.AbnormalSoundCount += hour.FactoryState.AbnormalSoundCount
		daily.EventCount += hour.EventCount
		daily.Series = daily.Series.append(hour.Series)
	}
	daily.EventCount -= m.joinedCount(events)
	daily.Series = daily.Series.orEmpty()
	daily.Events = worstEvents(events, len(events))
	daily.Gaps = day.chartGaps(gaps)
	if int(daily.DataQuality.EmptyHourCount+daily.DataQuality.MissingHourCount) == len(m.hours) {
		daily.Status = StatusInsufficient
	}
	daily.judge()
	return daily
}

// dayMerge has the day's hours in order, those without a summary made up empty.
type dayMerge struct {
	factoryID string
	day       Day
	settings  Settings
	hours     []FactoryHourSummary
	missing   int64
}

func (m *dayMerge) take(summaries []FactoryHourSummary) {
	known := map[string]FactoryHourSummary{}
	for _, summary := range summaries {
		ours := summary.FactoryID == m.factoryID && summary.ReportDate == m.day.Date() && summary.Timezone == m.day.Timezone()
		if _, twice := known[summary.Hour]; ours && !twice {
			known[summary.Hour] = summary
		}
	}
	for _, hour := range m.day.Hours() {
		summary, ok := known[hour.Label]
		if !ok {
			m.missing++
			summary = emptyHour(m.factoryID, m.day, hour, m.settings)
		}
		m.hours = append(m.hours, summary)
	}
}

// profile is the configured one; where none is, the data say which environment
// it is.
func (m *dayMerge) profile() Profile {
	profile := m.settings.Profile(m.factoryID)
	if final := m.final(); final != nil && final.EnvironmentType != "" && profile.EnvironmentType == "unknown" {
		profile.EnvironmentType = final.EnvironmentType
	}
	return profile
}

// final is the last snapshot of the day.
func (m *dayMerge) final() *FinalState {
	var final *FinalState
	for _, hour := range m.hours {
		if hour.Snapshot != nil && (final == nil || hour.Snapshot.UpdatedAt.After(final.UpdatedAt)) {
			final = hour.Snapshot
		}
	}
	return final
}

// basis is the hours' merged.
func (m *dayMerge) basis() MergeBasis {
	merged := MergeBasis{Causes: map[string]int64{}, Distributions: map[string]Distribution{}}
	for _, hour := range m.hours {
		basis := hour.MergeBasis
		merged.Samples = merged.Samples.plus(basis.Samples)
		merged.Silences = append(merged.Silences, basis.Silences...)
		for cause, count := range basis.Causes {
			merged.Causes[cause] += count
		}
		for name, distribution := range basis.Distributions {
			merged.Distributions[name] = merged.Distributions[name].Merge(distribution)
		}
		if basis.FirstAt != nil && (merged.FirstAt == nil || basis.FirstAt.Before(*merged.FirstAt)) {
			merged.FirstAt = basis.FirstAt
		}
		if basis.LastAt != nil && (merged.LastAt == nil || basis.LastAt.After(*merged.LastAt)) {
			merged.LastAt = basis.LastAt
		}
	}
	return merged
}

func (c SampleCounts) plus(other SampleCounts) SampleCounts {
	return SampleCounts{
		RiskWarning: c.RiskWarning + other.RiskWarning, RiskDanger: c.RiskDanger + other.RiskDanger,
		PipelineWarning: c.PipelineWarning + other.PipelineWarning, PipelineCritical: c.PipelineCritical + other.PipelineCritical,
		TemperatureOver: c.TemperatureOver + other.TemperatureOver, HumidityOver: c.HumidityOver + other.HumidityOver,
		FireOver: c.FireOver + other.FireOver, FallOver: c.FallOver + other.FallOver, BendOver: c.BendOver + other.BendOver,
		NodeNotReady: c.NodeNotReady + other.NodeNotReady, UnhealthyWorkloads: c.UnhealthyWorkloads + other.UnhealthyWorkloads,
	}
}

func (m *dayMerge) quality(basis MergeBasis, gaps GapFigures) DailyQuality {
	quality := DailyQuality{MissingHourCount: m.missing, GapFigures: gaps, FirstRecordAt: basis.FirstAt, LastRecordAt: basis.LastAt}
	for _, hour := range m.hours {
		quality.FactoryStateActualCount += hour.InputCounts.FactoryState
		quality.RiskScoreActualCount += hour.InputCounts.RiskScore
		quality.InfraStateActualCount += hour.InputCounts.InfraState
		quality.FactoryStateExpectedCount += hour.ExpectedCounts.FactoryState
		quality.RiskScoreExpectedCount += hour.ExpectedCounts.RiskScore
		quality.InfraStateExpectedCount += hour.ExpectedCounts.InfraState
		quality.DuplicateMessageCount += hour.InputCounts.DuplicateRecords
		quality.InvalidRecordCount += hour.InputCounts.InvalidRecords
		quality.UnreadObjectCount += hour.InputCounts.UnreadObjects
		quality.EmptyHourCount += oneIf(hour.Status == StatusEmpty)
	}
	quality.EmptyHourCount -= m.missing
	quality.FactoryStateCollectionRate = rate(quality.FactoryStateActualCount, quality.FactoryStateExpectedCount)
	quality.RiskScoreCollectionRate = rate(quality.RiskScoreActualCount, quality.RiskScoreExpectedCount)
	quality.InfraStateCollectionRate = rate(quality.InfraStateActualCount, quality.InfraStateExpectedCount)
	return quality
}

func (m *dayMerge) risk(basis MergeBasis, events []Event) RiskBlock {
	block := riskBlock(basis, m.settings)
	block.DominantLevel, block.WorstLevel = levelUnknown, levelUnknown
	if block.MinScore != nil {
		block.WorstLevel = string(m.settings.riskLevel(*block.MinScore))
		block.DominantLevel = string(Normal)
		switch {
		case basis.Samples.RiskDanger > 0:
			block.DominantLevel = string(Danger)
		case basis.Samples.RiskWarning > 0:
			block.DominantLevel = string(Warning)
		}
	}
	block.WorstPeriods = m.worstPeriods(events)
	return block
}

// worstPeriods are the hours' lowest. A period that is part of an event of the
// day has that event's range.
func (m *dayMerge) worstPeriods(events []Event) []WorstPeriod {
	periods := []WorstPeriod{}
	for _, hour := range m.hours {
		periods = append(periods, hour.Risk.WorstPeriods...)
	}
	slices.SortFunc(periods, lowestFirst)
	periods = periods[:min(maxWorstPeriods, len(periods))]
	for i := range periods {
		for _, event := range events {
			whole := Span{Start: event.StartUTC, End: event.EndUTC}
			if event.Type == EventRisk && string(event.Severity) == periods[i].Level && whole.Contains(periods[i].StartUTC) {
				periods[i].StartUTC, periods[i].EndUTC, periods[i].TimeRange = whole.Start, whole.End, event.TimeRange
			}
		}
	}
	return periods
}

func (m *dayMerge) infra(basis MergeBasis) InfraBlock {
	interval := m.settings.InfraStateInterval
	block := InfraBlock{
		NodeNotReadyMinutes:      sampleMinutes(basis.Samples.NodeNotReady, interval),
		UnhealthyWorkloadMinutes: sampleMinutes(basis.Samples.UnhealthyWorkloads, interval),
		WorkloadRestartTotal:     m.restartsBetween(),
	}
	nodes, workloads := map[string]int64{}, map[string]int64{}
	for _, hour := range m.hours {
		block.InfraStateCount += hour.Infra.InfraStateCount
		block.NodeNotReadyCount = max(block.NodeNotReadyCount, hour.Infra.NodeNotReadyCount)
		block.WorkloadRestartTotal += hour.Infra.WorkloadRestartTotal
		for _, node := range hour.Infra.NotReadyNodes {
			nodes[node.Name] += node.Samples
		}
		for _, workload := range hour.Infra.UnhealthyWorkloads {
			workloads[workload.Name] += workload.Samples
		}
	}
	block.NotReadyNodes = nameMinutes(nodes, maxNodes, interval)
	block.UnhealthyWorkloads = nameMinutes(workloads, maxWorkloads, interval)
	return block
}

// restartsBetween are the restarts from the last sample of an hour to the first
// one of a later hour.
func (m *dayMerge) restartsBetween() int64 {
	counters := map[string]int64{}
	var total int64
	for _, hour := range m.hours {
		for _, span := range hour.MergeBasis.Restarts {
			if last, known := counters[span.Workload]; known {
				total += max(0, span.First-last)
			}
			counters[span.Workload] = span.Last
		}
	}
	return total
}

func (m *dayMerge) pipeline(basis MergeBasis, gaps [][]Silence, longest exact.Decimal) DailyPipeline {
	return DailyPipeline{
		WarningMinutes:   sampleMinutes(basis.Samples.PipelineWarning, m.settings.RiskScoreInterval),
		CriticalMinutes:  sampleMinutes(basis.Samples.PipelineCritical, m.settings.RiskScoreInterval),
		CriticalGapCount: m.criticalHours(gaps),
		MaxGapSeconds:    longest,
	}
}

// criticalHours is the number of hours that had part in a gap of 5 minutes or
// more. A part too short to be a gap by itself does not count.
func (m *dayMerge) criticalHours(gaps [][]Silence) int64 {
	critical := map[time.Time]bool{}
	for _, gap := range gaps {
		if lengthOf(gap) < criticalGap {
			continue
		}
		for _, part := range gap {
			if part.span().Length() > gapAfter(m.settings.Interval(part.Dataset)) {
				critical[m.hourOf(part.Start)] = true
			}
		}
	}
	return int64(len(critical))
}

// hourOf is the start of the hour that has t.
func (m *dayMerge) hourOf(t time.Time) time.Time {
	for _, hour := range m.day.Hours() {
		if hour.Contains(t) {
			return hour.Start
		}
	}
	return t
}

// events are the hours' events by time, joined across the edges of hours.
func (m *dayMerge) events() []Event {
	var events []Event
	for _, hour := range m.hours {
		events = append(events, hour.Events...)
	}
	return m.day.joinEvents(events, m.settings)
}

// joinedCount is how many of the hours' events became part of another.
func (m *dayMerge) joinedCount(events []Event) int64 {
	kept := 0
	for _, hour := range m.hours {
		kept += len(hour.Events)
	}
	return int64(kept - len(events))
}

func (s Series) append(other Series) Series {
	return Series{
		RiskScore:   append(s.RiskScore, other.RiskScore...),
		Temperature: append(s.Temperature, other.Temperature...),
		Humidity:    append(s.Humidity, other.Humidity...),
		AIScore:     append(s.AIScore, other.AIScore...),
	}
}

// orEmpty is the series by time, with empty curves instead of none.
func (s Series) orEmpty() Series {
	for _, points := range []*[]SeriesPoint{&s.RiskScore, &s.Temperature, &s.Humidity, &s.AIScore} {
		*points = append([]SeriesPoint{}, *points...)
		slices.SortStableFunc(*points, func(a, b SeriesPoint) int { return a.At.Compare(b.At) })
	}
	return s
}

// chartGaps are the longest gaps by time.
func (d Day) chartGaps(gaps [][]Silence) []GapWindow {
	windows := make([]GapWindow, 0, len(gaps))
	for _, gap := range gaps {
		windows = append(windows, d.windowOf(gap))
	}
	slices.SortStableFunc(windows, longestFirst)
	windows = windows[:min(maxChartGaps, len(windows))]
	slices.SortFunc(windows, func(a, b GapWindow) int {
		return cmp.Or(a.StartUTC.Compare(b.StartUTC), cmp.Compare(a.Dataset, b.Dataset))
	})
	return windows
}

func (s Settings) thresholds() Thresholds {
	return Thresholds{
		RiskWarningMax: s.RiskWarningMax, RiskDangerMax: s.RiskDangerMax,
		TemperatureWarning: s.TemperatureWarning, TemperatureCritical: s.TemperatureCritical,
		HumidityWarning: s.HumidityWarning, HumidityCritical: s.HumidityCritical, AISpike: s.AISpike, AICritical: s.AICritical,
	}
}

// judge sets the day's judgements and what follows from them.
func (d *FactoryDaily) judge() {
	d.OverallStatus, d.CollectionStatus = d.overall(), d.collection()
	d.RecommendedChecks = d.checks()
	d.DataLimitations = []string{}
	for _, limitation := range d.limitations() {
		d.DataLimitations = append(d.DataLimitations, limitation.in(English))
	}
}

// overall is danger with any dangerous score; a warning with any bad score, gap,
// critical pipeline, node that was not ready or restart.
func (d *FactoryDaily) overall() Verdict {
	switch {
	case d.Risk.DangerMinutes.Sign() > 0:
		return Danger
	case d.Risk.WarningMinutes.Sign() > 0, d.DataQuality.DataGapCount > 0, d.Pipeline.CriticalMinutes.Sign() > 0,
		d.Infra.NodeNotReadyCount > 0, d.Infra.WorkloadRestartTotal > 0:
		return Warning
	}
	return Normal
}

// Collection rates from which a day is good or partial.
var (
	goodRate    = exact.MustParse("0.99")
	partialRate = exact.MustParse("0.95")
)

// collection judges by the worst dataset.
func (d *FactoryDaily) collection() CollectionStatus {
	q := d.DataQuality
	return collectionAt(exact.Min(exact.Min(q.FactoryStateCollectionRate, q.RiskScoreCollectionRate), q.InfraStateCollectionRate))
}

// collectionAt judges a collection rate.
func collectionAt(rate exact.Decimal) CollectionStatus {
	switch {
	case rate.AtLeast(goodRate):
		return CollectionGood
	case rate.AtLeast(partialRate):
		return CollectionPartial
	}
	return CollectionPoor
}
