package report

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func number(text string) exact.Decimal { return exact.MustParse(text) }

func pointer(text string) *exact.Decimal {
	value := number(text)
	return &value
}

func TestChecksFollowFromFigures(t *testing.T) {
	for id, c := range map[string]struct{ holds, holdsNot func(*FactoryDaily) }{
		"risk_low": {
			func(d *FactoryDaily) {
				d.Risk.MinScore, d.Risk.WarningMinutes, d.Risk.DangerMinutes = pointer("0"), number("9"), number("1")
			},
			func(d *FactoryDaily) { d.Risk.MinScore, d.Risk.WarningMinutes = pointer("60"), number("90") },
		},
		"temperature_over_threshold": {
			func(d *FactoryDaily) { d.FactoryState.TemperatureOverThresholdMinutes = number("10") },
			func(d *FactoryDaily) { d.FactoryState.TemperatureOverThresholdMinutes = number("9.95") },
		},
		"ai_score_critical": {
			func(d *FactoryDaily) { d.FactoryState.MaxFallScore = pointer("0.95") },
			func(d *FactoryDaily) { d.FactoryState.MaxFallScore = pointer("0.94") },
		},
		"node_not_ready": {
			func(d *FactoryDaily) { d.Infra.NodeNotReadyMinutes = number("10") },
			func(d *FactoryDaily) { d.Infra.NodeNotReadyMinutes = number("9") },
		},
		"data_gap": {
			func(d *FactoryDaily) { d.DataQuality.MaxGapMinutes = number("5") },
			func(d *FactoryDaily) { d.DataQuality.MaxGapMinutes = number("4.99") },
		},
		"workload_restarts": {
			func(d *FactoryDaily) { d.Infra.WorkloadRestartTotal = 3 },
			func(d *FactoryDaily) { d.Infra.WorkloadRestartTotal = 2 },
		},
		"pipeline_critical": {
			func(d *FactoryDaily) { d.Pipeline.CriticalMinutes = number("5") },
			func(d *FactoryDaily) { d.Pipeline.CriticalMinutes = number("4") },
		},
		"unhealthy_workloads": {
			func(d *FactoryDaily) { d.Infra.UnhealthyWorkloadMinutes = number("10") },
			func(d *FactoryDaily) { d.Infra.UnhealthyWorkloadMinutes = number("1") },
		},
		"invalid_records": {
			func(d *FactoryDaily) { d.DataQuality.InvalidRecordCount = 1 },
			func(*FactoryDaily) {},
		},
	} {
		var yes, no FactoryDaily
		c.holds(&yes)
		c.holdsNot(&no)
		require.Len(t, yes.checks(), 1, id)
		require.Equal(t, id, yes.checks()[0].ID)
		require.NotContains(t, yes.checks()[0].Reason, "%!", id)
		require.Empty(t, no.checks(), id)
	}
}

func TestAtMostFiveChecksTheUrgentOnesFirst(t *testing.T) {
	d := FactoryDaily{
		Risk:         RiskBlock{MinScore: pointer("1"), WarningMinutes: number("60")},
		FactoryState: FactoryStateBlock{TemperatureOverThresholdMinutes: number("60"), MaxFireScore: pointer("1")},
		Infra:        InfraBlock{NodeNotReadyMinutes: number("60"), WorkloadRestartTotal: 9, UnhealthyWorkloadMinutes: number("60")},
		Pipeline:     DailyPipeline{CriticalMinutes: number("60")},
		DataQuality:  DailyQuality{InvalidRecordCount: 2, GapFigures: GapFigures{MaxGapMinutes: number("60")}},
	}
	checks := d.checks()
	require.Len(t, checks, 5)
	require.True(t, slices.IsSortedFunc(checks, func(a, b RecommendedCheck) int {
		rank := map[string]int{"high": 0, "medium": 1, "low": 2}
		return rank[a.Priority] - rank[b.Priority]
	}))
	require.Equal(t, "data_gap", checks[4].ID)
}

func TestLimitationsAreAlwaysThere(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	quiet := quietHour("factory-b", day.Window().Start, time.Minute)
	daily := mergeByHour("factory-b", day, DefaultSettings(), quiet)
	require.GreaterOrEqual(t, len(daily.DataLimitations), 3)
	require.Contains(t, daily.DataLimitations[0], "processed data")
	require.Contains(t, daily.DataLimitations[1], "draft")
	require.Contains(t, daily.DataLimitations[2], "factory-b is a testbed")
	require.NotContains(t, mergeByHour(factoryA, day, DefaultSettings(), nil).DataLimitations[2], "testbed")
}
