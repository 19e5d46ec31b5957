package report

import (
	"slices"
	"time"

	"millrace/domain/exact"
)

// The parts of a severity score. A severity's base is so far above the one below
// that no length or magnitude makes a warning worse than a danger.
const (
	maxLengthTerm    = 20
	maxMagnitudeTerm = 10
)

var severityBase = map[Severity]int64{SeverityInfo: 10, SeverityWarning: 50, SeverityDanger: 80}

// eventKind is what events must share to be joined.
type eventKind struct {
	kind     EventType
	subject  string
	severity Severity
	summary  string
}

// joinEvents are the events by time, those of one kind that are no further apart
// than the merge gap made one.
func (d Day) joinEvents(events []Event, settings Settings) []Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, inTime)
	open := map[eventKind]int{}
	joined := []Event{}
	for _, event := range sorted {
		kind := eventKind{event.Type, event.Subject, event.Severity, event.Summary}
		if index, ok := open[kind]; ok && event.StartUTC.Sub(joined[index].EndUTC) <= settings.EventMergeGap {
			joined[index] = joinTwo(joined[index], event)
			continue
		}
		open[kind] = len(joined)
		joined = append(joined, event)
	}
	for i := range joined {
		d.measure(&joined[i], settings)
	}
	return joined
}

// joinTwo is one event over both spans. The worse one's evidence comes first.
func joinTwo(a, b Event) Event {
	one := a
	one.EndUTC = latest(a.EndUTC, b.EndUTC)
	better, worse := b.Evidence, a.Evidence
	if b.Evidence.worseThan(a.Evidence) {
		better, worse = worse, better
	}
	e := worse
	e.SampleCount = a.Evidence.SampleCount + b.Evidence.SampleCount
	e.MinScore = figureMin(worse.MinScore, better.MinScore)
	e.TemperatureMax = figureMax(worse.TemperatureMax, better.TemperatureMax)
	e.HumidityMax = figureMax(worse.HumidityMax, better.HumidityMax)
	e.MaxFireScore = figureMax(worse.MaxFireScore, better.MaxFireScore)
	e.MaxFallScore = figureMax(worse.MaxFallScore, better.MaxFallScore)
	e.MaxBendScore = figureMax(worse.MaxBendScore, better.MaxBendScore)
	e.RestartIncrease = a.Evidence.RestartIncrease + b.Evidence.RestartIncrease
	e.TopCauses = union(worse.TopCauses, better.TopCauses, maxEvidenceNames)
	e.Nodes = union(worse.Nodes, better.Nodes, maxEvidenceNames)
	e.Workloads = union(worse.Workloads, better.Workloads, maxEvidenceNames)
	e.MessageIDs = union(worse.MessageIDs, better.MessageIDs, maxEvidenceIDs)
	if e.MessageIDs == nil {
		e.MessageIDs = []string{}
	}
	one.Evidence = e
	return one
}

// worseThan compares evidence of one kind of event.
func (e Evidence) worseThan(other Evidence) bool {
	switch {
	case e.MinScore != nil && other.MinScore != nil && !e.MinScore.Equal(*other.MinScore):
		return e.MinScore.Less(*other.MinScore)
	case e.NotReadyCount != other.NotReadyCount:
		return e.NotReadyCount > other.NotReadyCount
	}
	for _, pair := range [][2]*exact.Decimal{
		{e.TemperatureMax, other.TemperatureMax},
		{e.HumidityMax, other.HumidityMax},
		{e.MaxFireScore, other.MaxFireScore},
		{e.MaxFallScore, other.MaxFallScore},
		{e.MaxBendScore, other.MaxBendScore},
	} {
		if pair[0] != nil && pair[1] != nil && !pair[0].Equal(*pair[1]) {
			return pair[1].Less(*pair[0])
		}
	}
	return false
}

// union has the names of a, then those of b that are new, at most limit.
func union(a, b []string, limit int) []string {
	var names []string
	for _, name := range slices.Concat(a, b) {
		if len(names) < limit && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// measure computes what follows from an event's span and evidence.
func (d Day) measure(event *Event, settings Settings) {
	span := Span{Start: event.StartUTC, End: event.EndUTC}
	event.TimeRange = d.clockRange(span)
	event.DurationSeconds = secondsOf(span.Length())
	length := exact.FromInt(span.Length().Milliseconds()).Quo(exact.FromInt(time.Minute.Milliseconds()), valuePlaces)
	score := exact.FromInt(severityBase[event.Severity]).
		Add(exact.Min(length, exact.FromInt(maxLengthTerm))).
		Add(settings.magnitude(*event))
	event.SeverityScore = score.Round(figurePlaces)
}

// magnitude is how far an event went beyond its bound, from 0 to 10: for a score
// the share of the way from the bound to 0, for a measurement half the way per
// distance of its two bounds, for nodes and workloads the share that failed, for
// restarts their number.
func (s Settings) magnitude(event Event) exact.Decimal {
	e, ten := event.Evidence, exact.FromInt(maxMagnitudeTerm)
	switch event.Type {
	case EventRisk:
		if e.MinScore != nil {
			return share(s.RiskWarningMax.Sub(*e.MinScore), s.RiskWarningMax, ten)
		}
	case EventNode, EventWorkload:
		return share(exact.FromInt(e.NotReadyCount), exact.FromInt(e.TotalCount), ten)
	case EventRestart:
		return share(exact.FromInt(e.RestartIncrease), ten, ten)
	case EventSensor, EventAI:
		for _, q := range s.quantities() {
			if peak := *q.evidence(&e); q.name == event.Subject && peak != nil {
				return share(peak.Sub(q.mild), q.grave.Sub(q.mild).Mul(exact.FromInt(2)), ten)
			}
		}
	}
	return exact.Decimal{}
}

// share is whole x part / of, kept between 0 and whole.
func share(part, of, whole exact.Decimal) exact.Decimal {
	if of.Sign() <= 0 {
		return whole
	}
	return exact.Min(whole, exact.Max(exact.Decimal{}, part.Mul(whole).Quo(of, valuePlaces)))
}

// peak is the greatest value of a sensor or AI event.
func (e Event) peak() *exact.Decimal {
	evidence := e.Evidence
	for _, q := range (Settings{}).quantities() {
		if q.name == e.Subject {
			return *q.evidence(&evidence)
		}
	}
	return nil
}
