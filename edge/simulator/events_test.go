package simulator

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

// shift is long enough for every kind of event to come round several times.
const shift = 8 * time.Hour

// shiftOf is what a factory sends in that time.
func shiftOf(t *testing.T, factoryID string, source factory.SourceType) []sent {
	t.Helper()
	shifts.Lock()
	defer shifts.Unlock()
	if shifts.of == nil {
		shifts.of = map[string][]sent{}
	}
	if shifts.of[factoryID] == nil {
		shifts.of[factoryID] = run(t, options(factoryID), shift)
	}
	return only(shifts.of[factoryID], source)
}

// shifts are made once for all tests, for they are long.
var shifts struct {
	sync.Mutex

	of map[string][]sent
}

// requireRounds wants kinds to take turns from the first on, one event at least
// the minimum apart and at most the maximum plus one message interval.
func requireRounds(t *testing.T, kinds []string, got []string, times []time.Time, every Interval, slack time.Duration) {
	t.Helper()
	require.Greater(t, len(got), 2*len(kinds))
	last := dayStart
	for i, kind := range got {
		require.Equal(t, kinds[i%len(kinds)], kind, "event %d", i)
		apart := times[i].Sub(last)
		require.GreaterOrEqual(t, apart, every.Min, "event %d", i)
		require.Less(t, apart, every.Max+slack, "event %d", i)
		last = times[i]
	}
}

func TestSensorEventsTakeTurnsAndAreHeld(t *testing.T) {
	for id, p := range Profiles() {
		if id == "factory-a" {
			continue
		}
		t.Run(id, func(t *testing.T) {
			var kinds, got []string
			for _, k := range p.Sensor.Kinds {
				kinds = append(kinds, k.Name)
			}
			var times []time.Time
			held := 0
			previous := ""
			for _, m := range shiftOf(t, id, factory.SourceFactoryState) {
				kind := sensorKind(p, m.state.Sensor)
				if kind != "" && kind != previous {
					got, times = append(got, kind), append(times, m.at)
				}
				if kind != "" {
					held++
				}
				previous = kind
			}
			requireRounds(t, kinds, got, times, p.Sensor.Every, StateInterval)
			each := int(p.Sensor.Hold / StateInterval)
			require.LessOrEqual(t, held, len(got)*each)
			require.Greater(t, held, (len(got)-1)*each, "each held for 30 s, the last one perhaps cut off")
		})
	}
}

func sensorKind(p Profile, s sensorPayload) string {
	usual := map[Reading]Band{Temperature: p.Temperature, Humidity: p.Humidity, Pressure: p.Pressure}
	values := map[Reading]Centi{Temperature: s.Temperature, Humidity: s.Humidity, Pressure: s.Pressure}
	for _, k := range p.Sensor.Kinds {
		band, value := usual[k.Reading], values[k.Reading]
		if value >= k.Low && value <= k.High && (value < band.Base-band.Jitter || value > band.Base+band.Jitter) {
			return k.Name
		}
	}
	return ""
}

func TestAIEventsAreOneMessageAndTakeTurns(t *testing.T) {
	for id, want := range map[string][]string{"factory-b": {"ai_warning"}, "factory-c": {"ai_warning", "ai_critical"}} {
		t.Run(id, func(t *testing.T) {
			p := Profiles()[id]
			var kinds []string
			var times []time.Time
			for _, m := range shiftOf(t, id, factory.SourceFactoryState) {
				ai := m.state.AIResult
				if ai.AbnormalSound == factory.NoSound {
					require.Zero(t, ai.FireScore+ai.FallScore+ai.BendScore)
					continue
				}
				require.Equal(t, p.AI.Sound, ai.AbnormalSound)
				raised := slices.DeleteFunc([]Centi{ai.FireScore, ai.FallScore, ai.BendScore}, func(c Centi) bool { return c == 0 })
				kind := p.AI.Kinds[len(kinds)%len(p.AI.Kinds)]
				require.GreaterOrEqual(t, len(raised), kind.MinScores)
				require.LessOrEqual(t, len(raised), kind.MaxScores)
				for _, score := range raised {
					requireWithin(t, kind.Low, kind.High, score)
					require.Zero(t, score%10, "steps of a tenth")
				}
				kinds, times = append(kinds, kind.Name), append(times, m.at)
			}
			requireRounds(t, want, kinds, times, p.AI.Every, StateInterval)
		})
	}
}

func TestInfraEventsAreOneMessageAndTakeTurns(t *testing.T) {
	for id, want := range map[string][]string{
		"factory-b": {"storage_warning", "device_unavailable", "pods_partial", "nodes_partial"},
		"factory-c": {"pods_all_unready", "nodes_all_not_ready", "network_unreachable", "device_unavailable", "storage_critical"},
	} {
		t.Run(id, func(t *testing.T) {
			p := Profiles()[id]
			var kinds []string
			var times []time.Time
			for _, m := range shiftOf(t, id, factory.SourceInfraState) {
				if kind := infraKind(t, m.infra); kind != "" {
					kinds, times = append(kinds, kind), append(times, m.at)
				}
			}
			// An event that falls due in a gap comes after it.
			longestGap := slices.MaxFunc(p.Gap.Lengths, func(a, b Interval) int { return int(a.Max - b.Max) }).Max
			requireRounds(t, want, kinds, times, p.Infra.Every, InfraInterval+longestGap)
		})
	}
}

// infraKind tells from the message alone what is broken.
func infraKind(t *testing.T, m infraPayload) string {
	t.Helper()
	count := func(match func(n node) bool) (n int) {
		for _, node := range m.Nodes {
			if match(node) {
				n++
			}
		}
		return n
	}
	for name, d := range m.Devices {
		if !d.Available {
			require.Contains(t, deviceNames, name)
			return "device_unavailable"
		}
	}
	last := m.Nodes[len(m.Nodes)-1]
	switch {
	case m.NodeSummary.Ready == 0:
		require.Equal(t, "NodeUnavailable", m.Workloads[0].Status)
		return "nodes_all_not_ready"
	case m.NodeSummary.NotReady > 0:
		require.False(t, last.Ready)
		require.Nil(t, last.DiskUsagePercent, "unknown, never 0")
		return "nodes_partial"
	case count(func(n node) bool { return n.NetworkReachability == "unreachable" }) == len(m.Nodes):
		return "network_unreachable"
	case m.WorkloadSummary.Running == 0:
		requireWithin(t, 2, 8, Centi(m.Workloads[0].RestartCount))
		return "pods_all_unready"
	case m.WorkloadSummary.NotRunning == 1:
		requireWithin(t, 1, 4, Centi(m.Workloads[1].RestartCount))
		return "pods_partial"
	case *last.DiskUsagePercent >= 91_00:
		requireWithin(t, 91_00, 98_00, *last.DiskUsagePercent)
		return "storage_critical"
	case *last.DiskUsagePercent >= 76_00:
		requireWithin(t, 76_00, 84_00, *last.DiskUsagePercent)
		return "storage_warning"
	}
	return ""
}

func TestGapsAreAsLongAsThePlanSaysAndSilent(t *testing.T) {
	for id, p := range Profiles() {
		t.Run(id, func(t *testing.T) {
			infra := shiftOf(t, id, factory.SourceInfraState)
			gaps := 0
			for i := 1; i < len(infra); i++ {
				apart := infra[i].at.Sub(infra[i-1].at)
				if apart == InfraInterval {
					continue
				}
				length := p.Gap.Lengths[gaps%len(p.Gap.Lengths)]
				require.GreaterOrEqual(t, apart, length.Min, "gap %d", gaps)
				require.LessOrEqual(t, apart, length.Max, "gap %d", gaps)
				gaps++
			}
			if id == "factory-a" {
				require.Zero(t, gaps)
				return
			}
			least := int(shift / (p.Gap.Every.Max + InfraInterval))
			require.GreaterOrEqual(t, gaps, least)
			require.LessOrEqual(t, gaps, int(shift/p.Gap.Every.Min))
		})
	}
}

func TestCountsOverAnHour(t *testing.T) {
	for id, c := range map[string]struct{ state, mostInfra, leastInfra int }{
		"factory-a": {1200, 180, 180},
		// At most 5 gaps swallow at most 5 messages each.
		"factory-b": {1200, 180, 155},
		// At most 3 gaps swallow at most 16 messages each.
		"factory-c": {1200, 180, 132},
	} {
		all := run(t, options(id), time.Hour)
		require.Len(t, only(all, factory.SourceFactoryState), c.state, id)
		infra := len(only(all, factory.SourceInfraState))
		require.LessOrEqual(t, infra, c.mostInfra, id)
		require.GreaterOrEqual(t, infra, c.leastInfra, id)
	}
}

func TestADeviceThatIsGoneKeepsTheTimeItWasLastSeen(t *testing.T) {
	var last infraPayload
	found := false
	for _, m := range only(run(t, options("factory-b"), 2*time.Hour), factory.SourceInfraState) {
		for name, d := range m.infra.Devices {
			if !d.Available {
				require.Contains(t, []string{"camera", "microphone"}, name)
				require.Equal(t, last.Devices[name].LastSeenAt, d.LastSeenAt)
				found = true
			} else {
				require.Equal(t, m.at.Format(stampSeconds), *d.LastSeenAt)
			}
		}
		last = m.infra
	}
	require.True(t, found)
}
