package monitoring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func viewOf(t require.TestingT, o ...Observation) MinuteView {
	view, shown := Source{Observation: o[len(o)-1]}.Project(added(t, o...))
	if !shown {
		require.FailNow(t, "no view")
	}
	return view
}

func TestSpansEndWithTheBucketOfNow(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 34, 56, 7, time.FixedZone("KST", 9*3600))
	for name, want := range map[string]struct {
		from, to string
		buckets  int
	}{
		"hour": {"2026-11-30T02:35:00Z", "2026-11-30T03:35:00Z", 60},
		"day":  {"2026-11-29T03:45:00Z", "2026-11-30T03:45:00Z", 96},
		"week": {"2026-11-23T04:00:00Z", "2026-11-30T04:00:00Z", 168},
	} {
		span, err := SpanOf(name, now)
		require.NoError(t, err)
		require.Equal(t, want.from, span.From.Format(time.RFC3339))
		require.Equal(t, want.to, span.To.Format(time.RFC3339))
		require.Len(t, NewTrend(span).Buckets, want.buckets)
	}
	_, err := SpanOf("year", now)
	var broken *InvalidError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, "range", broken.Field)
}

func TestATrendPutsMinutesAndSourcesTogether(t *testing.T) {
	span, err := SpanOf("day", noon)
	require.NoError(t, err)
	one, two := NewTrend(span), NewTrend(span)
	one.Add(viewOf(t, agentAt(noon, requests(1)), agentAt(noon.Add(1), requests(3))))
	one.Add(viewOf(t, agentAt(noon.Add(time.Minute), requests(8))))
	one.Add(viewOf(t, agentAt(noon.Add(-24*time.Hour), requests(100))))
	one.Add(viewOf(t, agentAt(noon.Add(time.Hour), requests(100))))
	two.Add(viewOf(t, agentAt(noon.Add(2*time.Minute), nullOf("errors"))))
	two.Add(viewOf(t, agentAt(noon.Add(3*time.Minute), requests(2))))
	one.Merge(two)
	one.Sort(AgentMetrics)

	last := one.Buckets[95]
	require.Equal(t, noon, last.Start)
	require.Equal(t, int64(5), last.SampleCount)
	require.Equal(t, 2, last.SourceCount)
	require.Equal(t, []string{"requests", "errors"}, []string{last.Series[0].Key, last.Series[1].Key})
	require.Equal(t, int64(4), last.Series[0].ValidCount)
	require.Equal(t, "3.5", last.Series[0].Mean.String())
	require.Equal(t, "8", last.Series[0].Max.String())
	require.Zero(t, last.Series[1].ValidCount)
	require.Nil(t, last.Series[1].Mean)
	for _, b := range one.Buckets[:95] {
		require.Zero(t, b.SampleCount)
		require.Zero(t, b.SourceCount)
	}
}

func nullOf(key string) map[string]*exact.Decimal { return map[string]*exact.Decimal{key: nil} }
