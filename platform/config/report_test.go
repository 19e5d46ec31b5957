package config

import (
	"os"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"millrace/domain/report"
)

func parseReport(t *testing.T, args ...string) (Report, error) {
	t.Helper()
	var r Report
	parser, err := kong.New(&r)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return r, err
}

func TestReportsHaveTheOriginalsRules(t *testing.T) {
	t.Setenv("MILLRACE_BEDROCK_MODEL_ID", "") // the local stack sets it
	require.NoError(t, os.Unsetenv("MILLRACE_BEDROCK_MODEL_ID"))
	r, err := parseReport(t)
	require.NoError(t, err)
	require.NoError(t, r.Validate())
	got, err := r.Settings([]string{"factory-a", "factory-b", "factory-c"})
	require.NoError(t, err)
	require.Equal(t, report.DefaultSettings(), got)
	hour, minute, err := r.Clock()
	require.NoError(t, err)
	require.Equal(t, []int{0, 30}, []int{hour, minute})
	require.Equal(t, 45*time.Minute, r.WritingLimit)
}

func TestReportSettingsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_REPORT_TIMEZONE", "Europe/Berlin")
	t.Setenv("MILLRACE_REPORT_FACTORY_IDS", "factory-x,factory-b")
	t.Setenv("MILLRACE_REPORT_TESTBEDS", "factory-x")
	t.Setenv("MILLRACE_REPORT_LANGUAGE", "en")
	t.Setenv("MILLRACE_REPORT_EVENT_MERGE_GAP", "30s")
	t.Setenv("MILLRACE_REPORT_TEMPERATURE_WARNING_C", "30.5")
	t.Setenv("MILLRACE_BEDROCK_MODEL_ID", "own")
	t.Setenv("MILLRACE_BEDROCK_PRICES", `[{"model":"own","input":3,"output":15}]`)
	r, err := parseReport(t)
	require.NoError(t, err)
	s, err := r.Settings([]string{"factory-a"})
	require.NoError(t, err)
	require.Equal(t, []string{"factory-x", "factory-b"}, s.FactoryIDs)
	require.True(t, s.Profile("factory-x").Testbed())
	require.False(t, s.Profile("factory-b").Testbed())
	require.Equal(t, "vm-mac", s.Profile("factory-b").EnvironmentType)
	prices, err := r.Model.TokenPrices()
	require.NoError(t, err)
	cost, known := prices.Cost(s.ModelID, 1_000_000, 100_000)
	require.True(t, known)
	require.Equal(t, "4.5", cost.String())
	require.Equal(t, []any{"Europe/Berlin", report.English, 30 * time.Second, "30.5", "own"},
		[]any{s.Timezone, s.Language, s.EventMergeGap, s.TemperatureWarning.String(), s.ModelID})
}

func TestWrongReportSettingsAreNamed(t *testing.T) {
	for _, c := range []struct{ arg, variable string }{
		{"--report-timezone=Mars/Olympus", "MILLRACE_REPORT_TIMEZONE"},
		{"--report-timezone=Local", "MILLRACE_REPORT_TIMEZONE"},
		{"--report-time=0:30", "MILLRACE_REPORT_TIME"},
		{"--report-time=24:00", "MILLRACE_REPORT_TIME"},
		{"--report-output-prefix=/reports", "MILLRACE_REPORT_OUTPUT_PREFIX"},
		{"--report-output-prefix=a/../b", "MILLRACE_REPORT_OUTPUT_PREFIX"},
		{"--report-factory-ids=cloud/infra", "MILLRACE_REPORT_FACTORY_IDS"},
		{"--report-testbeds=A", "MILLRACE_REPORT_TESTBEDS"},
		{"--report-datasets=image_snapshot", "MILLRACE_REPORT_DATASETS"},
		{"--report-writing-limit=1s", "MILLRACE_REPORT_WRITING_LIMIT"},
		{"--public-url=millrace", "MILLRACE_PUBLIC_URL"},
		{"--bedrock-model-id=", "MILLRACE_BEDROCK_MODEL_ID"},
		{"--bedrock-temperature=2", "MILLRACE_BEDROCK_TEMPERATURE"},
		{"--bedrock-max-tokens=0", "MILLRACE_BEDROCK_MAX_TOKENS"},
		{`--bedrock-prices=[{"model":"a","in":1}]`, "MILLRACE_BEDROCK_PRICES"},
		{"--report-s3-get-concurrency=0", "MILLRACE_REPORT_S3_GET_CONCURRENCY"},
		{"--report-max-objects-per-hour=0", "MILLRACE_REPORT_MAX_OBJECTS_PER_HOUR"},
		{"--report-factory-state-interval=1ms", "MILLRACE_REPORT_FACTORY_STATE_INTERVAL"},
		{"--report-risk-warning-score-max=low", "MILLRACE_REPORT_RISK_WARNING_SCORE_MAX"},
		{"--report-risk-danger-score-max=90", "MILLRACE_REPORT_RISK_DANGER_SCORE_MAX"},
	} {
		_, err := parseReport(t, c.arg)
		require.ErrorContains(t, err, c.variable, c.arg)
	}
	_, err := parseReport(t, "--report-time=noon", "--report-writing-limit=99h")
	require.ErrorContains(t, err, "MILLRACE_REPORT_TIME")
	require.ErrorContains(t, err, "MILLRACE_REPORT_WRITING_LIMIT")
}
