package monitoring_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/table"
)

func idsOf(sources []domain.Source) []string {
	ids := make([]string, len(sources))
	for i, s := range sources {
		ids[i] = s.ID
	}
	return ids
}

// fill makes 12 sources: every third one is of team-b.
func fill(t testing.TB, store monitoring.Store) {
	for i := range 12 {
		o := agentAt(0, 1)
		if i%3 == 0 {
			o.Account = "team-b"
		}
		ingest(t, store, fmt.Sprintf("s%02d", i), o)
	}
	_, err := store.Ingest(t.Context(), "user:lee", "s99", agentAt(0, 1), now)
	require.NoError(t, err)
}

func TestSourcesAreListedInPages(t *testing.T) {
	store := newStore(t)
	fill(t, store)
	teamB := &monitoring.Account{Provider: "anthropic", Account: "team-b"}
	for _, c := range []struct {
		account *monitoring.Account
		limit   int
		want    []string
	}{
		{nil, 5, []string{"s00", "s01", "s02", "s03", "s04", "s05", "s06", "s07", "s08", "s09", "s10", "s11"}},
		{nil, 100, []string{"s00", "s01", "s02", "s03", "s04", "s05", "s06", "s07", "s08", "s09", "s10", "s11"}},
		{teamB, 3, []string{"s00", "s03", "s06", "s09"}},
		{teamB, 4, []string{"s00", "s03", "s06", "s09"}},
		{&monitoring.Account{Provider: "anthropic", Account: "none"}, 3, []string{}},
	} {
		got, cursor := []string{}, ""
		for {
			page, next, err := store.Sources(t.Context(), owner, c.account, cursor, c.limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), c.limit)
			got = append(got, idsOf(page)...)
			if next == "" {
				break
			}
			cursor = next
		}
		require.Equal(t, c.want, got)
	}
}

func TestACursorOfAnotherOwnerIsRefused(t *testing.T) {
	store := newStore(t)
	fill(t, store)
	_, cursor, err := store.Sources(t.Context(), owner, nil, "", 2)
	require.NoError(t, err)
	_, _, err = store.Sources(t.Context(), "user:lee", nil, cursor, 2)
	require.ErrorIs(t, err, table.ErrBadCursor)
}

func TestSelectedSourcesAreReadByID(t *testing.T) {
	store := newStore(t)
	fill(t, store)
	sources, err := store.SourcesByID(t.Context(), owner, nil, []string{"s05", "s99", "s03", "s05", "none"})
	require.NoError(t, err)
	require.Equal(t, []string{"s03", "s05"}, idsOf(sources))
	sources, err = store.SourcesByID(t.Context(), owner, &monitoring.Account{Provider: "anthropic", Account: "team-b"}, []string{"s05", "s03"})
	require.NoError(t, err)
	require.Equal(t, []string{"s03"}, idsOf(sources))
}

func TestStatisticsCountTheOwnersRowsAsTheyAre(t *testing.T) {
	store := newStore(t)
	fill(t, store)
	ingest(t, store, "oven", resourceAt(0, "oven", 1))
	ring := newRing(t, "k1")
	kept, _ := create(t, store, ring, owner)
	dropped, _ := create(t, store, ring, owner)
	create(t, store, ring, "user:lee")

	stats, err := store.Stats(t.Context(), owner)
	require.NoError(t, err)
	require.Equal(t, monitoring.Stats{Tokens: 2, Agents: 12}, stats)

	_, err = store.RevokeToken(t.Context(), owner, kept.ID, now)
	require.NoError(t, err)
	require.NoError(t, store.DeleteToken(t.Context(), owner, dropped.ID))
	require.NoError(t, store.DeleteSource(t.Context(), owner, "s01"))
	stats, err = store.Stats(t.Context(), owner)
	require.NoError(t, err)
	require.Equal(t, monitoring.Stats{Tokens: 1, Agents: 11}, stats, "revoked ones count, deleted ones do not")
}

func TestAFilteredPageReadsABoundedNumberOfPages(t *testing.T) {
	store := newStore(t)
	for i := range 25 {
		o := agentAt(0, 1)
		if i == 24 {
			o.Account = "team-b"
		}
		ingest(t, store, fmt.Sprintf("s%02d", i), o)
	}
	teamB := &monitoring.Account{Provider: "anthropic", Account: "team-b"}
	page, cursor, err := store.Sources(t.Context(), owner, teamB, "", 1)
	require.NoError(t, err)
	require.Empty(t, page)
	require.NotEmpty(t, cursor, "a short page still leads on")
	page, _, err = store.Sources(t.Context(), owner, teamB, cursor, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"s24"}, idsOf(page))
}
