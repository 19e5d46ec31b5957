package report

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/report"
	workflows "millrace/workflows/report"
)

func planner() Planner {
	return Planner{Settings: report.DefaultSettings(), Writing: 45 * time.Minute, Now: func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }}
}

func TestAPlanIsTheLocalDayBefore(t *testing.T) {
	for _, c := range []struct {
		at, zone, date string
		hours          int
	}{
		{"2026-01-01T15:30:00Z", "", "2026-01-01", 24},
		{"2025-12-31T15:30:00Z", "", "2025-12-31", 24},
		{"2026-01-01T14:59:59Z", "", "2025-12-31", 24},
		{"2026-03-29T22:30:00Z", "Europe/Berlin", "2026-03-29", 23},
		{"2026-10-25T23:30:00Z", "Europe/Berlin", "2026-10-25", 24},
		{"2026-03-01T05:30:00Z", "America/New_York", "2026-02-28", 24},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		require.NoError(t, err)
		plan, err := run(t, planner().PlanReport, workflows.PlanRequest{At: at, Timezone: c.zone})
		require.NoError(t, err)
		require.Equal(t, c.date, plan.Date, c.at)
		require.Len(t, plan.Hours, c.hours, c.at)
		require.Equal(t, []string{"factory-a", "factory-b", "factory-c", "cloud-infra"}, plan.Targets)
		require.EqualValues(t, 2700, plan.WritingSeconds)
	}
}

func TestAPlanTellsUnknownTargets(t *testing.T) {
	plan, err := run(t, planner().PlanReport, workflows.PlanRequest{Date: "2026-01-01", Targets: []string{"cloud-infra", "factory-z", "../x", "cloud-infra", "factory-z"}})
	require.NoError(t, err)
	require.Equal(t, []string{"cloud-infra"}, plan.Targets)
	require.Equal(t, []string{"factory-z", "../x"}, plan.Unknown)
	require.Equal(t, "2025-12-31", plan.Previous)
}

func TestAPlanThatCannotBeMadeIsFinal(t *testing.T) {
	for _, req := range []workflows.PlanRequest{
		{Date: "2026-02-30"}, {Date: "2026-12-01"}, {Date: "2026-01-01", Timezone: "Mars/Olympus"}, {Date: "2026-01-01", Targets: make([]string, maxTargets+1)},
	} {
		_, err := run(t, planner().PlanReport, req)
		failed, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok)
		require.True(t, failed.NonRetryable())
	}
}

func TestAPlanFindsWhatTheDayBeforeLacks(t *testing.T) {
	p := newPlant(t)
	put := func(key string) { require.NoError(t, p.Store.Bucket.Put(t.Context(), key, "text/plain", []byte("x"))) }
	for _, target := range []string{"factory-a", "factory-b"} {
		put(report.MarkdownKey("reports/daily", "2025-12-31", target))
	}
	put(report.MetadataKey("reports/daily", "2025-12-31", "factory-a"))
	put(report.MarkdownKey("reports/daily", "2025-12-28", "factory-c"))
	put("processed/cloud_infra/slow/yyyy=2025/mm=12/dd=31/hh=14/2025-12-31T14:59:59Z.json")
	plan := planner()
	plan.Store = p.Store
	p.calls.Take()
	got, err := run(t, plan.PlanReport, workflows.PlanRequest{Date: "2026-01-01", MakeUp: true})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"ListObjectsV2": 1 + 3 + 3 + 2}, p.calls.Take())
	require.Equal(t, []workflows.TargetDate{
		{Target: "factory-b", Date: "2025-12-31"}, {Target: "factory-c", Date: "2025-12-31"}, {Target: "cloud-infra", Date: "2025-12-31"},
	}, got.Missed, "one that lacks its metadata is not finished, one that was reported on before is owed, and so is one with an object")
}

// TestTheFirstNightOwesNothing has objects of the day that is reported on, and of
// none before it.
func TestTheFirstNightOwesNothing(t *testing.T) {
	p := newPlant(t)
	for _, key := range []string{
		"processed/factory-a/factory_state/yyyy=2025/mm=12/dd=31/hh=15/first.json", "processed/factory-a/infra_state/yyyy=2025/mm=12/dd=30/hh=14/old.json",
		"processed/cloud_infra/fast/yyyy=2025/mm=12/dd=31/hh=15/first.json",
	} {
		require.NoError(t, p.Store.Bucket.Put(t.Context(), key, "text/plain", []byte("x")))
	}
	plan := planner()
	plan.Store = p.Store
	got, err := run(t, plan.PlanReport, workflows.PlanRequest{Date: "2026-01-01", MakeUp: true})
	require.NoError(t, err)
	require.Empty(t, got.Missed)
}
