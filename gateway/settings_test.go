package main

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
)

func parse(t *testing.T, args ...string) (settings, error) {
	t.Helper()
	var s settings
	parser, err := kong.New(&s)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return s, err
}

func TestDefaultsAreThoseOfTheDesign(t *testing.T) {
	s, err := parse(t)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", s.Address)
	require.Equal(t, []string{"factory-a", "factory-b", "factory-c"}, s.FactoryIDs)
	require.Equal(t, monitoring.DefaultLimits, s.Budgets.limits())
	require.Empty(t, s.CORSOrigins)
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_CORS_ORIGINS", "https://a.example.org,http://127.0.0.1:5173")
	t.Setenv("MILLRACE_BUDGET_READ", "7")
	s, err := parse(t)
	require.NoError(t, err)
	require.Equal(t, []string{"https://a.example.org", "http://127.0.0.1:5173"}, s.CORSOrigins)
	require.Equal(t, int64(7), s.Budgets.limits().Read)
}

func TestSettingsThatCanNotWorkAreNamedTogether(t *testing.T) {
	_, err := parse(t, "--cors-origins=*,dash.example.org,https://a.example.org/", "--budget-write=0", "--budget-read=-1", "--data-bucket=X", "--signing-key=x", "--provenance-signing-key=y")
	require.Error(t, err)
	for _, part := range []string{`"*"`, `"dash.example.org"`, `"https://a.example.org/"`, "MILLRACE_BUDGET_WRITE", "MILLRACE_BUDGET_READ", "MILLRACE_DATA_BUCKET", "MILLRACE_GATEWAY_SIGNING_KEY", "MILLRACE_PROVENANCE_SIGNING_KEY"} {
		require.ErrorContains(t, err, part)
	}
}
