package factory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"millrace/domain/exact"
)

// graphPlaces is the number of decimals that aggregates are rounded to.
const graphPlaces = 4

// sample is one value of a metric; messageID tells which message it came from.
type sample struct {
	at        time.Time
	messageID string
	value     exact.Decimal
}

// series has the samples of one metric, one per instant: where two messages
// have the same source time, the one with the greater id counts.
type series map[int64]sample

func (s series) add(order Order, value *exact.Decimal) {
	if value == nil {
		return
	}
	key := order.At.UnixNano()
	if known, ok := s[key]; ok && known.messageID >= order.MessageID {
		return
	}
	s[key] = sample{at: order.At.UTC(), messageID: order.MessageID, value: value.Round(graphPlaces)}
}

// sorted are the samples by time.
func (s series) sorted() []sample {
	return slices.SortedFunc(maps.Values(s), func(a, b sample) int { return a.at.Compare(b.at) })
}

// meanOf is the exact mean of at least one sample, rounded once.
func meanOf(samples []sample) exact.Decimal {
	sum := zero
	for _, sample := range samples {
		sum = sum.Add(sample.value)
	}
	return sum.Quo(exact.FromInt(int64(len(samples))), graphPlaces)
}

func leastOf(samples []sample) sample {
	return slices.MinFunc(samples, func(a, b sample) int { return a.value.Cmp(b.value) })
}

func greatestOf(samples []sample) sample {
	return slices.MaxFunc(samples, func(a, b sample) int { return a.value.Cmp(b.value) })
}

// summary is nil without samples.
func (s series) summary(unit string) *Summary {
	if len(s) == 0 {
		return nil
	}
	samples := s.sorted()
	least, greatest := leastOf(samples), greatestOf(samples)
	first, last := samples[0], samples[len(samples)-1]
	return &Summary{
		Unit: unit, Count: int64(len(samples)), Mean: meanOf(samples),
		Min: least.value, MinAt: least.at, Max: greatest.value, MaxAt: greatest.at,
		First: first.value, FirstAt: first.at, Last: last.value, LastAt: last.at,
	}
}

// byCalculation is a summary whose times are those of calculations, which have
// milliseconds.
func byCalculation(s *Summary) *SummaryAt[Millis] {
	if s == nil {
		return nil
	}
	return &SummaryAt[Millis]{
		Unit: s.Unit, Count: s.Count, Mean: s.Mean,
		Min: s.Min, MinAt: MillisOf(s.MinAt), Max: s.Max, MaxAt: MillisOf(s.MaxAt),
		First: s.First, FirstAt: MillisOf(s.FirstAt), Last: s.Last, LastAt: MillisOf(s.LastAt),
	}
}

// aiSummary is nil without samples.
func (s series) aiSummary(threshold exact.Decimal) *AISummary {
	if len(s) == 0 {
		return nil
	}
	samples := s.sorted()
	greatest, last := greatestOf(samples), samples[len(samples)-1]
	summary := &AISummary{
		Count: int64(len(samples)), Min: leastOf(samples).value,
		Max: greatest.value, MaxAt: greatest.at, Mean: meanOf(samples),
		Last: last.value, LastAt: last.at, Threshold: threshold,
	}
	for _, sample := range samples {
		if !sample.value.AtLeast(threshold) {
			continue
		}
		if summary.AboveThresholdCount == 0 {
			at := sample.at
			summary.FirstAboveThresholdAt = &at
		}
		summary.AboveThresholdCount++
	}
	summary.AboveThresholdRatio = exact.FromInt(summary.AboveThresholdCount).Quo(exact.FromInt(summary.Count), graphPlaces)
	return summary
}

// detection puts the three AI scores together. Of equal maxima the earliest
// counts, then the one named first.
func detection(threshold exact.Decimal, byType AIByType) AIDetection {
	all := AIDetection{Threshold: threshold, ByType: byType}
	var best *AISummary
	for _, kind := range []struct {
		name    string
		summary *AISummary
	}{{"fire_score", byType.FireScore}, {"fall_score", byType.FallScore}, {"bend_score", byType.BendScore}} {
		if kind.summary == nil {
			continue
		}
		all.AboveThresholdCount += kind.summary.AboveThresholdCount
		if best != nil && cmp.Or(best.Max.Cmp(kind.summary.Max), kind.summary.MaxAt.Compare(best.MaxAt)) >= 0 {
			continue
		}
		best = kind.summary
		all.MaxScore, all.MaxScoreType, all.MaxScoreAt = &best.Max, &kind.name, &best.MaxAt
	}
	return all
}
