package factory

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeysOfTheTable(t *testing.T) {
	updated := MillisOf(at("2026-05-14T12:00:06.1239Z"))
	start := at("2026-05-28T19:05:00+09:00")
	require.Equal(t, "FACTORY#factory-a", PK("factory-a"))
	require.Equal(t, "HISTORY#STATE#2026-05-14T12:00:06.123Z", HistorySK(updated))
	require.Equal(t, "GRAPH#5M#2026-05-28T10:05:00Z", GraphSK(start))
	require.Equal(t, "2026-05-28T10:05:00Z#factory-a", DirtyGraphSK(start, "factory-a"))
}

func TestKeysOfTheBucket(t *testing.T) {
	source := at("2026-05-20T08:27:57Z")
	id := "factory-b:factory_state:worker1:2026-05-20T08:27:57Z"
	for want, got := range map[string]string{
		"processed/factory-b/factory_state/yyyy=2026/mm=05/dd=20/hh=08/" + id + ".json":                ProcessedKey("factory-b", "factory_state", source, id),
		"raw/factory-b/factory_state/yyyy=2026/mm=05/dd=20/" + id + ".json":                            RawKey("factory-b", "factory_state", source, id),
		"quarantine/factory-b/infra_state/yyyy=2026/mm=05/dd=20/trace.json":                            QuarantineKey(RawKey("factory-b", "infra_state", source, "trace")),
		"processed/factory-b/state_snapshot/yyyy=2026/mm=05/dd=20/hh=08/2026-05-20T08:27:57.004Z.json": SnapshotKey("factory-b", MillisOf(source.Add(4*time.Millisecond))),
		"processed_agg/factory-b/metrics_5m/yyyy=2026/mm=05/dd=20/hh=08/mm=25.json":                    AggregateKey("factory-b", BucketStart(source)),
		"processed/factory-b/factory_state/yyyy=2025/mm=12/dd=31/hh=15/":                               ProcessedPrefix("factory-b", "factory_state", at("2026-01-01T00:30:00+09:00")),
		"raw/factory-b/infra_state/yyyy=2026/mm=05/dd=19/":                                             RawPrefix("factory-b", "infra_state", at("2026-05-20T08:59:59+09:00")),
		"processed/factory-b/infra_state/yyyy=2026/mm=12/dd=31/hh=23/x.json":                           ProcessedKey("factory-b", "infra_state", at("2026-12-31T23:59:59.999Z"), "x"),
		"processed_agg/factory-b/metrics_5m/yyyy=2027/mm=01/dd=01/hh=00/mm=00.json":                    AggregateKey("factory-b", at("2027-01-01T00:00:00Z")),
		"raw/_/___x/yyyy=2026/mm=05/dd=20/leaf.json":                                                   RawKey("", "../x", source, "leaf"),
	} {
		require.Equal(t, want, got)
	}
}

func TestSortKeysSortAsTimeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := time.UnixMilli(rapid.Int64Range(1577836800000, 4102444800000).Draw(t, "a"))
		b := time.UnixMilli(rapid.Int64Range(1577836800000, 4102444800000).Draw(t, "b"))
		require.Equal(t, a.Compare(b), strings.Compare(HistorySK(MillisOf(a)), HistorySK(MillisOf(b))))
		require.Equal(t, BucketStart(a).Compare(BucketStart(b)), strings.Compare(GraphSK(BucketStart(a)), GraphSK(BucketStart(b))))
	})
}

func TestTheRawLeafIsTheMessageIDWhereThatIsSafe(t *testing.T) {
	require.Equal(t, "factory-a:infra_state:cluster:2026-05-19T03:58:16Z", RawLeaf("factory-a:infra_state:cluster:2026-05-19T03:58:16Z", "trace"))
	for _, id := range hostile {
		require.Equal(t, "0f1e-trace", RawLeaf(id, "0f1e-trace"), id)
	}
}

// requireHarmlessKey wants a key of so many segments, none of which moves up or
// leaves the plain alphabet.
func requireHarmlessKey(t require.TestingT, key string, segments int) {
	parts := strings.Split(key, "/")
	require.Len(t, parts, segments, key)
	for _, part := range parts {
		require.NotEmpty(t, part, key)
		require.NotEqual(t, ".", part, key)
		require.NotEqual(t, "..", part, key)
		require.LessOrEqual(t, len(part), 300, key)
		for _, r := range part {
			require.True(t, r > ' ' && r < 0x7f && !strings.ContainsRune(`\#?%`, r), "%q in %q", r, key)
		}
	}
}

func TestNoTopicLevelOrIDLeavesItsSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom(hostile), rapid.StringMatching(`[./#:]{0,9}`))
		factoryID, source, id, trace := text.Draw(t, "factory"), text.Draw(t, "source"), text.Draw(t, "id"), text.Draw(t, "trace")
		leaf := RawLeaf(id, trace)
		requireHarmlessKey(t, RawKey(factoryID, source, noon, leaf), 7)
		requireHarmlessKey(t, QuarantineKey(RawKey(factoryID, source, noon, leaf)), 7)
	})
}
