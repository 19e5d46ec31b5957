package monitoring_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/table"
)

func TestBudgetIsExactUnderManyActors(t *testing.T) {
	first := newStore(t)
	second := monitoring.Store{Table: first.Table} // another instance on the same table
	const limit = 20
	var spent, refused atomic.Int64
	race(t, func(i int) error {
		store := first
		if i%2 == 0 {
			store = second
		}
		err := store.Spend(t.Context(), "user:kim", domain.BudgetRead, limit, now)
		var exceeded *domain.BudgetExceededError
		switch {
		case err == nil:
			spent.Add(1)
		case errors.As(err, &exceeded):
			refused.Add(1)
			require.Equal(t, 30*time.Second, exceeded.RetryAfter)
		}
		return nil
	})
	require.Equal(t, int64(limit), spent.Load())
	require.Equal(t, int64(actors-limit), refused.Load())
}

func TestBudgetsAreApartByOwnerKindAndMinute(t *testing.T) {
	store := newStore(t)
	spend := func(owner string, kind domain.BudgetKind, at time.Time) error {
		return store.Spend(t.Context(), owner, kind, 1, at)
	}
	require.NoError(t, spend("user:kim", domain.BudgetRead, now))
	require.Error(t, spend("user:kim", domain.BudgetRead, now.Add(29*time.Second)))
	require.NoError(t, spend("user:kim", domain.BudgetRead, now.Add(30*time.Second)), "the next minute")
	require.NoError(t, spend("user:kim", domain.BudgetWrite, now))
	require.NoError(t, spend("user:lee", domain.BudgetRead, now))
	require.Error(t, store.Spend(t.Context(), "user:kim", domain.BudgetTokenCreate, 0, now), "a budget of nothing")
}

func TestBudgetRowExpiresAfterTwoMinutes(t *testing.T) {
	store := newStore(t)
	for range 2 {
		require.NoError(t, store.Spend(t.Context(), "user:kim", domain.BudgetWrite, 5, now))
	}
	var row map[string]any
	found, err := store.Table.Get(t.Context(), table.Key{Partition: "BUDGET#user:kim", Sort: "write#2026-11-30T12:00"}, &row)
	require.NoError(t, err)
	require.True(t, found)
	require.InDelta(t, 2, row["count"], 0)
	require.InDelta(t, now.Add(2*time.Minute).Unix(), row["expires_at"], 0)
}

func BenchmarkSpend(b *testing.B) {
	store := newStore(b)
	for b.Loop() {
		require.NoError(b, store.Spend(b.Context(), "user:kim", domain.BudgetRead, 1<<40, now))
	}
}
