package table_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/storage/storagetest"
	"millrace/storage/table"
)

// indexed is an item of a table with an index.
type indexed struct {
	PK     string `json:"PK"`
	SK     string `json:"SK"`
	GSI1PK string `json:"GSI1PK,omitempty"`
	GSI1SK string `json:"GSI1SK,omitempty"`
}

func fill(t *testing.T, n int) table.Table {
	t.Helper()
	tab := storagetest.Table(t, storagetest.Monitoring)
	for i := range n {
		require.NoError(t, tab.Put(t.Context(), indexed{PK: "P", SK: fmt.Sprintf("A#%02d", i), GSI1PK: "G", GSI1SK: "same"}, nil))
		require.NoError(t, tab.Put(t.Context(), indexed{PK: "P", SK: fmt.Sprintf("B#%02d", i)}, nil))
	}
	return tab
}

// walk collects the sort keys of all pages.
func walk(t *testing.T, tab table.Table, q table.PageQuery) (keys []string, pages int) {
	t.Helper()
	for pages = 1; ; pages++ {
		items, next, err := tab.Page(t.Context(), q)
		require.NoError(t, err)
		for _, it := range items {
			var row indexed
			require.NoError(t, table.Decode(it, &row))
			keys = append(keys, row.SK)
		}
		if next == "" {
			return keys, pages
		}
		q.Cursor = next
	}
}

func TestPagesHaveEveryItemOfThePrefixOnceInOrder(t *testing.T) {
	tab := fill(t, 10)
	keys, pages := walk(t, tab, table.PageQuery{Partition: "P", Prefix: "A#", Limit: 3, Consistent: true})
	require.Equal(t, []string{"A#00", "A#01", "A#02", "A#03", "A#04", "A#05", "A#06", "A#07", "A#08", "A#09"}, keys)
	require.Equal(t, 4, pages)
	keys, _ = walk(t, tab, table.PageQuery{Partition: "P", Prefix: "B#", Limit: 4, Descending: true})
	require.Equal(t, "B#09", keys[0])
	require.Len(t, keys, 10)
	keys, _ = walk(t, tab, table.PageQuery{Partition: "P"})
	require.Len(t, keys, 20)
	keys, _ = walk(t, tab, table.PageQuery{Partition: "none"})
	require.Empty(t, keys)
}

func TestPagesOfAnIndexGoThroughEqualSortKeys(t *testing.T) {
	keys, _ := walk(t, fill(t, 10), table.PageQuery{Index: "GSI1", Partition: "G", Limit: 3})
	require.Len(t, keys, 10)
	seen := map[string]bool{}
	for _, k := range keys {
		require.False(t, seen[k], "%s came twice", k)
		seen[k] = true
	}
}

func TestCursorsFitTheirOwnListOnly(t *testing.T) {
	tab := fill(t, 3)
	_, cursor, err := tab.Page(t.Context(), table.PageQuery{Partition: "P", Limit: 1})
	require.NoError(t, err)
	_, indexCursor, err := tab.Page(t.Context(), table.PageQuery{Index: "GSI1", Partition: "G", Limit: 1})
	require.NoError(t, err)
	for name, q := range map[string]table.PageQuery{
		"another partition": {Partition: "Q", Cursor: cursor},
		"another prefix":    {Partition: "P", Prefix: "other", Cursor: cursor},
		"of the table":      {Index: "GSI1", Partition: "G", Cursor: cursor},
		"of an index":       {Partition: "P", Cursor: indexCursor},
		"no base64":         {Partition: "P", Cursor: "*"},
		"no JSON":           {Partition: "P", Cursor: "AAAA"},
		"no strings":        {Partition: "P", Cursor: "eyJQSyI6MX0"},
	} {
		_, _, err := tab.Page(t.Context(), q)
		require.ErrorIs(t, err, table.ErrBadCursor, name)
	}
}

func FuzzCursors(f *testing.F) {
	f.Add("eyJQSyI6IlAiLCJTSyI6IkEifQ", "P")
	f.Add("", "P")
	f.Fuzz(func(t *testing.T, cursor, partition string) {
		tab := table.Table{Client: refusing{}, Name: "t", PartitionKey: "PK", SortKey: "SK"}
		_, _, err := tab.Page(t.Context(), table.PageQuery{Partition: partition, Cursor: cursor})
		require.Error(t, err)
	})
}
