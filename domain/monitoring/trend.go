package monitoring

import (
	"slices"
	"time"
)

// Span is a stretch of time up to now in equal buckets.
type Span struct {
	// From is inclusive, To exclusive; both are multiples of Step in UTC.
	From, To time.Time
	Step     time.Duration
}

// Spans by name: an hour by the minute, a day by the quarter of an hour, a week
// by the hour. The last bucket holds now.
var spanSteps = map[string]struct {
	step    time.Duration
	buckets int
}{
	"hour": {time.Minute, 60},
	"day":  {15 * time.Minute, 96},
	"week": {time.Hour, 168},
}

// SpanOf is the span of that name that ends with the bucket of now.
func SpanOf(name string, now time.Time) (Span, error) {
	s, known := spanSteps[name]
	if !known {
		return Span{}, invalid("range", `must be "hour", "day" or "week"`)
	}
	to := now.UTC().Truncate(s.step).Add(s.step)
	return Span{From: to.Add(-time.Duration(s.buckets) * s.step), To: to, Step: s.step}, nil
}

func (s Span) buckets() int { return int(s.To.Sub(s.From) / s.Step) }

// index is the number of the bucket that t falls into.
func (s Span) index(t time.Time) (int, bool) {
	if t.Before(s.From) || !t.Before(s.To) {
		return 0, false
	}
	return int(t.Sub(s.From) / s.Step), true
}

// Bucket is the sum of minutes of one or more sources.
type Bucket struct {
	Start       time.Time
	SampleCount int64
	// SourceCount is the number of sources with a sample in the bucket.
	SourceCount int
	Series      []Series
}

// Trend is the minutes of sources put together, bucket by bucket.
type Trend struct {
	Span    Span
	Buckets []Bucket
}

// NewTrend is a trend of empty buckets.
func NewTrend(span Span) *Trend {
	t := &Trend{Span: span, Buckets: make([]Bucket, span.buckets())}
	for i := range t.Buckets {
		t.Buckets[i].Start = span.From.Add(time.Duration(i) * span.Step)
	}
	return t
}

// Add counts a minute of the one source of a trend; a minute outside the span is
// left out.
func (t *Trend) Add(m MinuteView) {
	i, inside := t.Span.index(m.Start)
	if !inside {
		return
	}
	b := &t.Buckets[i]
	b.SampleCount += m.SampleCount
	b.SourceCount = 1
	for _, r := range m.Series {
		b.merge(r)
	}
}

// Merge counts in the trend of other sources over the same span.
func (t *Trend) Merge(other *Trend) {
	for i, o := range other.Buckets {
		b := &t.Buckets[i]
		b.SampleCount += o.SampleCount
		b.SourceCount += o.SourceCount
		for _, r := range o.Series {
			b.merge(r)
		}
	}
}

// Sort brings the series of every bucket into the order of the definitions.
func (t *Trend) Sort(definitions []Definition) {
	for _, b := range t.Buckets {
		slices.SortStableFunc(b.Series, func(x, y Series) int {
			return position(definitions, x.Definition) - position(definitions, y.Definition)
		})
	}
}

func position(definitions []Definition, of Definition) int {
	return slices.IndexFunc(definitions, of.Compatible)
}

func (b *Bucket) merge(r Series) {
	i := slices.IndexFunc(b.Series, func(have Series) bool { return have.Compatible(r.Definition) })
	if i < 0 {
		b.Series = append(b.Series, r)
		return
	}
	b.Series[i] = b.Series[i].merge(r)
}
