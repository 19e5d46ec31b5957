package cloudinfra

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

func at(seconds int) factory.Millis {
	return factory.MillisOf(noon.Add(time.Duration(seconds) * time.Second))
}

func fastHalf(status Status, seconds int) Half {
	f := EvaluateFast(healthyFast(), DefaultThresholds())
	f.BackendRuntime.Status = status
	return Half{At: at(seconds), Fast: &f}
}

func slowHalf(status Status, seconds int) Half {
	s := EvaluateSlow(healthySlow(), DefaultThresholds(), noon)
	s.EKSManagement.Status = status
	return Half{At: at(seconds), Slow: &s}
}

func TestKeys(t *testing.T) {
	moment := factory.MillisOf(time.Date(2026, 6, 1, 15, 30, 0, 7_000_000, time.UTC))
	require.Equal(t, "HISTORY#FAST#2026-06-01T15:30:00.007Z", TrackFast.HistorySK(moment))
	require.Equal(t, "HISTORY#SLOW#2026-06-01T15:30:00.007Z", TrackSlow.HistorySK(moment))
	require.Equal(t, "processed/cloud_infra/slow/yyyy=2026/mm=06/dd=01/hh=15/2026-06-01T15:30:00.007Z.json", TrackSlow.SnapshotKey(moment))
}

func TestOverallStatusFollowsFromBothHalves(t *testing.T) {
	cases := []struct{ fast, slow, want Status }{
		{Normal, Normal, Normal}, {Warning, Normal, Warning}, {Normal, Critical, Critical}, {Unknown, Normal, Unknown}, {Unknown, Warning, Warning},
	}
	for _, c := range cases {
		one := Latest{}.With(fastHalf(c.fast, 0)).With(slowHalf(c.slow, 10))
		other := Latest{}.With(slowHalf(c.slow, 10)).With(fastHalf(c.fast, 0))
		require.Equal(t, c.want, one.OverallStatus)
		require.Equal(t, one, other, "the order does not matter")
		require.Equal(t, at(10), one.UpdatedAt, "the newer of both")
	}
	require.Equal(t, Warning, Latest{}.With(fastHalf(Warning, 0)).OverallStatus, "a half that never was is left out")

	silent := fastHalf(Normal, 0)
	silent.Fast.FactoryFreshness.Status = Critical
	require.Equal(t, Normal, Latest{}.With(silent).OverallStatus)
}

func TestAHalfLeavesTheOtherAlone(t *testing.T) {
	before := Latest{}.With(fastHalf(Normal, 0)).With(slowHalf(Normal, 0))
	after := before.With(fastHalf(Critical, 60))
	require.Equal(t, before.Slow, after.Slow)
	require.Equal(t, before.SlowUpdatedAt, after.SlowUpdatedAt)
	require.Equal(t, at(0), *before.FastUpdatedAt, "the state before is not touched")
}

func TestStandingOfAHalf(t *testing.T) {
	stored := Latest{}.With(fastHalf(Normal, 60))
	cases := []struct {
		name  string
		half  Half
		clock int
		want  Standing
	}{
		{"first of its track", slowHalf(Normal, 0), 0, Newer},
		{"later", fastHalf(Normal, 120), 120, Newer},
		{"repeated", fastHalf(Normal, 60), 70, Same},
		{"overtaken", fastHalf(Normal, 0), 60, Older},
		{"overtaken by minutes", fastHalf(Normal, -240), 60, Older},
		{"only the run's clock is behind", fastHalf(Normal, -3600), 60, Older},
		{"only the writer's clock is behind", fastHalf(Normal, 0), -3600, Older},
		{"what is stored is of a wrong clock", fastHalf(Normal, -3600), -3600, Newer},
	}
	for _, c := range cases {
		require.Equal(t, c.want, c.half.Standing(stored, at(c.clock).Time), c.name)
	}
}

func TestHistoryHasItsOwnHalfOnly(t *testing.T) {
	item := fastHalf(Normal, 0).History(Warning, 6*time.Hour)
	require.Equal(t, PK, item.PK)
	require.Equal(t, "HISTORY#FAST#2026-06-01T12:00:00.000Z", item.SK)
	require.Equal(t, noon.Add(6*time.Hour).Unix(), item.TTL)
	require.Equal(t, at(0), *item.FastUpdatedAt)
	require.Nil(t, item.SlowUpdatedAt)
	require.Nil(t, item.Slow)
	require.NotNil(t, item.Fast)
	body, err := factory.EncodeJSON(item.Snapshot())
	require.NoError(t, err)
	require.NotContains(t, string(body), `"ttl"`)
	require.Contains(t, string(body), `"snapshot_type":"fast"`)
	require.Equal(t, "HISTORY#SLOW#2026-06-01T12:00:00.000Z", slowHalf(Normal, 0).History(Normal, time.Hour).SK)
}

func TestDocumentsKeepTheirShape(t *testing.T) {
	l := Latest{}.With(fastHalf(Normal, 0)).With(slowHalf(Normal, 0))
	body, err := factory.EncodeJSON(l)
	require.NoError(t, err)
	var again Latest
	require.NoError(t, json.Unmarshal(body, &again))
	repeated, err := factory.EncodeJSON(again)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(repeated))

	var fields map[string]map[string]map[string]any
	trimmed, err := json.Marshal(map[string]any{"fast": l.Fast, "slow": l.Slow})
	require.NoError(t, err)
	_ = json.Unmarshal(trimmed, &fields) // status texts don't fit, sections do
	require.Contains(t, fields["fast"]["backend_runtime"], "ecs")
	for _, name := range []string{"cpu_utilization_avg", "memory_utilization_max", "desired_count"} {
		require.Contains(t, fields["fast"]["backend_runtime"]["ecs"], name)
	}
	require.Contains(t, fields["fast"]["backend_runtime"]["alb"], "target_response_time_p95_seconds")
	require.Contains(t, fields["slow"]["storage_freshness"], "factories")
}

func TestATimeThatCanNotBeReadIsMissing(t *testing.T) {
	var l Latest
	require.NoError(t, json.Unmarshal([]byte(`{"updated_at":"soon","fast_updated_at":"yesterday","slow_updated_at":"2026-06-01T12:00:00Z","overall_status":"normal","fast":{"status":"normal"}}`), &l))
	require.Nil(t, l.FastUpdatedAt)
	require.Equal(t, at(0), *l.SlowUpdatedAt)
	require.True(t, ViewOf(&l, noon).FastStale)
	require.Error(t, json.Unmarshal([]byte(`{"fast":7}`), &l))
}

func TestStalenessIsDecidedWhenRead(t *testing.T) {
	stored := Latest{}.With(fastHalf(Normal, 0)).With(slowHalf(Normal, 0))
	cases := []struct {
		name       string
		age        time.Duration
		fast, slow bool
		overall    Status
	}{
		{"fresh", 0, false, false, Normal},
		{"fast at its limit", 180 * time.Second, false, false, Normal},
		{"fast is stale", 181 * time.Second, true, false, Warning},
		{"slow at its limit", 900 * time.Second, true, false, Warning},
		{"both are stale", 901 * time.Second, true, true, Warning},
		{"a little ahead", -time.Minute, false, false, Normal},
		{"far ahead", -time.Hour, true, true, Warning},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := ViewOf(&stored, noon.Add(c.age))
			require.True(t, v.Available)
			require.Equal(t, max(0, int64(c.age/time.Second)), *v.FastAge)
			require.Equal(t, []bool{c.fast, c.slow}, []bool{v.FastStale, v.SlowStale})
			require.Equal(t, c.overall, v.OverallStatus)
			for _, s := range v.Fast.sections() {
				require.Equal(t, c.fast, s.Status == Unknown)
			}
			require.Equal(t, c.fast, v.Fast.Status == Unknown)
			for _, s := range v.Slow.sections() {
				require.Equal(t, c.slow, s.Status == Unknown)
			}
			require.Equal(t, StaleThresholds{Fast: 180, Slow: 900}, v.StaleAfter)
		})
	}
	require.Equal(t, Normal, stored.Fast.BackendRuntime.Status, "what is stored is not touched")
}

func TestAStaleOutageStaysCritical(t *testing.T) {
	stored := Latest{}.With(fastHalf(Critical, 0)).With(slowHalf(Normal, 0))
	v := ViewOf(&stored, noon.Add(time.Hour))
	require.Equal(t, Critical, v.OverallStatus)
	require.Empty(t, v.Fast.BackendRuntime.Reasons)
}

func TestAViewOfNothing(t *testing.T) {
	v := ViewOf(nil, noon)
	require.Equal(t, View{FastStale: true, SlowStale: true, OverallStatus: Unknown, StaleAfter: StaleThresholds{Fast: 180, Slow: 900}}, v)
	one := Latest{}.With(fastHalf(Normal, 0))
	half := ViewOf(&one, noon)
	require.True(t, half.SlowStale)
	require.Nil(t, half.Slow)
	require.Nil(t, half.SlowAge)
	require.Equal(t, Warning, half.OverallStatus)
}
