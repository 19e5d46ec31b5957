package table_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/storage/storagetest"
	"millrace/storage/table"
)

func TestCountGoesThroughAllPagesOfAPrefix(t *testing.T) {
	tab := storagetest.Table(t, storagetest.Monitoring)
	put := func(partition, sort, kind string, size int) {
		require.NoError(t, tab.Put(t.Context(), map[string]any{
			"PK": partition, "SK": sort, "kind": kind, "filler": strings.Repeat("x", size),
		}, nil))
	}
	for i := range 7 { // 2.1 MB: three pages
		kind := "even"
		if i%2 == 1 {
			kind = "odd"
		}
		put("A", fmt.Sprint("S#", i), kind, 300_000)
	}
	put("A", "T#1", "even", 1)
	put("B", "S#1", "even", 1)
	odd := &table.Condition{Expression: "#kind = :odd", Names: map[string]string{"#kind": "kind"}, Values: table.Item{":odd": table.String("odd")}}
	for _, c := range []struct {
		partition, prefix string
		filter            *table.Condition
		want              int64
	}{
		{"A", "S#", nil, 7}, {"A", "S#", odd, 3}, {"A", "", nil, 8}, {"B", "S#", odd, 0}, {"C", "", nil, 0},
	} {
		count, err := tab.Count(t.Context(), c.partition, c.prefix, c.filter)
		require.NoError(t, err)
		require.Equal(t, c.want, count, "%s %s", c.partition, c.prefix)
	}
}
