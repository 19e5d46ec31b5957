package factory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBucketsAreClosedOldestFirst(t *testing.T) {
	cases := []struct {
		name, at string
		lookback int
		want     []string
	}{
		{"just after the boundary", "2026-05-28T10:10:02Z", 1, []string{"2026-05-28T10:05:00Z"}},
		{"just before the next", "2026-05-28T10:14:59Z", 1, []string{"2026-05-28T10:05:00Z"}},
		{"on the boundary the bucket before is over", "2026-05-28T10:10:00Z", 1, []string{"2026-05-28T10:05:00Z"}},
		{"a nanosecond earlier it is not", "2026-05-28T10:09:59.999999999Z", 1, []string{"2026-05-28T10:00:00Z"}},
		{"look-back two", "2026-05-28T10:12:00Z", 2, []string{"2026-05-28T10:00:00Z", "2026-05-28T10:05:00Z"}},
		{"midnight", "2026-05-28T00:02:00Z", 2, []string{"2026-05-27T23:50:00Z", "2026-05-27T23:55:00Z"}},
		{"month end in a leap year", "2028-03-01T00:01:00Z", 1, []string{"2028-02-29T23:55:00Z"}},
		{"year end", "2027-01-01T00:07:00Z", 2, []string{"2026-12-31T23:55:00Z", "2027-01-01T00:00:00Z"}},
		{"another zone", "2026-05-28T19:12:00+09:00", 1, []string{"2026-05-28T10:05:00Z"}},
		{"a zone of 45 minutes", "2026-05-28T15:57:00+05:45", 1, []string{"2026-05-28T10:05:00Z"}},
		{"nothing to look back to", "2026-05-28T10:12:00Z", 0, []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := make([]string, 0, len(c.want))
			for _, start := range ClosedBuckets(at(c.at), c.lookback) {
				got = append(got, start.Format(time.RFC3339Nano))
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestBucketEndIsItsLastMillisecond(t *testing.T) {
	require.Equal(t, "2026-05-28T10:09:59.999Z", BucketEnd(at("2026-05-28T10:05:00Z")).String())
	require.Equal(t, "2026-12-31T23:59:59.999Z", BucketEnd(at("2026-12-31T23:55:00Z")).String())
}

func TestEveryInstantLiesInExactlyOneBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := time.Unix(rapid.Int64Range(1577836800, 4102444800).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns"))
		start := BucketStart(instant)
		require.False(t, instant.Before(start))
		require.True(t, instant.Before(start.Add(BucketLength)))
		require.Zero(t, start.Minute()%5)
		require.Zero(t, start.Second()+start.Nanosecond())
		require.Equal(t, start, BucketStart(start))
		require.NoError(t, CheckBucketStart(start, start.Add(BucketLength)))
	})
}

func TestABucketStartIsABoundaryOfABucketThatIsOver(t *testing.T) {
	now := at("2026-05-28T10:10:00Z")
	require.NoError(t, CheckBucketStart(at("2026-05-28T10:05:00Z"), now))
	for _, wrong := range []string{"2026-05-28T10:10:00Z", "2026-05-28T10:04:00Z", "2026-05-28T10:05:00.001Z"} {
		require.ErrorContains(t, CheckBucketStart(at(wrong), now), "bucket_start", wrong)
	}
}

func TestHistoryServesYoungCleanBucketsOnly(t *testing.T) {
	start, ttl := at("2026-05-28T10:05:00Z"), 2*time.Hour
	require.True(t, UseHistory(start, start.Add(7*time.Minute), ttl, false))
	require.True(t, UseHistory(start, start.Add(ttl-10*time.Minute-1), ttl, false))
	require.False(t, UseHistory(start, start.Add(ttl-10*time.Minute), ttl, false))
	require.False(t, UseHistory(start, start.Add(7*time.Minute), ttl, true))
	require.False(t, UseHistory(start, start.Add(7*time.Minute), 10*time.Minute, false))
}

func TestHistoryRangeHasTheFirstMillisecondAndTwoMinutesMore(t *testing.T) {
	from, to := HistoryRange(at("2026-05-28T00:00:00Z"))
	require.Equal(t, "HISTORY#STATE#2026-05-27T23:59:30.000Z", from)
	require.Equal(t, "HISTORY#STATE#2026-05-28T00:06:59.999Z", to)
	require.Less(t, from, HistorySK(MillisOf(at("2026-05-28T00:00:00.000Z"))))
}

func TestRowsOutsideTheHistoryRangeMakeABucketDirty(t *testing.T) {
	source := at("2026-05-28T10:07:00Z")
	for updated, want := range map[string]bool{
		"2026-05-28T10:07:00.200Z": false,
		"2026-05-28T10:11:59.999Z": false,
		"2026-05-28T10:12:00.000Z": true,
		"2026-05-28T10:04:30.000Z": false,
		"2026-05-28T10:04:29.999Z": true,
		"2026-05-28T13:00:00.000Z": true,
	} {
		require.Equal(t, want, MissesHistory(source, MillisOf(at(updated))), updated)
		from, to := HistoryRange(BucketStart(source))
		sk := HistorySK(MillisOf(at(updated)))
		require.Equal(t, !want, from <= sk && sk <= to, "must agree with the range: %s", updated)
	}
}
