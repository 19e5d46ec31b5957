package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// The figures of the cloud infrastructure are built by merging: a sample makes
// figures, an hour merges its samples' and a day its hours'. Every merge is
// associative and commutative, so that the order of reading and the cuts between
// hours change nothing.

// CloudStat are the extremes and the mean of what was measured. The sum keeps
// means of means exact; the mean is rounded half-even to two decimals.
type CloudStat struct {
	Count int64         `json:"count"`
	Sum   exact.Decimal `json:"sum"`
	Avg   exact.Decimal `json:"avg"`
	Min   exact.Decimal `json:"min"`
	Max   exact.Decimal `json:"max"`
}

// cloudMeasured is the figure of one value, nil for one that was not measured.
func cloudMeasured(value *exact.Decimal) *CloudStat {
	if value == nil {
		return nil
	}
	return &CloudStat{Count: 1, Sum: *value, Avg: value.Round(2), Min: *value, Max: *value}
}

func (s *CloudStat) merge(o *CloudStat) *CloudStat {
	if s == nil || s.Count == 0 {
		return o
	}
	if o == nil || o.Count == 0 {
		return s
	}
	count, sum := s.Count+o.Count, s.Sum.Add(o.Sum)
	return &CloudStat{
		Count: count, Sum: sum, Avg: sum.Quo(exact.FromInt(count), 2),
		Min: exact.Min(s.Min, o.Min), Max: exact.Max(s.Max, o.Max),
	}
}

// maxText is the greatest value, a dash where nothing was measured.
func (s *CloudStat) maxText() string {
	if s == nil {
		return "-"
	}
	return s.Max.String()
}

func (s *CloudStat) minText() string {
	if s == nil {
		return "-"
	}
	return s.Min.String()
}

// above tells whether any value was greater than zero.
func (s *CloudStat) above() bool { return s != nil && s.Max.Sign() > 0 }

// CloudCounts are numbers of samples by status.
type CloudCounts struct {
	Normal        int64 `json:"normal"`
	Warning       int64 `json:"warning"`
	Critical      int64 `json:"critical"`
	Unknown       int64 `json:"unknown"`
	NotConfigured int64 `json:"not_configured"`
}

func cloudOneStatus(s cloudinfra.Status) CloudCounts {
	switch s {
	case cloudinfra.Normal:
		return CloudCounts{Normal: 1}
	case cloudinfra.Warning:
		return CloudCounts{Warning: 1}
	case cloudinfra.Critical:
		return CloudCounts{Critical: 1}
	case cloudinfra.NotConfigured:
		return CloudCounts{NotConfigured: 1}
	}
	return CloudCounts{Unknown: 1}
}

func (c CloudCounts) merge(o CloudCounts) CloudCounts {
	return CloudCounts{
		Normal: c.Normal + o.Normal, Warning: c.Warning + o.Warning, Critical: c.Critical + o.Critical,
		Unknown: c.Unknown + o.Unknown, NotConfigured: c.NotConfigured + o.NotConfigured,
	}
}

// abnormal are the samples that were not well; what is not configured counts for
// nothing.
func (c CloudCounts) abnormal() int64 { return c.Warning + c.Critical + c.Unknown }

// watched are the samples in which there was something to look at.
func (c CloudCounts) watched() int64 { return c.Normal + c.abnormal() }

// CloudCounter is a counter that a snapshot gives for the five minutes before it.
// Total adds up one snapshot of each five minutes, so that no minute counts
// twice; Peak is the greatest five minutes.
type CloudCounter struct {
	Total exact.Decimal `json:"total"`
	Peak  exact.Decimal `json:"peak_5m"`
	// Minutes are how long snapshots told of any.
	Minutes exact.Decimal `json:"minutes"`
}

func (c CloudCounter) merge(o CloudCounter) CloudCounter {
	return CloudCounter{Total: c.Total.Add(o.Total), Peak: exact.Max(c.Peak, o.Peak), Minutes: c.Minutes.Add(o.Minutes)}
}

// cloudMergeMaps merges by key.
func cloudMergeMaps[V any](a, b map[string]V, merge func(V, V) V) map[string]V {
	if len(a) == 0 {
		return maps.Clone(b)
	}
	merged := maps.Clone(a)
	for key, value := range b {
		if have, ok := merged[key]; ok {
			value = merge(have, value)
		}
		merged[key] = value
	}
	return merged
}

// cloudTrim keeps the entries of a map that matter most, by rank, then by key.
func cloudTrim[V any](m map[string]V, limit int, rank func(V) exact.Decimal) map[string]V {
	if len(m) <= limit {
		return m
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(rank(m[b]).Cmp(rank(m[a])), cmp.Compare(a, b))
	})
	kept := make(map[string]V, limit)
	for _, key := range keys[:limit] {
		kept[key] = m[key]
	}
	return kept
}

// cloudTally is a number of samples that can be merged by key.
type cloudTally int64

func (t cloudTally) merge(o cloudTally) cloudTally { return t + o }

func (t cloudTally) rank() exact.Decimal { return exact.FromInt(int64(t)) }

// cloudMinutes is a span of time that can be merged by key.
type cloudMinutes struct{ exact.Decimal }

func (m cloudMinutes) merge(o cloudMinutes) cloudMinutes { return cloudMinutes{m.Add(o.Decimal)} }

func (m cloudMinutes) rank() exact.Decimal { return m.Decimal }

func cloudMinutesOf(d time.Duration) exact.Decimal {
	return exact.FromInt(int64(d/time.Second)).Quo(exact.FromInt(60), 2)
}

func cloudWhen(holds bool, span exact.Decimal) exact.Decimal {
	if holds {
		return span
	}
	return exact.Decimal{}
}

// cloudLater tells whether b is newer than a, so that what b says is the last word.
func cloudLater(a, b *time.Time) bool { return b != nil && (a == nil || b.After(*a)) }

func cloudMin(a, b *int64) *int64 {
	if a == nil || (b != nil && *b < *a) {
		return b
	}
	return a
}

func cloudMax(a, b *int64) *int64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}

func cloudValue(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
