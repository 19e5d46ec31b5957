package simulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

var dayStart = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// sent is a generated message, read back.
type sent struct {
	Message

	at    time.Time
	state statePayload
	infra infraPayload
}

func options(factoryID string) Options {
	return Options{
		FactoryID: factoryID, Profile: Profiles()[factoryID], Seed: 7, InstanceID: "simulator", Speed: 1, Scenario: ScenarioNormal,
	}
}

// run generates a span of virtual time.
func run(t testing.TB, o Options, span time.Duration) []sent {
	t.Helper()
	g, err := NewGenerator(o)
	require.NoError(t, err)
	var all []sent
	for g.Due() < span {
		elapsed := g.Due()
		messages, err := g.Produce(elapsed, dayStart.Add(elapsed))
		require.NoError(t, err)
		for _, m := range messages {
			all = append(all, readBack(t, m))
		}
	}
	return all
}

func readBack(t testing.TB, m Message) sent {
	t.Helper()
	s := sent{Message: m}
	var e struct {
		SourceTimestamp time.Time       `json:"source_timestamp"`
		Payload         json.RawMessage `json:"payload"`
	}
	require.NoError(t, json.Unmarshal(m.Wire, &e))
	s.at = e.SourceTimestamp
	switch m.SourceType {
	case factory.SourceFactoryState:
		require.NoError(t, json.Unmarshal(e.Payload, &s.state))
	case factory.SourceInfraState:
		require.NoError(t, json.Unmarshal(e.Payload, &s.infra))
	}
	return s
}

func only(all []sent, source factory.SourceType) []sent {
	var list []sent
	for _, s := range all {
		if s.SourceType == source {
			list = append(list, s)
		}
	}
	return list
}

func TestEveryMessagePassesThePublisherAndTheCloud(t *testing.T) {
	for id := range Profiles() {
		t.Run(id, func(t *testing.T) {
			seen := map[string]bool{}
			for _, m := range run(t, options(id), time.Hour) {
				require.False(t, seen[m.ID], "duplicate id %s", m.ID)
				seen[m.ID] = true
				outgoing, err := factory.ParseOutgoing(m.Wire)
				require.NoError(t, err)
				require.Equal(t, m.ID, outgoing.MessageID)
				received, err := factory.ParseMessage(m.Wire, m.at)
				require.NoError(t, err)
				require.Equal(t, id, received.FactoryID)
				require.NoError(t, received.CheckTopic(outgoing.Topic()))
				var value any
				decoder := json.NewDecoder(strings.NewReader(string(m.Wire)))
				decoder.UseNumber()
				require.NoError(t, decoder.Decode(&value))
				again, err := factory.EncodeWire(value)
				require.NoError(t, err)
				require.Equal(t, string(again), string(m.Wire), "canonical")
			}
		})
	}
}

func TestFactoryASendsThreeHealthyNodesOfAPhysicalCluster(t *testing.T) {
	all := run(t, options("factory-a"), time.Hour)
	require.Len(t, only(all, factory.SourceFactoryState), 1200)
	infra := only(all, factory.SourceInfraState)
	require.Len(t, infra, 180)
	for _, m := range infra {
		require.Equal(t, nodeSummary{Total: 3, Ready: 3}, m.infra.NodeSummary)
		require.Equal(t, workloadSummary{Total: 6, Running: 6}, m.infra.WorkloadSummary)
		require.Zero(t, m.infra.Heartbeat.PublishSequence, "only dummies count")
		for _, name := range deviceNames {
			require.True(t, m.infra.Devices[name].Available)
		}
	}
	for _, m := range only(all, factory.SourceFactoryState) {
		require.Contains(t, m.ID, ":worker2:")
		requireWithin(t, 24_00, 25_00, m.state.Sensor.Temperature)
		requireWithin(t, 43_00, 47_00, m.state.Sensor.Humidity)
		requireWithin(t, 1012_50, 1013_50, m.state.Sensor.Pressure)
		require.Equal(t, aiPayload{SampleCount: 1, AbnormalSound: "none"}, m.state.AIResult)
		require.Contains(t, string(m.Wire), `"input_module_type":"sensor"`)
	}
}

func requireWithin(t *testing.T, low, high, value Centi) {
	t.Helper()
	require.GreaterOrEqual(t, value, low)
	require.LessOrEqual(t, value, high)
}

func TestMessagesComeAtAFixedRate(t *testing.T) {
	all := run(t, options("factory-b"), time.Hour)
	state := only(all, factory.SourceFactoryState)
	require.Len(t, state, 1200)
	for i, m := range state {
		require.Equal(t, dayStart.Add(time.Duration(i)*StateInterval), m.at)
	}
}

func TestTheSameSeedGivesTheSameMessages(t *testing.T) {
	wires := func(o Options) (list []string) {
		for _, m := range run(t, o, 2*time.Hour) {
			list = append(list, string(m.Wire))
		}
		return list
	}
	first := wires(options("factory-c"))
	require.Equal(t, first, wires(options("factory-c")))
	other := options("factory-c")
	other.Seed++
	require.NotEqual(t, first, wires(other))
}

func TestFactoriesWithTheSameSeedDiffer(t *testing.T) {
	one, two := options("factory-b"), options("factory-b")
	two.FactoryID = "factory-b2"
	a, b := run(t, one, time.Minute), run(t, two, time.Minute)
	require.NotEqual(t, a[0].state, b[0].state)
}

func TestReadingsHaveTwoDecimalsOnTheWire(t *testing.T) {
	m := run(t, options("factory-b"), time.Second)[0]
	require.Regexp(t, `"temperature_celsius_avg":\d+\.\d\d\b`, string(m.Wire))
	require.Contains(t, string(m.Wire), `"fire_score":0.00`)
}

func TestTicksThatWereMissedAreLeftOut(t *testing.T) {
	g, err := NewGenerator(options("factory-a"))
	require.NoError(t, err)
	_, err = g.Produce(0, dayStart)
	require.NoError(t, err)
	late := 100*time.Second + 500*time.Millisecond
	messages, err := g.Produce(late, dayStart.Add(late))
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Equal(t, dayStart.Add(99*time.Second), readBack(t, messages[0]).at)
	require.Equal(t, dayStart.Add(100*time.Second), readBack(t, messages[1]).at)
	require.Equal(t, 102*time.Second, g.Due(), "still on the beat")
}

func TestTicksOfAFastScheduleAreCaughtUpWithinASecond(t *testing.T) {
	s := schedule{every: 100 * time.Millisecond}
	var ticks []time.Duration
	for at, ok := s.tick(950 * time.Millisecond); ok; at, ok = s.tick(950 * time.Millisecond) {
		ticks = append(ticks, at)
	}
	require.Len(t, ticks, 10)
	require.Equal(t, 900*time.Millisecond, ticks[9])
	at, ok := s.tick(5 * time.Second)
	require.True(t, ok)
	require.Equal(t, 5*time.Second, at, "too late for those between")
}

func TestFasterMessagesHaveFractionsAndDistinctIDs(t *testing.T) {
	o := options("factory-b")
	o.Speed = 300
	all := run(t, o, 10*time.Second)
	require.Len(t, only(all, factory.SourceFactoryState), 1000)
	seen := map[string]bool{}
	for _, m := range all {
		require.False(t, seen[m.ID])
		seen[m.ID] = true
		_, err := factory.ParseMessage(m.Wire, m.at)
		require.NoError(t, err)
	}
	state := only(all, factory.SourceFactoryState)
	require.Contains(t, state[len(state)-1].ID, "2026-11-30T00:00:09.990000Z")
}

func TestNodeDownScenario(t *testing.T) {
	o := options("factory-b")
	o.Scenario = ScenarioNodeDown
	m := only(run(t, o, time.Minute), factory.SourceInfraState)[0].infra
	require.Equal(t, nodeSummary{Total: 2, Ready: 1, NotReady: 1}, m.NodeSummary)
	require.Equal(t, node{NodeID: "worker1", Role: "worker", NetworkReachability: "not_ready"}, m.Nodes[1])
	require.Equal(t, workloadSummary{Total: 2, NotRunning: 2}, m.WorkloadSummary)
	require.Equal(t, "NodeUnavailable", m.Workloads[0].Status)
	require.Equal(t, "node_down", m.Heartbeat.DummyScenario)

	o.DownNodes = []string{"master"}
	m = only(run(t, o, time.Minute), factory.SourceInfraState)[0].infra
	require.False(t, m.Nodes[0].Ready)
	require.True(t, m.Nodes[1].Ready)
	require.Equal(t, 2, m.WorkloadSummary.Running, "they run on the other node")
}

func TestOptionsAreRefusedTogether(t *testing.T) {
	o := options("factory-b")
	o.FactoryID = "../x"
	o.Speed = 0
	o.Scenario = "flood"
	o.DownNodes = []string{"moon"}
	o.Profile.Humidity.Jitter = -1
	o.Profile.AI.Every = Interval{Min: 5, Max: 1}
	_, err := NewGenerator(o)
	for _, part := range []string{"factory_id", "speed", "scenario", "moon", "humidity jitter", "AI event interval"} {
		require.ErrorContains(t, err, part)
	}
}

func TestSequenceCountsInfraMessagesFromTheLastRun(t *testing.T) {
	o := options("factory-b")
	o.Sequence = 41
	infra := only(run(t, o, time.Minute), factory.SourceInfraState)
	require.Len(t, infra, 3)
	for i, m := range infra {
		require.EqualValues(t, 42+i, m.infra.Heartbeat.PublishSequence)
	}
}

func BenchmarkProduce(b *testing.B) {
	g, err := NewGenerator(options("factory-c"))
	require.NoError(b, err)
	messages := 0
	for b.Loop() {
		elapsed := g.Due()
		produced, err := g.Produce(elapsed, dayStart.Add(elapsed))
		if err != nil {
			b.Fatal(err)
		}
		messages += len(produced)
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}

func ExampleCenti() {
	fmt.Println(Centi(24_50), Centi(-5), Centi(1013_07))
	// Output: 24.50 -0.05 1013.07
}
