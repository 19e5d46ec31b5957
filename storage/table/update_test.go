package table_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

var key = table.Key{Partition: "P", Sort: "S"}

// item is what the tests of updates write.
type item struct {
	PK    string         `json:"pk"`
	SK    string         `json:"sk"`
	Name  string         `json:"name,omitempty"`
	TTL   int64          `json:"ttl,omitempty"`
	Sum   *exact.Decimal `json:"sum,omitempty"`
	Inner map[string]any `json:"inner,omitempty"`
}

func TestUpdateSetsAddsAndRemoves(t *testing.T) {
	tab := storagetest.Table(t, storagetest.Factory)
	var got item
	for range 3 {
		require.NoError(t, tab.Update(t.Context(), table.Change{
			Key: key, Set: map[string]any{"name": "last"}, SetOnce: map[string]any{"ttl": 7},
			Add: map[string]exact.Decimal{"sum": exact.MustParse("0.1")},
		}, &got))
	}
	require.Equal(t, "last", got.Name)
	require.Equal(t, int64(7), got.TTL)
	require.Equal(t, "0.3", got.Sum.String(), "sums are exact")
	require.NoError(t, tab.Update(t.Context(), table.Change{Key: key, SetOnce: map[string]any{"ttl": 9}, Remove: []string{"name", "sum"}}, &got))
	got = item{}
	found, err := tab.Get(t.Context(), key, &got)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, item{PK: "P", SK: "S", TTL: 7}, got)
}

func TestUpdateUnderAConditionTellsWhatStoodInTheWay(t *testing.T) {
	tab := storagetest.Table(t, storagetest.Factory)
	present := tab.Present()
	var conflict *table.ConflictError
	err := tab.Update(t.Context(), table.Change{Key: key, Set: map[string]any{"name": "x"}, Condition: &present}, nil)
	require.ErrorAs(t, err, &conflict)
	require.Empty(t, conflict.Current, "an update must not bring an item back")

	require.NoError(t, tab.Put(t.Context(), item{PK: "P", SK: "S", Name: "first"}, nil))
	other := table.Condition{Expression: "#name = :name", Names: map[string]string{"#name": "name"}, Values: table.Item{":name": table.String("second")}}
	err = tab.Update(t.Context(), table.Change{Key: key, Set: map[string]any{"name": "third"}, Condition: &other}, nil)
	require.ErrorAs(t, err, &conflict)
	var current item
	require.NoError(t, table.Decode(conflict.Current, &current))
	require.Equal(t, "first", current.Name)
}

func TestUpdatesOfATransactionHappenTogetherOrNotAtAll(t *testing.T) {
	tab := storagetest.Table(t, storagetest.Factory)
	require.NoError(t, tab.Put(t.Context(), item{PK: "P", SK: "S"}, nil))
	present := tab.Present()
	change := func(sort string) table.Change {
		return table.Change{Key: table.Key{Partition: "P", Sort: sort}, Set: map[string]any{"name": "new"}, Condition: &present}
	}
	good, err := tab.UpdateWrite(change("S"))
	require.NoError(t, err)
	bad, err := tab.UpdateWrite(change("absent"))
	require.NoError(t, err)
	var conflict *table.ConflictError
	require.ErrorAs(t, tab.TransactRetrying(t.Context(), good, bad), &conflict)
	require.ErrorAs(t, tab.TransactRetrying(t.Context(), good, tab.CheckWrite(table.Key{Partition: "P", Sort: "absent"}, present)), &conflict)
	var got item
	_, err = tab.Get(t.Context(), key, &got)
	require.NoError(t, err)
	require.Empty(t, got.Name)
	require.NoError(t, tab.TransactRetrying(t.Context(), good))
}

func TestOneOfManyConditionalUpdatesWins(t *testing.T) {
	tab := storagetest.Table(t, storagetest.Factory)
	absent := tab.Absent()
	var won, lost atomic.Int64
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			err := tab.Update(t.Context(), table.Change{Key: key, Add: map[string]exact.Decimal{"sum": exact.FromInt(1)}, Condition: &absent}, nil)
			var conflict *table.ConflictError
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &conflict):
				lost.Add(1)
			}
		})
	}
	wait.Wait()
	require.Equal(t, int64(1), won.Load())
	require.Equal(t, int64(49), lost.Load())
}

func TestUpdateRefusesWhatATableCanNotHold(t *testing.T) {
	err := table.Table{}.Update(t.Context(), table.Change{Set: map[string]any{"sum": exact.MustParse("1e-200")}}, nil)
	require.Error(t, err)
	_, err = table.Table{}.UpdateWrite(table.Change{Set: map[string]any{"f": func() {}}})
	require.Error(t, err)
}
