package monitoring

import (
	"errors"
	"slices"
	"time"

	"millrace/domain/exact"
)

// DefaultMinuteRetention is how long minute summaries are kept.
const DefaultMinuteRetention = 14 * 24 * time.Hour

// Bounds of one minute, far above what a source in order ever needs: they keep
// its row within DynamoDB's 400 KB whatever a sender does.
const (
	maxParts  = 16
	maxSeries = 200
)

// ErrMinuteFull marks a minute in which a source changed its identity or the
// units of its metrics more often than a minute records.
var ErrMinuteFull = errors.New("the minute holds no more changes of identity or units")

// Minute is the summary of the observations of one source whose observedAt is in
// one minute. A source normally has one part. It has more when its resource type
// changes within the minute, or when its id is deleted and used again.
type Minute struct {
	// Start is the minute's first instant, in UTC.
	Start       time.Time `json:"minute"`
	SampleCount int64     `json:"sampleCount"`
	Parts       []Part    `json:"parts"`
}

// Part is what was observed in a minute under one identity. It keeps the
// resource type and, in its series, the definitions it was measured by.
type Part struct {
	Identity
	SampleCount    int64     `json:"sampleCount"`
	LastObservedAt time.Time `json:"lastObservedAt"`
	Series         []Series  `json:"metrics"`
}

// Series is one metric of a minute, in one unit. ValidCount does not count
// samples whose measurement was null; Mean and Max are nil without a valid one.
// Sum is exact; Mean is Sum / ValidCount rounded half-even to MeanPlaces.
type Series struct {
	Definition
	ValidCount int64          `json:"validCount"`
	Sum        exact.Decimal  `json:"sum"`
	Mean       *exact.Decimal `json:"mean,omitempty"`
	Max        *exact.Decimal `json:"max,omitempty"`
}

// MinuteOf is the first instant of the minute of t, in UTC.
func MinuteOf(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// ExpiresAt is when a minute summary expires under a retention.
func (m Minute) ExpiresAt(retention time.Duration) time.Time { return m.Start.Add(retention) }

// Add is the minute with an observation of that minute counted in; m itself
// stays as it is. An observation that is not newer than the last of its part is
// counted already and changes nothing. A minute that can't record another change
// is an ErrMinuteFull.
func (m Minute) Add(o Observation) (Minute, error) {
	next := Minute{Start: MinuteOf(o.ObservedAt), SampleCount: m.SampleCount, Parts: slices.Clone(m.Parts)}
	i := slices.IndexFunc(next.Parts, func(p Part) bool { return p.Identity == o.Identity })
	if i < 0 {
		i = len(next.Parts)
		next.Parts = append(next.Parts, Part{Identity: o.Identity})
	} else if !o.ObservedAt.After(next.Parts[i].LastObservedAt) {
		return m, nil
	}
	next.Parts[i] = next.Parts[i].add(o)
	next.SampleCount++
	if len(next.Parts) > maxParts || next.seriesCount() > maxSeries {
		return m, ErrMinuteFull
	}
	return next, nil
}

func (m Minute) seriesCount() int {
	n := 0
	for _, p := range m.Parts {
		n += len(p.Series)
	}
	return n
}

func (p Part) add(o Observation) Part {
	p.Series = slices.Clone(p.Series)
	for _, d := range o.defined() {
		if value, sent := o.Metrics[d.Key]; sent {
			p.record(d, value)
		}
	}
	p.SampleCount++
	p.LastObservedAt = o.ObservedAt.UTC()
	return p
}

// record counts a measurement in the series of its key and unit; the latest
// definition describes the series.
func (p *Part) record(d Definition, value *exact.Decimal) {
	i := slices.IndexFunc(p.Series, func(r Series) bool { return r.Compatible(d) })
	if i < 0 {
		i = len(p.Series)
		p.Series = append(p.Series, Series{})
	}
	p.Series[i].Definition = d
	if value != nil {
		p.Series[i] = p.Series[i].with(*value)
	}
}

func (r Series) with(value exact.Decimal) Series {
	return r.merge(Series{ValidCount: 1, Sum: value, Max: &value})
}

// merge puts two series of the same key and unit together.
func (r Series) merge(other Series) Series {
	r.ValidCount += other.ValidCount
	r.Sum = r.Sum.Add(other.Sum)
	if r.Max == nil || (other.Max != nil && r.Max.Less(*other.Max)) {
		r.Max = other.Max
	}
	r.Mean = mean(r.Sum, r.ValidCount)
	return r
}

func mean(sum exact.Decimal, count int64) *exact.Decimal {
	if count == 0 {
		return nil
	}
	m := sum.Quo(exact.FromInt(count), MeanPlaces)
	return &m
}
