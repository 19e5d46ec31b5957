package monitoring_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	domain "millrace/domain/monitoring"
	"millrace/storage/monitoring"
	"millrace/storage/table"
)

func addressOf(t testing.TB, project, key string) domain.MemoryAddress {
	t.Helper()
	a, err := domain.NewMemoryAddress(project, key)
	require.NoError(t, err)
	return a
}

func TestMemoryKeepsItsCreationAndReplacesTheRest(t *testing.T) {
	store := newStore(t)
	a := addressOf(t, "My Project", "notes#1")
	first, err := store.PutMemory(t.Context(), owner, a, "one", now)
	require.NoError(t, err)
	require.Equal(t, domain.Memory{Token: owner, Project: "my-project", Key: "notes#1", Value: "one", CreatedAt: now, UpdatedAt: now}, first)
	later := now.Add(time.Hour)
	_, err = store.PutMemory(t.Context(), owner, addressOf(t, "my_project", "notes#1"), "", later)
	require.NoError(t, err)
	read, err := store.Memory(t.Context(), owner, a)
	require.NoError(t, err)
	require.Equal(t, domain.Memory{Token: owner, Project: "my-project", Key: "notes#1", CreatedAt: now, UpdatedAt: later}, read)

	var row map[string]any
	found, err := store.Table.Get(t.Context(), table.Key{Partition: "OWNER#user:kim", Sort: "MEMORY#my-project#notes%231"}, &row)
	require.NoError(t, err)
	require.True(t, found)
	require.NotContains(t, row, "expires_at")
}

func TestMemoryIsTheOwnersAlone(t *testing.T) {
	store := newStore(t)
	a := addressOf(t, "p", "k")
	_, err := store.PutMemory(t.Context(), owner, a, strings.Repeat("가", domain.MaxMemoryValue), now)
	require.NoError(t, err)
	_, err = store.Memory(t.Context(), "user:lee", a)
	require.ErrorIs(t, err, monitoring.ErrMemoryNotFound)
	require.NoError(t, store.DeleteMemory(t.Context(), "user:lee", a))
	_, err = store.Memory(t.Context(), owner, a)
	require.NoError(t, err)
	require.NoError(t, store.DeleteMemory(t.Context(), owner, a))
	require.NoError(t, store.DeleteMemory(t.Context(), owner, a), "again")
	_, err = store.Memory(t.Context(), owner, a)
	require.ErrorIs(t, err, monitoring.ErrMemoryNotFound)
}

func TestManyWritersOfOneMemoryAgreeOnItsCreation(t *testing.T) {
	store := newStore(t)
	var created sync.Map
	ends := race(t, func(i int) error {
		m, err := store.PutMemory(t.Context(), owner, addressOf(t, "p", "k"), "v", now.Add(time.Duration(i)*time.Second))
		created.Store(m.CreatedAt, true)
		return err
	})
	require.Equal(t, map[string]int{"<nil>": actors}, ends)
	n := 0
	created.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
}
