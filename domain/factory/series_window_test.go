package factory

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseWindow(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": time.Hour, "1m": time.Minute, "10m": 10 * time.Minute, "60m": time.Hour, "01h": time.Hour,
		"6h": 6 * time.Hour, "24h": 24 * time.Hour, "1d": 24 * time.Hour, "2d": 48 * time.Hour, "2880m": 48 * time.Hour,
	} {
		got, err := ParseWindow(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseWindowRefuses(t *testing.T) {
	for _, text := range []string{
		"0m", "0h", "0d", "000000h", "49h", "3d", "2881m", "999999d", "9999999m", "99999999999999999999h",
		"h", "1", "-1h", "+1h", "1.5h", "1H", "1s", "1w", " 1h", "1h ", "1h\n", "1h1m", "١h", "1h;", "1h' OR 1",
	} {
		_, err := ParseWindow(text)
		requireInvalid(t, err, "window", text)
	}
}

func requireInvalid(t *testing.T, err error, field string, about ...any) {
	t.Helper()
	var invalid *InvalidError
	require.True(t, errors.As(err, &invalid), "%v: %v", about, err)
	require.Equal(t, field, invalid.Field, about...)
	require.NotEmpty(t, invalid.Rule)
}

func TestPlanHistoryNamesTheWrongParameter(t *testing.T) {
	for _, c := range []struct{ window, since, limit, field string }{
		{"x", "", "", "window"},
		{"", "yesterday", "", "since"},
		{"", "2026-05-20T12:00:00", "", "since"},
		{"", "", "0", "limit"},
		{"", "", "-1", "limit"},
		{"", "", "2001", "limit"},
		{"6h", "", "1e3", "limit"},
		{"", "", "99999999999999999999", "limit"},
	} {
		_, err := PlanHistory(c.window, c.since, c.limit, noon)
		requireInvalid(t, err, c.field, c)
	}
}

func TestEachWindowHasItsReadModelAndLimit(t *testing.T) {
	now := at("2026-05-20T12:07:30.250Z")
	cases := []struct {
		window string
		want   ReadPlan
	}{
		{"10m", ReadPlan{Model: ReadHistory, FromSK: "HISTORY#STATE#2026-05-20T11:57:30.250Z", Limit: 250, Merge: 1}},
		{"30m", ReadPlan{Model: ReadHistory, FromSK: "HISTORY#STATE#2026-05-20T11:37:30.250Z", Limit: 500, Merge: 1}},
		{"", ReadPlan{Model: ReadHistory, FromSK: "HISTORY#STATE#2026-05-20T11:07:30.250Z", Limit: 2000, Merge: 1}},
		{"60m", ReadPlan{Model: ReadHistory, FromSK: "HISTORY#STATE#2026-05-20T11:07:30.250Z", Limit: 2000, Merge: 1}},
		{"61m", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-20T11:10:00Z", Merge: 1}},
		{"2h", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-20T10:10:00Z", Merge: 1}},
		{"6h", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-20T06:10:00Z", Merge: 1}},
		{"12h", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-20T00:10:00Z", Merge: 2}},
		{"24h", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-19T12:20:00Z", Merge: 4}},
		{"1d", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-19T12:20:00Z", Merge: 4}},
		{"2d", ReadPlan{Model: ReadGraph, FromSK: "GRAPH#5M#2026-05-18T12:10:00Z", Merge: 1}},
	}
	for _, c := range cases {
		got, err := PlanHistory(c.window, "", "", now)
		require.NoError(t, err)
		c.want.ToSK = string(c.want.Model) + "#~"
		require.Equal(t, c.want, got, c.window)
	}
}

func TestALimitMayBeAskedFor(t *testing.T) {
	for _, window := range []string{"10m", "24h"} {
		plan, err := PlanHistory(window, "", "7", noon)
		require.NoError(t, err)
		require.Equal(t, 7, plan.Limit)
	}
}

func TestSinceMovesTheLowerBoundJustBehindIt(t *testing.T) {
	now := at("2026-05-20T12:07:30Z")
	cases := []struct{ window, since, from string }{
		{"1h", "2026-05-20T12:00:00.123Z", "HISTORY#STATE#2026-05-20T12:00:00.124Z"},
		{"1h", "2026-05-20T21:00:00.1239+09:00", "HISTORY#STATE#2026-05-20T12:00:00.124Z"},
		{"1h", "2026-05-20T12:00:00Z", "HISTORY#STATE#2026-05-20T12:00:00.001Z"},
		{"1h", "1970-01-01T00:00:00Z", "HISTORY#STATE#2026-05-20T11:07:30.000Z"},
		{"6h", "2026-05-20T11:50:00Z", "GRAPH#5M#2026-05-20T11:55:00Z"},
		{"6h", "2026-05-20T11:49:59.999Z", "GRAPH#5M#2026-05-20T11:50:00Z"},
		{"6h", "2020-01-01T00:00:00Z", "GRAPH#5M#2026-05-20T06:10:00Z"},
		{"24h", "2026-05-20T11:40:00Z", "GRAPH#5M#2026-05-20T11:40:00Z"},
		{"24h", "2026-05-20T11:50:00Z", "GRAPH#5M#2026-05-20T11:40:00Z"},
		{"24h", "2026-05-20T11:55:00Z", "GRAPH#5M#2026-05-20T12:00:00Z"},
		{"12h", "2026-05-20T23:55:00Z", "GRAPH#5M#2026-05-21T00:00:00Z"},
	}
	for _, c := range cases {
		plan, err := PlanHistory(c.window, c.since, "", now)
		require.NoError(t, err)
		require.Equal(t, c.from, plan.FromSK, c)
	}
}

// Incident 10.1: a day of history read tens of thousands of rows.
func TestADayReadsAtMost288BucketsAndShows72Elements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "later")))
		plan, err := PlanHistory("24h", "", "", now)
		require.NoError(t, err)
		read := readable(plan, now)
		require.LessOrEqual(t, len(read), 288)
		points := BucketSeries(read, plan)
		require.GreaterOrEqual(t, len(points), 71)
		require.LessOrEqual(t, len(points), 72)
	})
}

// readable are the buckets closed at now that a store finds by a plan.
func readable(plan ReadPlan, now time.Time) []Graph {
	var found []Graph
	for _, start := range ClosedBuckets(now, 600) {
		if sk := GraphSK(start); sk >= plan.FromSK && sk <= plan.ToSK {
			found = append(found, Graph{BucketStart: start, BucketEnd: BucketEnd(start), BucketMinutes: BucketMinutes, Quality: GraphQuality{SourceCount: 1}})
		}
	}
	return found
}
