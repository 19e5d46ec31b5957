package report

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// GapType tells where a gap lies in its hour.
type GapType string

// The gap types.
const (
	GapHourEmpty GapType = "hour_empty"
	GapHourStart GapType = "hour_start"
	GapInternal  GapType = "internal"
	GapHourEnd   GapType = "hour_end"
)

// GapWindow is a span in which a dataset was silent for more than twice its
// interval. TimeRange is HH:MM~HH:MM of local time.
type GapWindow struct {
	Dataset         string        `json:"dataset"`
	GapType         GapType       `json:"gap_type"`
	StartUTC        time.Time     `json:"start_utc"`
	EndUTC          time.Time     `json:"end_utc"`
	TimeRange       string        `json:"time_range"`
	DurationSeconds exact.Decimal `json:"duration_seconds"`
	DurationMinutes exact.Decimal `json:"duration_minutes"`
}

// Silence is a span without records of a dataset: every gap, and the stretches
// before the first and after the last record of an hour however short, because
// two of them can make a gap across an hour's edge.
type Silence struct {
	Dataset string    `json:"dataset"`
	Type    GapType   `json:"type"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
}

// Bounds of what is told about gaps.
const (
	maxGapWindows = 10
	maxChartGaps  = 500
	criticalGap   = 5 * time.Minute
)

func (s Silence) span() Span { return Span{Start: s.Start, End: s.End} }

// opens and closes tell whether the silence reaches the start or the end of its
// hour.
func (s Silence) opens() bool  { return s.Type == GapHourStart || s.Type == GapHourEmpty }
func (s Silence) closes() bool { return s.Type == GapHourEnd || s.Type == GapHourEmpty }

// gapAfter is the silence that is still no gap: twice the interval.
func gapAfter(interval time.Duration) time.Duration { return 2 * interval }

// silencesOf are the silences of a dataset between sorted times in an hour.
func silencesOf(dataset string, hour Hour, times []time.Time, interval time.Duration) []Silence {
	var silences []Silence
	for _, span := range hour.Spans {
		from, _ := slices.BinarySearchFunc(times, span.Start, time.Time.Compare)
		to, _ := slices.BinarySearchFunc(times, span.End, time.Time.Compare)
		silences = append(silences, silencesIn(dataset, span, times[from:to], interval)...)
	}
	return silences
}

func silencesIn(dataset string, span Span, times []time.Time, interval time.Duration) []Silence {
	if len(times) == 0 {
		return []Silence{{Dataset: dataset, Type: GapHourEmpty, Start: span.Start, End: span.End}}
	}
	silences := []Silence{{Dataset: dataset, Type: GapHourStart, Start: span.Start, End: times[0]}}
	for i := 1; i < len(times); i++ {
		if times[i].Sub(times[i-1]) > gapAfter(interval) {
			silences = append(silences, Silence{Dataset: dataset, Type: GapInternal, Start: times[i-1], End: times[i]})
		}
	}
	return append(silences, Silence{Dataset: dataset, Type: GapHourEnd, Start: times[len(times)-1], End: span.End})
}

// joined are the silences with those that meet at an hour's edge made one. Each
// keeps the silences that it is made of.
func joined(silences []Silence) [][]Silence {
	slices.SortFunc(silences, func(a, b Silence) int {
		return cmp.Or(cmp.Compare(a.Dataset, b.Dataset), a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(a.Type, b.Type))
	})
	var groups [][]Silence
	for _, next := range silences {
		if last := len(groups) - 1; last >= 0 {
			before := groups[last][len(groups[last])-1]
			if before.Dataset == next.Dataset && before.closes() && next.opens() && before.End.Equal(next.Start) {
				groups[last] = append(groups[last], next)
				continue
			}
		}
		groups = append(groups, []Silence{next})
	}
	return groups
}

// lengthOf is how long joined silences last.
func lengthOf(group []Silence) time.Duration {
	return group[len(group)-1].End.Sub(group[0].Start)
}

// gapsOf are the joined silences that are longer than their dataset allows.
func gapsOf(groups [][]Silence, settings Settings) [][]Silence {
	return slices.DeleteFunc(slices.Clone(groups), func(group []Silence) bool {
		return lengthOf(group) <= gapAfter(settings.Interval(group[0].Dataset))
	})
}

// windowOf is the gap of joined silences. One across an hour's edge is internal
// unless it is open to one side.
func (d Day) windowOf(group []Silence) GapWindow {
	first, last := group[0], group[len(group)-1]
	kind := first.Type
	switch {
	case len(group) == 1:
	case first.Type == GapHourEmpty && last.Type == GapHourEmpty:
	case first.Type == GapHourEmpty:
		kind = GapHourStart
	case last.Type == GapHourEmpty:
		kind = GapHourEnd
	default:
		kind = GapInternal
	}
	span := Span{Start: first.Start, End: last.End}
	return GapWindow{
		Dataset: first.Dataset, GapType: kind, StartUTC: span.Start, EndUTC: span.End, TimeRange: d.clockRange(span),
		DurationSeconds: secondsOf(span.Length()), DurationMinutes: minutesOf(span.Length()),
	}
}

// gapFigures sums up gaps.
func (d Day) gapFigures(gaps [][]Silence) GapFigures {
	figures := GapFigures{DataGapCount: int64(len(gaps)), GapWindows: []GapWindow{}}
	var longest time.Duration
	spans := make([]Span, 0, len(gaps))
	for _, gap := range gaps {
		longest = max(longest, lengthOf(gap))
		spans = append(spans, Span{Start: gap[0].Start, End: gap[len(gap)-1].End})
		figures.GapWindows = append(figures.GapWindows, d.windowOf(gap))
	}
	figures.MaxGapSeconds, figures.MaxGapMinutes = secondsOf(longest), minutesOf(longest)
	figures.GapMinutes = minutesOf(covered(spans))
	slices.SortStableFunc(figures.GapWindows, longestFirst)
	figures.GapWindows = figures.GapWindows[:min(maxGapWindows, len(figures.GapWindows))]
	return figures
}

func longestFirst(a, b GapWindow) int {
	return cmp.Or(
		cmp.Compare(b.EndUTC.Sub(b.StartUTC), a.EndUTC.Sub(a.StartUTC)),
		a.StartUTC.Compare(b.StartUTC), cmp.Compare(a.Dataset, b.Dataset),
	)
}

// covered is the time that spans cover together.
func covered(spans []Span) time.Duration {
	slices.SortFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	var total time.Duration
	var until time.Time
	for _, span := range spans {
		start := latest(until, span.Start)
		if start.Before(span.End) {
			total += span.End.Sub(start)
			until = span.End
		}
	}
	return total
}

// secondsOf is a length in seconds, exact to the millisecond.
func secondsOf(length time.Duration) exact.Decimal {
	return exact.FromInt(length.Milliseconds()).Quo(exact.FromInt(1000), 3)
}

// minutesOf is a length in minutes with 2 decimals.
func minutesOf(length time.Duration) exact.Decimal {
	return exact.FromInt(length.Milliseconds()).Quo(exact.FromInt(time.Minute.Milliseconds()), figurePlaces)
}
