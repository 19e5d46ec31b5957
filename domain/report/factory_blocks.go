package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Bounds of lists in summaries.
const (
	maxTopCauses    = 5
	maxWorstPeriods = 1
	maxSpikes       = 10
	maxNodes        = 20
	maxWorkloads    = 5
	maxRestartSpans = 1000
	maxCauseNames   = 100
)

// The quantities that have a distribution.
const (
	quantityScore       = "risk_score"
	quantityTemperature = "temperature"
	quantityHumidity    = "humidity"
	quantityPressure    = "pressure"
	quantityFire        = "fire_score"
	quantityFall        = "fall_score"
	quantityBend        = "bend_score"
)

// hourData are the records of an hour by time.
type hourData struct {
	day      Day
	hour     Hour
	settings Settings
	states   []record[stateValue]
	risks    []record[riskValue]
	infra    []record[infraValue]
}

// emptyHour is the summary of an hour of which nothing is known.
func emptyHour(factoryID string, day Day, hour Hour, settings Settings) FactoryHourSummary {
	return hourData{day: day, hour: hour, settings: settings}.summary(factoryID)
}

func (d hourData) summary(factoryID string) FactoryHourSummary {
	events := d.events()
	basis := d.basis()
	gaps := gapsOf(joined(slices.Clone(basis.Silences)), d.settings)
	summary := FactoryHourSummary{
		SchemaVersion: SchemaVersion, SummaryType: "factory_hour", FactoryID: factoryID,
		ReportDate: d.day.Date(), Timezone: d.day.Timezone(), Hour: d.hour.Label, Status: StatusSuccess,
		HourWindow:     d.day.HourWindow(d.hour),
		ExpectedCounts: d.settings.expected(d.hour),
		Risk:           riskBlock(basis, d.settings),
		FactoryState:   stateBlock(basis, d.settings),
		Infra:          d.infraBlock(basis),
		EventCount:     int64(len(events)),
		Series:         d.series(),
		MergeBasis:     basis,
	}
	summary.InputCounts.DatasetCounts = DatasetCounts{
		FactoryState: int64(len(d.states)), RiskScore: int64(len(d.risks)), InfraState: int64(len(d.infra)),
	}
	if summary.InputCounts.DatasetCounts == (DatasetCounts{}) {
		summary.Status = StatusEmpty
	}
	summary.DataQuality = hourQuality(summary.InputCounts.DatasetCounts, summary.ExpectedCounts, d.day.gapFigures(gaps))
	summary.Pipeline = HourPipeline{
		WarningMinutes:  sampleMinutes(basis.Samples.PipelineWarning, d.settings.RiskScoreInterval),
		CriticalMinutes: sampleMinutes(basis.Samples.PipelineCritical, d.settings.RiskScoreInterval),
		MaxGapSeconds:   summary.DataQuality.MaxGapSeconds,
	}
	summary.Risk.WorstPeriods = worstPeriods(events, d.settings)
	summary.FactoryState.AbnormalSoundCount = d.abnormalSounds()
	summary.FactoryState.SpikeEvents = spikes(events)
	summary.Events = worstEvents(events, d.settings.MaxHourlyEvents)
	return summary
}

// expected is how many records of each dataset an hour has.
func (s Settings) expected(hour Hour) DatasetCounts {
	length := hour.Length()
	return DatasetCounts{
		FactoryState: int64(length / s.FactoryStateInterval),
		RiskScore:    int64(length / s.RiskScoreInterval),
		InfraState:   int64(length / s.InfraStateInterval),
	}
}

func hourQuality(actual, expected DatasetCounts, gaps GapFigures) HourQuality {
	return HourQuality{
		FactoryStateCollectionRate: rate(actual.FactoryState, expected.FactoryState),
		RiskScoreCollectionRate:    rate(actual.RiskScore, expected.RiskScore),
		InfraStateCollectionRate:   rate(actual.InfraState, expected.InfraState),
		GapFigures:                 gaps,
	}
}

// rate is actual / expected with 4 decimals; 0 where nothing was expected.
func rate(actual, expected int64) exact.Decimal {
	if expected <= 0 {
		return exact.Decimal{}
	}
	return exact.FromInt(actual).Quo(exact.FromInt(expected), ratePlaces)
}

// sampleMinutes is the time that samples stand for in minutes with 2 decimals.
func sampleMinutes(samples int64, interval time.Duration) exact.Decimal {
	seconds := exact.FromInt(samples).Mul(exact.FromInt(int64(interval / time.Second)))
	return seconds.Quo(exact.FromInt(60), figurePlaces)
}

func sampleSeconds(samples int64, interval time.Duration) exact.Decimal {
	return exact.FromInt(samples).Mul(exact.FromInt(int64(interval / time.Second)))
}

// basis is what both the hour's blocks and the day's are made from.
func (d hourData) basis() MergeBasis {
	basis := MergeBasis{Causes: map[string]int64{}, Distributions: map[string]Distribution{}}
	samples := map[string][]exact.Decimal{}
	for _, state := range d.states {
		for name, value := range state.value.quantities() {
			if value != nil {
				samples[name] = append(samples[name], *value)
			}
		}
		d.settings.countState(&basis.Samples, state.value)
	}
	for _, risk := range d.risks {
		samples[quantityScore] = append(samples[quantityScore], risk.value.score)
		for _, cause := range risk.value.causes {
			basis.Causes[cause]++
		}
		d.settings.countRisk(&basis.Samples, risk.value)
	}
	for _, infra := range d.infra {
		basis.Samples.NodeNotReady += oneIf(infra.value.nodesNotReady > 0)
		basis.Samples.UnhealthyWorkloads += oneIf(infra.value.workloadsBad > 0)
	}
	for name, values := range samples {
		basis.Distributions[name] = distributionOf(values)
	}
	basis.Causes = mostFrequent(basis.Causes, maxCauseNames)
	basis.Silences = d.silences()
	basis.Restarts, _ = d.restarts()
	basis.FirstAt, basis.LastAt = d.bounds()
	return basis
}

func (v stateValue) quantities() map[string]*exact.Decimal {
	return map[string]*exact.Decimal{
		quantityTemperature: v.temperature, quantityHumidity: v.humidity, quantityPressure: v.pressure,
		quantityFire: v.fire, quantityFall: v.fall, quantityBend: v.bend,
	}
}

func (s Settings) countState(counts *SampleCounts, value stateValue) {
	counts.TemperatureOver += oneIf(reaches(value.temperature, s.TemperatureWarning))
	counts.HumidityOver += oneIf(reaches(value.humidity, s.HumidityWarning))
	counts.FireOver += oneIf(reaches(value.fire, s.AISpike))
	counts.FallOver += oneIf(reaches(value.fall, s.AISpike))
	counts.BendOver += oneIf(reaches(value.bend, s.AISpike))
}

func (s Settings) countRisk(counts *SampleCounts, value riskValue) {
	level := s.riskLevel(value.score)
	counts.RiskDanger += oneIf(level == Danger)
	counts.RiskWarning += oneIf(level == Warning)
	counts.PipelineWarning += oneIf(value.pipeline == "warning")
	counts.PipelineCritical += oneIf(value.pipeline == "critical")
}

// riskLevel is the level of a score (100 = safest) as people read it, with 2
// decimals.
func (s Settings) riskLevel(score exact.Decimal) Verdict {
	score = score.Round(figurePlaces)
	switch {
	case s.RiskDangerMax.AtLeast(score):
		return Danger
	case s.RiskWarningMax.AtLeast(score):
		return Warning
	}
	return Normal
}

func reaches(value *exact.Decimal, bound exact.Decimal) bool {
	return value != nil && value.AtLeast(bound)
}

func oneIf(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

// mostFrequent are the limit most frequent of counted names.
func mostFrequent(counts map[string]int64, limit int) map[string]int64 {
	kept := make(map[string]int64, min(len(counts), limit))
	for _, name := range byFrequency(counts, limit) {
		kept[name] = counts[name]
	}
	return kept
}

// byFrequency are the limit most frequent names, most frequent first.
func byFrequency(counts map[string]int64, limit int) []string {
	names := slices.AppendSeq([]string{}, maps.Keys(counts))
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return names[:min(limit, len(names))]
}

// riskBlock is the block but for its periods.
func riskBlock(basis MergeBasis, settings Settings) RiskBlock {
	scores := basis.Distributions[quantityScore]
	return RiskBlock{
		AvgScore: scores.Average(), MinScore: scores.Least(), MaxScore: scores.Greatest(),
		P05Score: scores.Percentile(5), P95Score: scores.Percentile(95),
		WarningMinutes: sampleMinutes(basis.Samples.RiskWarning, settings.RiskScoreInterval),
		DangerMinutes:  sampleMinutes(basis.Samples.RiskDanger, settings.RiskScoreInterval),
		TopCauses:      byFrequency(basis.Causes, maxTopCauses),
		WorstPeriods:   []WorstPeriod{},
	}
}

// stateBlock is the block but for sounds and spikes.
func stateBlock(basis MergeBasis, settings Settings) FactoryStateBlock {
	temperature, humidity := basis.Distributions[quantityTemperature], basis.Distributions[quantityHumidity]
	pressure, samples := basis.Distributions[quantityPressure], basis.Samples
	fire, fall, bend := basis.Distributions[quantityFire], basis.Distributions[quantityFall], basis.Distributions[quantityBend]
	interval := settings.FactoryStateInterval
	return FactoryStateBlock{
		TemperatureAvg: temperature.Average(), TemperatureMin: temperature.Least(), TemperatureMax: temperature.Greatest(),
		TemperatureP05: temperature.Percentile(5), TemperatureP95: temperature.Percentile(95),
		TemperatureOverThresholdMinutes: sampleMinutes(samples.TemperatureOver, interval),
		HumidityAvg:                     humidity.Average(), HumidityMin: humidity.Least(), HumidityMax: humidity.Greatest(),
		HumidityP05: humidity.Percentile(5), HumidityP95: humidity.Percentile(95),
		HumidityOverThresholdMinutes: sampleMinutes(samples.HumidityOver, interval),
		PressureAvg:                  pressure.Average(), PressureMin: pressure.Least(), PressureMax: pressure.Greatest(),
		PressureP05: pressure.Percentile(5), PressureP95: pressure.Percentile(95),
		MaxFireScore: fire.Greatest(), FireScoreP95: fire.Percentile(95),
		FireScoreOverThresholdSeconds: sampleSeconds(samples.FireOver, interval),
		MaxFallScore:                  fall.Greatest(), FallScoreP95: fall.Percentile(95),
		FallScoreOverThresholdSeconds: sampleSeconds(samples.FallOver, interval),
		MaxBendScore:                  bend.Greatest(), BendScoreP95: bend.Percentile(95),
		BendScoreOverThresholdSeconds: sampleSeconds(samples.BendOver, interval),
		SpikeEvents:                   []SpikeEvent{},
	}
}

func (d hourData) abnormalSounds() int64 {
	var count int64
	for _, state := range d.states {
		count += oneIf(state.value.abnormalSound)
	}
	return count
}

func (d hourData) infraBlock(basis MergeBasis) InfraBlock {
	_, restarts := d.restarts()
	block := InfraBlock{
		InfraStateCount:          int64(len(d.infra)),
		NodeNotReadyMinutes:      sampleMinutes(basis.Samples.NodeNotReady, d.settings.InfraStateInterval),
		WorkloadRestartTotal:     restarts,
		UnhealthyWorkloadMinutes: sampleMinutes(basis.Samples.UnhealthyWorkloads, d.settings.InfraStateInterval),
	}
	nodes, workloads := map[string]int64{}, map[string]int64{}
	for _, infra := range d.infra {
		block.NodeNotReadyCount = max(block.NodeNotReadyCount, infra.value.nodesNotReady)
		for _, name := range infra.value.notReadyNodes {
			nodes[name]++
		}
		for _, name := range infra.value.badWorkloads {
			workloads[name]++
		}
	}
	block.NotReadyNodes = nameMinutes(nodes, maxNodes, d.settings.InfraStateInterval)
	block.UnhealthyWorkloads = nameMinutes(workloads, maxWorkloads, d.settings.InfraStateInterval)
	return block
}

func nameMinutes(samples map[string]int64, limit int, interval time.Duration) []NameMinutes {
	list := []NameMinutes{}
	for _, name := range byFrequency(samples, limit) {
		list = append(list, NameMinutes{Name: name, Samples: samples[name], Minutes: sampleMinutes(samples[name], interval)})
	}
	return list
}

// restarts are the workloads' counters and by how much they rose together. A
// counter that falls belongs to a new pod and is a new beginning.
func (d hourData) restarts() ([]RestartSpan, int64) {
	spans := map[string]RestartSpan{}
	var total int64
	for _, infra := range d.infra {
		for name, count := range infra.value.restarts {
			span, known := spans[name]
			if !known {
				span = RestartSpan{Workload: name, First: count, Last: count}
			}
			total += max(0, count-span.Last)
			span.Last = count
			spans[name] = span
		}
	}
	list := make([]RestartSpan, 0, len(spans))
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		list = append(list, spans[name])
	}
	return list[:min(maxRestartSpans, len(list))], total
}

// silences are those of every dataset.
func (d hourData) silences() []Silence {
	var silences []Silence
	for _, dataset := range []struct {
		name  string
		times []time.Time
	}{
		{FactoryStateDataset, timesOf(d.states)}, {RiskScoreDataset, timesOf(d.risks)}, {InfraStateDataset, timesOf(d.infra)},
	} {
		silences = append(silences, silencesOf(dataset.name, d.hour, dataset.times, d.settings.Interval(dataset.name))...)
	}
	return silences
}

func timesOf[T any](list []record[T]) []time.Time {
	times := make([]time.Time, 0, len(list))
	for _, one := range list {
		times = append(times, one.at)
	}
	return times
}

// bounds are the times of the first and the last record of any dataset.
func (d hourData) bounds() (first, last *time.Time) {
	times := slices.Concat(timesOf(d.states), timesOf(d.risks), timesOf(d.infra))
	if len(times) == 0 {
		return nil, nil
	}
	least, greatest := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	return &least, &greatest
}

// series are the hour's curves.
func (d hourData) series() Series {
	scores := newCurve(d.hour)
	for _, risk := range d.risks {
		scores.add(risk.at, &risk.value.score)
	}
	temperature, humidity, ai := newCurve(d.hour), newCurve(d.hour), newCurve(d.hour)
	for _, state := range d.states {
		temperature.add(state.at, state.value.temperature)
		humidity.add(state.at, state.value.humidity)
		ai.add(state.at, greatestOf(state.value.fire, state.value.fall, state.value.bend))
	}
	return Series{RiskScore: scores.points(), Temperature: temperature.points(), Humidity: humidity.points(), AIScore: ai.points()}
}

// greatestOf is nil when no value is known.
func greatestOf(values ...*exact.Decimal) *exact.Decimal {
	var greatest *exact.Decimal
	for _, value := range values {
		if value != nil && (greatest == nil || greatest.Less(*value)) {
			greatest = value
		}
	}
	return greatest
}

// curve gathers samples by bucket. Buckets start with the hour's spans, so that
// none lies in two hours.
type curve struct {
	hour    Hour
	buckets map[time.Time][]exact.Decimal
}

func newCurve(hour Hour) curve { return curve{hour: hour, buckets: map[time.Time][]exact.Decimal{}} }

func (c curve) add(at time.Time, value *exact.Decimal) {
	index := spanOf(c.hour.Spans, at)
	if value == nil || index < 0 {
		return
	}
	start := c.hour.Spans[index].Start
	bucket := start.Add(at.Sub(start).Truncate(seriesStep))
	c.buckets[bucket] = append(c.buckets[bucket], *value)
}

func (c curve) points() []SeriesPoint {
	points := []SeriesPoint{}
	for _, at := range slices.SortedFunc(maps.Keys(c.buckets), time.Time.Compare) {
		values := c.buckets[at]
		least, greatest, sum := values[0], values[0], exact.Decimal{}
		for _, value := range values {
			least, greatest, sum = exact.Min(least, value), exact.Max(greatest, value), sum.Add(value)
		}
		points = append(points, SeriesPoint{
			At: at, Min: least.Round(figurePlaces), Max: greatest.Round(figurePlaces),
			Avg: sum.Quo(exact.FromInt(int64(len(values))), figurePlaces),
		})
	}
	return points
}
