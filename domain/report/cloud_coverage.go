package report

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// CloudStretch is a time over which samples followed each other closely enough;
// both ends are times of samples.
type CloudStretch struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// cloudStretches joins stretches that are at most limit apart. Those of a day are
// the joined ones of its hours, so that hours' edges make no gaps.
func cloudStretches(stretches []CloudStretch, limit time.Duration) []CloudStretch {
	sorted := slices.Clone(stretches)
	slices.SortFunc(sorted, func(a, b CloudStretch) int { return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last)) })
	joined := []CloudStretch{}
	for _, s := range sorted {
		if last := len(joined) - 1; last >= 0 && s.First.Sub(joined[last].Last) <= limit {
			joined[last].Last = latest(joined[last].Last, s.Last)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// CloudGap is a span without samples of a half.
type CloudGap struct {
	Dataset string    `json:"dataset"`
	GapType GapType   `json:"gap_type"`
	Start   time.Time `json:"start_utc"`
	End     time.Time `json:"end_utc"`
	// TimeRange is HH:MM~HH:MM of local time.
	TimeRange       string `json:"time_range"`
	DurationSeconds int64  `json:"duration_seconds"`
}

// cloudGaps are the distances of more than limit between stretches and between
// them and the edges of the spans, in the order of time.
func cloudGaps(half string, stretches []CloudStretch, spans []Span, limit time.Duration, day Day) []CloudGap {
	gaps := []CloudGap{}
	for _, span := range spans {
		end, kind := span.Start, GapHourStart
		for _, s := range stretches {
			if s.Last.Before(span.Start) || !s.First.Before(span.End) {
				continue
			}
			gaps = appendCloudGap(gaps, half, kind, Span{Start: end, End: s.First}, limit, day)
			end, kind = s.Last, GapInternal
		}
		if kind == GapHourStart {
			kind = GapHourEmpty
		} else {
			kind = GapHourEnd
		}
		gaps = appendCloudGap(gaps, half, kind, Span{Start: end, End: span.End}, limit, day)
	}
	return gaps
}

func appendCloudGap(gaps []CloudGap, half string, kind GapType, span Span, limit time.Duration, day Day) []CloudGap {
	if span.Length() <= limit {
		return gaps
	}
	return append(gaps, CloudGap{
		Dataset: half, GapType: kind, Start: span.Start, End: span.End,
		TimeRange: day.clockRange(span), DurationSeconds: int64(span.Length() / time.Second),
	})
}

func (g CloudGap) compare(o CloudGap) int {
	return cmp.Or(cmp.Compare(o.DurationSeconds, g.DurationSeconds), g.Start.Compare(o.Start), cmp.Compare(g.Dataset, o.Dataset))
}

// maxCloudGaps bounds the gaps that a summary lists; the longest stay.
const maxCloudGaps = 10

// CloudQuality tells how complete the samples of a time are.
type CloudQuality struct {
	FastRate      exact.Decimal `json:"fast_collection_rate"`
	SlowRate      exact.Decimal `json:"slow_collection_rate"`
	GapCount      int64         `json:"data_gap_count"`
	MaxGapSeconds int64         `json:"max_gap_seconds"`
	GapWindows    []CloudGap    `json:"gap_windows"`
}
