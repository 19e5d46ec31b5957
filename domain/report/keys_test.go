package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysLieUnderTheLocalDate(t *testing.T) {
	const prefix, date = "reports/daily", "2026-01-09"
	for key, want := range map[string]string{
		DayPrefix(prefix, date):                           "reports/daily/yyyy=2026/mm=01/dd=09",
		ReportPrefix(prefix, date, "factory-a"):           "reports/daily/yyyy=2026/mm=01/dd=09/factory-a",
		HourKey(prefix, date, "factory-a", "05"):          "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/intermediate/hourly/hh=05.json",
		DailyKey(prefix, date, "factory-a"):               "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/factory-daily-summary.json",
		DailyKey(prefix, date, CloudTarget):               "reports/daily/yyyy=2026/mm=01/dd=09/cloud-infra/cloud-infra-daily-summary.json",
		ContextKey(prefix, date, CloudTarget):             "reports/daily/yyyy=2026/mm=01/dd=09/cloud-infra/report-context.json",
		MarkdownKey(prefix, date, "factory-a"):            "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/report.md",
		HTMLKey(prefix, date, "factory-a"):                "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/report.html",
		MetadataKey(prefix, date, "factory-a"):            "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/generation-metadata.json",
		DraftKey(prefix, date, "factory-a", "0123abcdef"): "reports/daily/yyyy=2026/mm=01/dd=09/factory-a/drafts/0123abcdef.json",
	} {
		require.Equal(t, want, key)
	}
}

func TestOnlyFactoriesAndTheCloudAreTargets(t *testing.T) {
	for _, target := range []string{"factory-a", "cloud-infra", "f1"} {
		require.NoError(t, CheckTarget(target))
	}
	for _, target := range []string{"", "..", "a/b", "Factory", "artifacts", "observability"} {
		requireInvalid(t, CheckTarget(target), "target")
	}
}
