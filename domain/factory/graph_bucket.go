package factory

import "time"

// BucketLength is the length of one GRAPH#5M bucket; buckets start at whole
// multiples of it in UTC.
const BucketLength = 5 * time.Minute

// BucketMinutes is BucketLength in minutes.
const BucketMinutes = int64(BucketLength / time.Minute)

// How far the history rows of a bucket reach beyond it: a device's clock may run
// a little ahead, and a message takes a while to arrive.
const (
	historyEarly = 30 * time.Second
	historyLate  = 2 * time.Minute
)

// historyMargin is how long before its rows expire a bucket stops being computed
// from them.
const historyMargin = 10 * time.Minute

// BucketStart is the start of the bucket that t lies in. Buckets are half-open:
// the start belongs to them, the next start does not.
func BucketStart(t time.Time) time.Time { return t.UTC().Truncate(BucketLength) }

// BucketEnd is the last millisecond of the bucket that starts at start.
func BucketEnd(start time.Time) Millis {
	return MillisOf(start.Add(BucketLength - time.Millisecond))
}

// ClosedBuckets are the starts of the newest lookback buckets that are over at
// the given time, oldest first.
func ClosedBuckets(at time.Time, lookback int) []time.Time {
	current := BucketStart(at)
	starts := make([]time.Time, 0, max(0, lookback))
	for k := lookback; k >= 1; k-- {
		starts = append(starts, current.Add(-time.Duration(k)*BucketLength))
	}
	return starts
}

// CheckBucketStart refuses a bucket_start that is no boundary, or whose bucket
// is not over at now.
func CheckBucketStart(start, now time.Time) error {
	switch {
	case !start.Equal(BucketStart(start)):
		return invalid("bucket_start", "must be a multiple of 5 minutes in UTC")
	case start.Add(BucketLength).After(now):
		return invalid("bucket_start", "must be the start of a bucket that is over")
	}
	return nil
}

// UseHistory tells whether a bucket is computed from its HISTORY#STATE rows,
// which expire historyTTL after they were written. Older buckets, and those that
// messages reached late, are computed from processed objects instead.
func UseHistory(start, now time.Time, historyTTL time.Duration, dirty bool) bool {
	return !dirty && now.Sub(start) < historyTTL-historyMargin
}

// HistoryRange are the inclusive sort keys between which a bucket's
// HISTORY#STATE rows are read; what lies outside the bucket by source time is
// then left out by the Accumulator.
func HistoryRange(start time.Time) (from, to string) {
	from = HistorySK(MillisOf(start.Add(-historyEarly)))
	to = HistorySK(MillisOf(BucketEnd(start).Add(historyLate)))
	return from, to
}

// MissesHistory tells whether the row that a message led to, written at
// updatedAt, lies outside the HistoryRange of the message's bucket. That bucket
// must then be marked dirty, as for a late message: a drained backlog is in
// order, yet comes after its buckets were computed.
func MissesHistory(sourceTimestamp time.Time, updatedAt Millis) bool {
	start := BucketStart(sourceTimestamp)
	return updatedAt.Before(start.Add(-historyEarly)) || updatedAt.After(BucketEnd(start).Add(historyLate))
}
