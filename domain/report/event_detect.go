package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Bounds of evidence.
const (
	maxEvidenceIDs   = 3
	maxEvidenceNames = 5
	restartWarning   = 3
)

// run is a run of consecutive records, both ends included.
type run struct{ first, last int }

// runsOf are the runs of records that meet a condition. Records further apart
// than the tolerance are not consecutive: what happened between them is unknown.
func runsOf[T any](list []record[T], tolerance time.Duration, holds func(T) bool) []run {
	var runs []run
	open := false
	for i, one := range list {
		switch {
		case !holds(one.value):
			open = false
		case open && one.at.Sub(list[i-1].at) <= tolerance:
			runs[len(runs)-1].last = i
		default:
			runs = append(runs, run{first: i, last: i})
			open = true
		}
	}
	return runs
}

// events are all events of the hour by time, those close together joined.
func (d hourData) events() []Event {
	var events []Event
	events = append(events, d.riskEvents()...)
	for _, quantity := range d.settings.quantities() {
		events = append(events, d.stateEvents(quantity)...)
	}
	events = append(events, d.nodeEvents()...)
	events = append(events, d.workloadEvents()...)
	events = append(events, d.restartEvents()...)
	return d.day.joinEvents(events, d.settings)
}

// eventOver is an event over records of an interval, cut at the end of the hour.
func eventOver[T any](d hourData, list []record[T], r run, interval time.Duration) Event {
	first, last := list[r.first].at, list[r.last].at
	end := last.Add(interval)
	if index := spanOf(d.hour.Spans, last); index >= 0 {
		end = earliest(end, d.hour.Spans[index].End)
	}
	return Event{StartUTC: first, EndUTC: end, Evidence: Evidence{SampleCount: int64(r.last - r.first + 1), MessageIDs: []string{}}}
}

// addIDs adds the ids of records that show an event, each once.
func addIDs[T any](ids []string, list []record[T], indexes ...int) []string {
	for _, index := range indexes {
		if id := list[index].messageID; id != "" && !slices.Contains(ids, id) && len(ids) < maxEvidenceIDs {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d hourData) riskEvents() []Event {
	tolerance := max(d.settings.EventMergeGap, gapAfter(d.settings.RiskScoreInterval))
	var events []Event
	for _, r := range runsOf(d.risks, tolerance, func(v riskValue) bool { return d.settings.riskLevel(v.score) != Normal }) {
		event := eventOver(d, d.risks, r, d.settings.RiskScoreInterval)
		worst, causes := r.first, map[string]int64{}
		for i := r.first; i <= r.last; i++ {
			if d.risks[i].value.score.Less(d.risks[worst].value.score) {
				worst = i
			}
			for _, cause := range d.risks[i].value.causes {
				causes[cause]++
			}
		}
		score := d.risks[worst].value.score.Round(figurePlaces)
		event.Type, event.Severity, event.Summary = EventRisk, SeverityWarning, "Risk score at or below the warning bound"
		if d.settings.riskLevel(score) == Danger {
			event.Severity, event.Summary = SeverityDanger, "Risk score at or below the danger bound"
		}
		event.Evidence.MinScore, event.Evidence.TopCauses = &score, byFrequency(causes, maxEvidenceNames)
		event.Evidence.MessageIDs = addIDs(event.Evidence.MessageIDs, d.risks, worst, r.first, r.last)
		d.addMeasurements(&event)
		events = append(events, event)
	}
	return events
}

// addMeasurements notes the extremes of what was measured during an event.
func (d hourData) addMeasurements(event *Event) {
	from, _ := slices.BinarySearchFunc(d.states, event.StartUTC, func(r record[stateValue], t time.Time) int { return r.at.Compare(t) })
	for _, state := range d.states[from:] {
		if !state.at.Before(event.EndUTC) {
			break
		}
		evidence := &event.Evidence
		evidence.TemperatureMax = figureMax(evidence.TemperatureMax, state.value.temperature)
		evidence.MaxFireScore = figureMax(evidence.MaxFireScore, state.value.fire)
		evidence.MaxFallScore = figureMax(evidence.MaxFallScore, state.value.fall)
		evidence.MaxBendScore = figureMax(evidence.MaxBendScore, state.value.bend)
	}
}

// figureMax is the greater value with 2 decimals; nil is unknown.
func figureMax(known, value *exact.Decimal) *exact.Decimal {
	if value == nil {
		return known
	}
	rounded := value.Round(figurePlaces)
	if known != nil && known.AtLeast(rounded) {
		return known
	}
	return &rounded
}

// figureMin is the smaller value; nil is unknown.
func figureMin(a, b *exact.Decimal) *exact.Decimal {
	if a == nil || (b != nil && b.Less(*a)) {
		return b
	}
	return a
}

// quantity is something measured that has bounds.
type quantity struct {
	name        string
	event       EventType
	mild, grave exact.Decimal
	value       func(stateValue) *exact.Decimal
	evidence    func(*Evidence) **exact.Decimal
}

// quantities are those that make events.
func (s Settings) quantities() []quantity {
	list := []quantity{
		{
			name: quantityTemperature, event: EventSensor, mild: s.TemperatureWarning, grave: s.TemperatureCritical,
			value:    func(v stateValue) *exact.Decimal { return v.temperature },
			evidence: func(e *Evidence) **exact.Decimal { return &e.TemperatureMax },
		},
		{
			name: quantityHumidity, event: EventSensor, mild: s.HumidityWarning, grave: s.HumidityCritical,
			value:    func(v stateValue) *exact.Decimal { return v.humidity },
			evidence: func(e *Evidence) **exact.Decimal { return &e.HumidityMax },
		},
		{
			name: quantityFire, event: EventAI, mild: s.AISpike, grave: s.AICritical,
			value:    func(v stateValue) *exact.Decimal { return v.fire },
			evidence: func(e *Evidence) **exact.Decimal { return &e.MaxFireScore },
		},
		{
			name: quantityFall, event: EventAI, mild: s.AISpike, grave: s.AICritical,
			value:    func(v stateValue) *exact.Decimal { return v.fall },
			evidence: func(e *Evidence) **exact.Decimal { return &e.MaxFallScore },
		},
		{
			name: quantityBend, event: EventAI, mild: s.AISpike, grave: s.AICritical,
			value:    func(v stateValue) *exact.Decimal { return v.bend },
			evidence: func(e *Evidence) **exact.Decimal { return &e.MaxBendScore },
		},
	}
	return list
}

func (d hourData) stateEvents(q quantity) []Event {
	tolerance := max(d.settings.EventMergeGap, gapAfter(d.settings.FactoryStateInterval))
	var events []Event
	for _, r := range runsOf(d.states, tolerance, func(v stateValue) bool { return reaches(q.value(v), q.mild) }) {
		event := eventOver(d, d.states, r, d.settings.FactoryStateInterval)
		worst := r.first
		for i := r.first; i <= r.last; i++ {
			if q.value(d.states[worst].value).Less(*q.value(d.states[i].value)) {
				worst = i
			}
		}
		peak := q.value(d.states[worst].value)
		event.Type, event.Subject, event.Severity = q.event, q.name, SeverityWarning
		event.Summary = fmt.Sprintf("%s at or above the warning threshold", q.name)
		if reaches(peak, q.grave) {
			event.Severity, event.Summary = SeverityDanger, fmt.Sprintf("%s at or above the critical threshold", q.name)
		}
		*q.evidence(&event.Evidence) = figureMax(nil, peak)
		event.Evidence.MessageIDs = addIDs(event.Evidence.MessageIDs, d.states, worst, r.first, r.last)
		events = append(events, event)
	}
	return events
}

func (d hourData) nodeEvents() []Event {
	return d.infraEvents(EventNode, func(v infraValue) trouble {
		return trouble{count: v.nodesNotReady, total: v.nodesTotal, names: v.notReadyNodes}
	}, "Nodes not ready", "All nodes not ready")
}

func (d hourData) workloadEvents() []Event {
	return d.infraEvents(EventWorkload, func(v infraValue) trouble {
		return trouble{count: v.workloadsBad, total: v.podsTotal, names: v.badWorkloads}
	}, "Workloads unhealthy", "All workloads unhealthy")
}

// trouble is how many of a cluster's parts are in trouble.
type trouble struct {
	count, total int64
	names        []string
}

func (t trouble) all() bool { return t.count > 0 && t.count >= t.total }

func (d hourData) infraEvents(kind EventType, look func(infraValue) trouble, some, all string) []Event {
	tolerance := max(d.settings.EventMergeGap, gapAfter(d.settings.InfraStateInterval))
	var events []Event
	for _, r := range runsOf(d.infra, tolerance, func(v infraValue) bool { return look(v).count > 0 }) {
		event := eventOver(d, d.infra, r, d.settings.InfraStateInterval)
		event.Type, event.Severity, event.Summary = kind, SeverityWarning, some
		worst, names := r.first, map[string]int64{}
		for i := r.first; i <= r.last; i++ {
			seen := look(d.infra[i].value)
			if look(d.infra[worst].value).count < seen.count {
				worst = i
			}
			if seen.all() {
				event.Severity, event.Summary = SeverityDanger, all
			}
			for _, name := range seen.names {
				names[name]++
			}
		}
		seen := look(d.infra[worst].value)
		event.Evidence.NotReadyCount, event.Evidence.TotalCount = seen.count, seen.total
		event.Evidence.addNames(kind, byFrequency(names, maxEvidenceNames))
		event.Evidence.MessageIDs = addIDs(event.Evidence.MessageIDs, d.infra, worst, r.first, r.last)
		events = append(events, event)
	}
	return events
}

func (e *Evidence) addNames(kind EventType, names []string) {
	if kind == EventNode {
		e.Nodes = names
		return
	}
	e.Workloads = names
}

// restartEvents has one event per workload whose counter rose, from the record
// in which it first did to the last.
func (d hourData) restartEvents() []Event {
	counters, increases, runs := map[string]int64{}, map[string]int64{}, map[string]run{}
	for i, infra := range d.infra {
		for name, count := range infra.value.restarts {
			last, known := counters[name]
			counters[name] = count
			if !known || count <= last {
				continue
			}
			increases[name] += count - last
			if r, ok := runs[name]; ok {
				runs[name] = run{first: r.first, last: i}
				continue
			}
			runs[name] = run{first: i, last: i}
		}
	}
	var events []Event
	for _, name := range byFrequency(increases, len(increases)) {
		r := runs[name]
		event := eventOver(d, d.infra, r, d.settings.InfraStateInterval)
		event.Type, event.Subject, event.Severity = EventRestart, name, SeverityInfo
		event.Summary = "Workload restarts"
		if increases[name] >= restartWarning {
			event.Severity = SeverityWarning
		}
		event.Evidence.RestartIncrease, event.Evidence.Workloads = increases[name], []string{name}
		event.Evidence.MessageIDs = addIDs(event.Evidence.MessageIDs, d.infra, r.first, r.last)
		events = append(events, event)
	}
	return events
}

// worstEvents are the limit events with the highest severity score, worst first.
func worstEvents(events []Event, limit int) []Event {
	sorted := slices.Clone(events)
	slices.SortFunc(sorted, worstFirst)
	return append([]Event{}, sorted[:min(limit, len(sorted))]...)
}

func worstFirst(a, b Event) int {
	return cmp.Or(b.SeverityScore.Cmp(a.SeverityScore), inTime(a, b))
}

func inTime(a, b Event) int {
	return cmp.Or(
		a.StartUTC.Compare(b.StartUTC), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Severity, b.Severity), a.EndUTC.Compare(b.EndUTC), cmp.Compare(a.Summary, b.Summary),
	)
}

// worstPeriods are the runs of bad scores that went lowest.
func worstPeriods(events []Event, settings Settings) []WorstPeriod {
	periods := []WorstPeriod{}
	for _, event := range events {
		if event.Type != EventRisk || event.Evidence.MinScore == nil {
			continue
		}
		periods = append(periods, WorstPeriod{
			TimeRange: event.TimeRange, StartUTC: event.StartUTC, EndUTC: event.EndUTC,
			MinScore: *event.Evidence.MinScore, Level: string(settings.riskLevel(*event.Evidence.MinScore)),
			TopCauses: append([]string{}, event.Evidence.TopCauses...), MessageIDs: event.Evidence.MessageIDs,
		})
	}
	slices.SortFunc(periods, lowestFirst)
	return periods[:min(maxWorstPeriods, len(periods))]
}

func lowestFirst(a, b WorstPeriod) int {
	return cmp.Or(a.MinScore.Cmp(b.MinScore), a.StartUTC.Compare(b.StartUTC), a.EndUTC.Compare(b.EndUTC))
}

// spikes are the AI events by time.
func spikes(events []Event) []SpikeEvent {
	spikes := []SpikeEvent{}
	for _, event := range worstEvents(events, len(events)) {
		peak := event.peak()
		if event.Type != EventAI || peak == nil || len(spikes) == maxSpikes {
			continue
		}
		spikes = append(spikes, SpikeEvent{
			Type: event.Subject + "_spike", TimeRange: event.TimeRange, MaxScore: *peak, DurationSeconds: event.DurationSeconds,
		})
	}
	return spikes
}
