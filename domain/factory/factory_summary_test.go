package factory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListElementOfAFactory(t *testing.T) {
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload),
		envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload))
	requireGolden(t, "factory_summary", latest.Summary())
}

func TestTheListElementOfAFactoryKnownByAPictureOnly(t *testing.T) {
	latest := applied(t, noon, envelope(SourceImageSnapshot, "arm", "2026-05-20T11:59:55Z", picturePayload))
	requireGolden(t, "factory_summary_young", latest.Summary())
}

func TestDisplayStatusIsTheWorseOfRiskAndPipeline(t *testing.T) {
	for _, c := range []struct {
		level  Level
		health Health
		want   DisplayStatus
	}{
		{LevelSafe, Normal, DisplaySafe},
		{LevelSafe, Warning, DisplayWarning},
		{LevelSafe, Critical, DisplayDanger},
		{LevelWarning, Normal, DisplayWarning},
		{LevelWarning, Critical, DisplayDanger},
		{LevelDanger, Normal, DisplayDanger},
		{"", Normal, DisplaySafe},
		{"", Critical, DisplayDanger},
		{LevelWarning, "", DisplayWarning},
		{"", "", DisplayUnknown},
	} {
		latest := Latest{}
		if c.level != "" {
			latest.Risk = &Risk{Level: c.level}
		}
		if c.health != "" {
			latest.PipelineStatus = &PipelineStatus{Status: c.health}
		}
		require.Equal(t, c.want, latest.Summary().DisplayStatus, c)
	}
}

func TestWorkloadTotalCountsTheOnesThatWereCut(t *testing.T) {
	workloads := strings.TrimSuffix(strings.Repeat(`{"name":"w","ready":true},`, 300), ",")
	latest := applied(t, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", `{"workloads":[`+workloads+`]}`))
	require.Equal(t, int64(300), *latest.Summary().WorkloadTotal)
	require.Equal(t, int64(300), *latest.Summary().WorkloadReady)
}
