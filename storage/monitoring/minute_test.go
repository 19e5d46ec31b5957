package monitoring_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/table"
)

func TestMinutesAreReadInPagesOfARange(t *testing.T) {
	store := newStore(t)
	for i := range 7 {
		ingest(t, store, "a", agentAt(time.Duration(i)*time.Minute, int64(i)))
	}
	ingest(t, store, "b", agentAt(0, 100))
	r := monitoring.MinuteRange{Owner: owner, SourceID: "a", From: minute.Add(time.Second), To: minute.Add(6 * time.Minute), Limit: 2, Now: now}
	var starts []time.Time
	for pages := 1; ; pages++ {
		minutes, cursor, err := store.Minutes(t.Context(), r)
		require.NoError(t, err)
		for _, m := range minutes {
			starts = append(starts, m.Start)
		}
		if cursor == "" {
			require.Equal(t, 3, pages)
			break
		}
		r.Cursor = cursor
	}
	require.Equal(t, []time.Time{
		minute.Add(time.Minute), minute.Add(2 * time.Minute), minute.Add(3 * time.Minute), minute.Add(4 * time.Minute), minute.Add(5 * time.Minute),
	}, starts)
}

func TestCursorsOfOtherListsAreRefused(t *testing.T) {
	store := newStore(t)
	r := monitoring.MinuteRange{Owner: owner, SourceID: "a", From: minute, To: minute.Add(time.Hour), Limit: 2, Now: now}
	for _, cursor := range []string{"x", "====", "TUlOVVRFIw", "TUlOVVRFIzIwOTktMTEtMzBUMTI6MDBa"} {
		r.Cursor = cursor
		_, _, err := store.Minutes(t.Context(), r)
		require.ErrorIs(t, err, table.ErrBadCursor, cursor)
	}
}

func TestAPageBehindARangeThatMovedOnStartsWithTheRange(t *testing.T) {
	store := newStore(t)
	for i := range 4 {
		ingest(t, store, "a", agentAt(time.Duration(i)*time.Minute, 1))
	}
	r := monitoring.MinuteRange{Owner: owner, SourceID: "a", From: minute, To: minute.Add(time.Hour), Limit: 1, Now: now}
	_, cursor, err := store.Minutes(t.Context(), r)
	require.NoError(t, err)
	r.From, r.Cursor = minute.Add(2*time.Minute), cursor
	minutes, _, err := store.Minutes(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, minutes, 1)
	require.Equal(t, minute.Add(2*time.Minute), minutes[0].Start)
}

func TestExpiredMinutesAreNotRead(t *testing.T) {
	store := newStore(t)
	store.MinuteRetention = time.Hour
	ingest(t, store, "a", agentAt(-59*time.Minute, 1))
	ingest(t, store, "a", agentAt(0, 2))
	read := func(at time.Time) int {
		minutes, _, err := store.Minutes(t.Context(), monitoring.MinuteRange{
			Owner: owner, SourceID: "a", From: minute.Add(-time.Hour), To: minute.Add(time.Hour), Limit: 10, Now: at,
		})
		require.NoError(t, err)
		return len(minutes)
	}
	require.Equal(t, 2, read(minute))
	require.Equal(t, 1, read(minute.Add(time.Minute)), "expired on the dot")
	require.Equal(t, 0, read(minute.Add(time.Hour)))
}

func TestATrendCountsTheAgentsOfTheAccount(t *testing.T) {
	store := newStore(t)
	for i := range 5 {
		ingest(t, store, fmt.Sprint("agent-", i), agentAt(0, int64(i)))
	}
	stranger := agentAt(0, 1000)
	stranger.Account = "team-b"
	ingest(t, store, "stranger", stranger)
	ingest(t, store, "oven", resourceAt(0, "oven", 20))
	_, err := store.Ingest(t.Context(), "user:lee", "agent-0", agentAt(0, 1000), now)
	require.NoError(t, err)
	ingest(t, store, "gone", agentAt(0, 1000))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "gone"))

	span, err := domain.SpanOf("week", now)
	require.NoError(t, err)
	trend, err := store.Trend(t.Context(), owner, &monitoring.Account{Provider: "anthropic", Account: "team-a"}, span, now)
	require.NoError(t, err)
	last := trend.Buckets[len(trend.Buckets)-1]
	require.Equal(t, int64(5), last.SampleCount)
	require.Equal(t, 5, last.SourceCount)
	require.Equal(t, "10", last.Series[0].Sum.String())
	require.Equal(t, "4", last.Series[0].Max.String())

	all, err := store.Trend(t.Context(), owner, nil, span, now)
	require.NoError(t, err)
	require.Equal(t, int64(6), all.Buckets[len(all.Buckets)-1].SampleCount)
}

func TestATrendOfAReusedIDLeavesTheFormerAccountOut(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "a"))
	other := agentAt(time.Minute, 5)
	other.Account = "team-b"
	ingest(t, store, "a", other)
	span, err := domain.SpanOf("week", now)
	require.NoError(t, err)
	trend, err := store.Trend(t.Context(), owner, &monitoring.Account{Provider: "anthropic", Account: "team-b"}, span, now)
	require.NoError(t, err)
	require.Equal(t, int64(1), trend.Buckets[len(trend.Buckets)-1].SampleCount)
}

func TestATrendReadsABoundedNumberOfMinutes(t *testing.T) {
	store := newStore(t)
	ingest(t, store, "a", agentAt(0, 1))
	span := domain.Span{From: minute.Add(-1_000_000 * time.Minute), To: minute.Add(time.Minute), Step: time.Hour}
	_, err := store.Trend(t.Context(), owner, nil, span, now)
	var broken *domain.InvalidError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, "range", broken.Field)
}
