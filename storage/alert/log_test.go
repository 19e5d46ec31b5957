package alert

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/storage/table"
)

func recordAt(scope string, at time.Time, why string) alert.Record {
	a := danger(start)
	a.Scope = scope
	return alert.NewRecord(a, alert.Suppressed, why, "", factory.MillisOf(at))
}

func TestTheLogIsPagedNewestFirstAcrossScopes(t *testing.T) {
	s := newStore(t)
	var written []alert.Record
	for i := range 12 {
		scope := []string{"factory-a", "factory-b", "cloud-infra"}[i%3]
		written = append(written, recordAt(scope, start.Add(time.Duration(i)*time.Minute), fmt.Sprintf("why-%d", i)))
	}
	require.NoError(t, s.Log(t.Context(), written...))
	require.NoError(t, s.Log(t.Context(), written[3]), "the same line again changes nothing")
	q := Query{Scopes: []string{"factory-a", "factory-b", "cloud-infra"}, From: start, To: start.Add(11 * time.Minute), Limit: 4, Now: start.Add(time.Hour)}
	var got []string
	for page := 0; ; page++ {
		records, next, err := s.Records(t.Context(), q)
		require.NoError(t, err)
		for _, r := range records {
			got = append(got, r.Why)
		}
		if next == "" {
			require.Equal(t, 2, page)
			break
		}
		require.Len(t, records, 4)
		q.Cursor = next
	}
	require.Equal(t, []string{"why-10", "why-9", "why-8", "why-7", "why-6", "why-5", "why-4", "why-3", "why-2", "why-1", "why-0"}, got, "to is exclusive, from inclusive")
}

func TestALineKeepsItsFieldsAndExpires(t *testing.T) {
	s := newStore(t)
	want := recordAt("factory-a", start, alert.WhyCooldown)
	require.NoError(t, s.Log(t.Context(), want))
	repeated := want
	repeated.Count, repeated.LastAt = 7, factory.MillisOf(start.Add(time.Minute))
	require.NoError(t, s.Log(t.Context(), repeated))
	q := Query{Scopes: []string{"factory-a"}, From: start.Add(-time.Hour), To: start.Add(time.Hour), Limit: 10, Now: start}
	records, next, err := s.Records(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Equal(t, []alert.Record{repeated}, records)
	var item map[string]any
	_, err = s.Status.Get(t.Context(), table.Key{Partition: "ALERTLOG#factory-a", Sort: "2026-06-02T02:00:00.000Z#" + want.ID}, &item)
	require.NoError(t, err)
	require.EqualValues(t, start.Add(30*24*time.Hour).Unix(), item["ttl"])
	q.Now = start.Add(30*24*time.Hour + time.Second)
	records, _, err = s.Records(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, records, "an expired line is not shown, whenever it is deleted")
}

func TestCursorsAreChecked(t *testing.T) {
	for _, cursor := range []string{"x", "#", encodeCursor("2026-06-02T02:00:00.000Z"), encodeCursor("zzz#1")} {
		_, _, err := Store{}.Records(t.Context(), Query{Cursor: cursor})
		require.ErrorIs(t, err, table.ErrBadCursor, cursor)
	}
}

func TestSilences(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	silence := alert.Silence{
		ID: "abcdefgh", Scope: "factory-a", Reason: "nodes_all_not_ready", Until: factory.MillisOf(start.Add(time.Hour)),
		CreatedBy: "kim", Why: "maintenance", CreatedAt: factory.MillisOf(start), UpdatedAt: factory.MillisOf(start),
	}
	require.NoError(t, s.CreateSilence(ctx, silence))
	require.NoError(t, s.CreateSilence(ctx, silence), "again is no error")
	other := silence
	other.Why = "another"
	require.ErrorIs(t, s.CreateSilence(ctx, other), ErrSilenceExists)

	held, err := s.SilenceOf(ctx, danger(start), start)
	require.NoError(t, err)
	require.Equal(t, &silence, held)
	held, err = s.SilenceOf(ctx, danger(start), start.Add(time.Hour))
	require.NoError(t, err)
	require.Nil(t, held, "it ends on time")

	longer := silence
	longer.Until, longer.UpdatedAt = factory.MillisOf(start.Add(2*time.Hour)), factory.MillisOf(start.Add(time.Minute))
	require.NoError(t, s.ChangeSilence(ctx, longer, silence.UpdatedAt))
	require.ErrorIs(t, s.ChangeSilence(ctx, longer, silence.UpdatedAt), ErrSilenceChanged)
	got, err := s.Silence(ctx, "factory-a", "abcdefgh")
	require.NoError(t, err)
	require.Equal(t, longer, got)
	list, err := s.Silences(ctx, "factory-a", start.Add(90*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []alert.Silence{longer}, list)

	require.NoError(t, s.DeleteSilence(ctx, "factory-a", "abcdefgh"))
	require.NoError(t, s.DeleteSilence(ctx, "factory-a", "abcdefgh"))
	_, err = s.Silence(ctx, "factory-a", "abcdefgh")
	require.ErrorIs(t, err, ErrNoSilence)
	require.ErrorIs(t, s.ChangeSilence(ctx, longer, longer.UpdatedAt), ErrNoSilence)
}
