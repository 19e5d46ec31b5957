package factory

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

// requireSoundRisk wants what holds for every judgement.
func requireSoundRisk(t require.TestingT, risk *Risk) {
	if risk == nil {
		return
	}
	for _, score := range []exact.Decimal{risk.Score, risk.BaseScore} {
		require.True(t, score.Sign() >= 0 && perfect.AtLeast(score), score)
		require.True(t, score.Equal(score.Round(2)), score)
	}
	require.True(t, risk.BaseScore.AtLeast(risk.Score))
	require.Equal(t, LevelOf(risk.Score), risk.Level)
	require.Equal(t, LevelOf(risk.BaseScore), risk.BaseLevel)
	require.LessOrEqual(t, len(risk.TopCauses), maxTopCauses)
	require.NotNil(t, risk.TopCauses)
	require.NotNil(t, risk.Gates)
	for _, gate := range risk.Gates {
		highest := warningCap
		if gate.Level == LevelDanger {
			highest = dangerCap
		}
		require.True(t, highest.AtLeast(risk.Score), gate.Name)
	}
	require.True(t, slices.IsSortedFunc(risk.TopCauses, func(a, b Cause) int {
		if a.Severity != b.Severity {
			return levelRank[b.Severity] - levelRank[a.Severity]
		}
		return b.Contribution.Cmp(a.Contribution)
	}))
}

// scene is everything that a judgement depends on, in plain numbers: measured
// values in ten-thousandths, nil for unknown.
type scene struct {
	temperature, humidity, pressure *int64
	fire, fall, bend                *int64
	sound                           bool
	samples                         int64
	hasInfra                        bool
	nodesTotal, nodesReady          int64
	podsTotal, podsReady            int64
	disks                           []*int64
	networks                        []string
	devices                         []string // "", "up" or "down" for each required device
	age                             *int64
}

func drawScene(t *rapid.T) scene {
	optional := func(name string, low, high int64) *int64 {
		if rapid.IntRange(0, 9).Draw(t, name+" known") == 0 {
			return nil
		}
		value := rapid.Int64Range(low, high).Draw(t, name)
		return &value
	}
	s := scene{
		temperature: optional("temperature", 200000, 450000), humidity: optional("humidity", 500000, 1000000), pressure: optional("pressure", 9500000, 10700000),
		fire: optional("fire", -1000, 12000), fall: optional("fall", -1000, 12000), bend: optional("bend", -1000, 12000),
		sound: rapid.Bool().Draw(t, "sound"), samples: rapid.Int64Range(0, 2).Draw(t, "samples"),
		hasInfra:   rapid.IntRange(0, 7).Draw(t, "infra") > 0,
		nodesTotal: rapid.Int64Range(0, 7).Draw(t, "nodes"), podsTotal: rapid.Int64Range(0, 20).Draw(t, "pods"),
		age: optional("age", -10, 400),
	}
	s.nodesReady = rapid.Int64Range(0, s.nodesTotal+1).Draw(t, "nodes ready")
	s.podsReady = rapid.Int64Range(0, s.podsTotal+1).Draw(t, "pods ready")
	for range rapid.IntRange(0, 5).Draw(t, "listed") {
		s.disks = append(s.disks, optional("disk", 600000, 1000000))
		s.networks = append(s.networks, rapid.SampledFrom([]string{"ok", "reachable", "ready", "unknown", "not_ready", "unreachable", "odd"}).Draw(t, "network"))
	}
	for range RequiredDevices {
		s.devices = append(s.devices, rapid.SampledFrom([]string{"", "up", "down"}).Draw(t, "device"))
	}
	return s
}

func units(value *int64) *exact.Decimal {
	if value == nil {
		return nil
	}
	d := exact.FromInt(*value).Quo(exact.FromInt(10000), 4)
	return &d
}

func (s scene) judge() Risk {
	state := FactoryState{
		TemperatureCelsius: units(s.temperature), HumidityPercent: units(s.humidity), PressureHPA: units(s.pressure),
		FireScore: units(s.fire), FallScore: units(s.fall), BendScore: units(s.bend), AbnormalSound: NoSound, SampleCount: s.samples,
	}
	if s.sound {
		state.AbnormalSound = "scream"
	}
	var infra *InfraState
	if s.hasInfra {
		infra = &InfraState{NodesTotal: s.nodesTotal, NodesReady: s.nodesReady, PodsTotal: s.podsTotal, PodsReady: s.podsReady, Devices: map[string]Device{}}
		for i := range s.disks {
			infra.Nodes = append(infra.Nodes, Node{NodeID: fmt.Sprint(i), DiskUsagePercent: units(s.disks[i]), NetworkReachability: s.networks[i]})
		}
		for i, name := range RequiredDevices {
			if s.devices[i] != "" {
				infra.Devices[name] = Device{Available: s.devices[i] == "up"}
			}
		}
	}
	return EvaluateRisk(state, infra, PipelineStatus{Status: healthOfAge(s.age), LatestInfraStateAgeSeconds: s.age})
}

func TestEveryJudgementIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		risk := s.judge()
		requireSoundRisk(t, &risk)
		again, err := EncodeJSON(s.judge())
		require.NoError(t, err)
		first, err := EncodeJSON(risk)
		require.NoError(t, err)
		require.Equal(t, string(first), string(again), "the order of causes is deterministic")
	})
}

// worsenings change one input for the worse, each in its own dimension.
var worsenings = map[string]func(*rapid.T, *scene){
	"temperature": func(t *rapid.T, s *scene) { s.temperature = raised(t, s.temperature, 250000) },
	"humidity":    func(t *rapid.T, s *scene) { s.humidity = raised(t, s.humidity, 250000) },
	"pressure": func(t *rapid.T, s *scene) {
		if s.pressure == nil {
			return
		}
		step := rapid.Int64Range(0, 1000000).Draw(t, "step")
		if *s.pressure < 10100000 {
			step = -step
		}
		value := *s.pressure + step
		s.pressure = &value
	},
	"fire score":   func(t *rapid.T, s *scene) { s.fire = raised(t, orLow(s.fire), 13000) },
	"fall score":   func(t *rapid.T, s *scene) { s.fall = raised(t, orLow(s.fall), 13000) },
	"bend score":   func(t *rapid.T, s *scene) { s.bend = raised(t, orLow(s.bend), 13000) },
	"sound":        func(_ *rapid.T, s *scene) { s.sound = true },
	"sample count": func(_ *rapid.T, s *scene) { s.samples = 0 },
	"nodes ready":  func(t *rapid.T, s *scene) { s.nodesReady = rapid.Int64Range(0, s.nodesReady).Draw(t, "fewer") },
	"pods ready":   func(t *rapid.T, s *scene) { s.podsReady = rapid.Int64Range(0, s.podsReady).Draw(t, "fewer") },
	"nodes total":  func(t *rapid.T, s *scene) { s.nodesTotal += rapid.Int64Range(0, 5).Draw(t, "more") },
	"pods total":   func(t *rapid.T, s *scene) { s.podsTotal += rapid.Int64Range(0, 5).Draw(t, "more") },
	"disk": func(t *rapid.T, s *scene) {
		if i := anyOf(t, len(s.disks)); i >= 0 {
			s.disks[i] = raised(t, orLow(s.disks[i]), 1100000)
		}
	},
	"network": func(t *rapid.T, s *scene) {
		if i := anyOf(t, len(s.networks)); i >= 0 {
			s.networks[i] = "unreachable"
		}
	},
	"device": func(t *rapid.T, s *scene) { s.devices[anyOf(t, len(s.devices))] = "down" },
	"age": func(t *rapid.T, s *scene) {
		s.age = raised(t, s.age, 400)
	},
}

func raised(t *rapid.T, value *int64, by int64) *int64 {
	if value == nil {
		return nil
	}
	higher := *value + rapid.Int64Range(0, by).Draw(t, "rise")
	return &higher
}

// orLow takes an unknown value as one that can't be any better.
func orLow(value *int64) *int64 {
	if value == nil {
		return new(int64)
	}
	return value
}

func anyOf(t *rapid.T, count int) int {
	if count == 0 {
		return -1
	}
	return rapid.IntRange(0, count-1).Draw(t, "which")
}

func (s scene) clone() scene {
	s.disks, s.networks, s.devices = slices.Clone(s.disks), slices.Clone(s.networks), slices.Clone(s.devices)
	return s
}

func TestWorseningOneInputNeverRaisesTheScore(t *testing.T) {
	for name, worsen := range worsenings {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				before := drawScene(t)
				after := before.clone()
				worsen(t, &after)
				better, worse := before.judge(), after.judge()
				require.True(t, better.Score.AtLeast(worse.Score), "%s, then %s", better.Score, worse.Score)
				require.True(t, better.BaseScore.AtLeast(worse.BaseScore))
				require.GreaterOrEqual(t, levelRank[worse.Level], levelRank[better.Level])
			})
		})
	}
}

// recomputed is the base score by fractions of whole numbers, straight from the
// table of the design and without the code under test.
func (s scene) recomputed() string {
	base := big.NewRat(100, 1)
	deduct := func(weight int64, ratio *big.Rat) {
		if ratio.Sign() <= 0 {
			return
		}
		if ratio.Cmp(big.NewRat(1, 1)) > 0 {
			ratio = big.NewRat(1, 1)
		}
		contribution, _ := new(big.Rat).SetString(halfEven(new(big.Rat).Mul(big.NewRat(weight, 1), ratio), 2))
		base.Sub(base, contribution)
	}
	linear := func(weight int64, value *int64, from, to int64) {
		if value != nil {
			deduct(weight, big.NewRat(*value-from*10000, (to-from)*10000))
		}
	}
	linear(10, s.temperature, 32, 38)
	linear(5, s.humidity, 70, 85)
	linear(5, s.pressure, 990, 970)
	linear(5, s.pressure, 1030, 1050)
	deduct(15, s.aiShare())
	if s.hasInfra {
		s.recomputeInfra(deduct, linear)
	}
	switch {
	case s.age == nil || *s.age > 120:
		deduct(10, big.NewRat(1, 1))
	default:
		deduct(10, big.NewRat(*s.age-60, 60))
	}
	if base.Sign() < 0 {
		return "0"
	}
	return halfEven(base, 2)
}

func (s scene) aiShare() *big.Rat {
	highest := big.NewRat(0, 1)
	for _, score := range []*int64{s.fire, s.fall, s.bend} {
		if score != nil && big.NewRat(*score, 10000).Cmp(highest) > 0 {
			highest = big.NewRat(*score, 10000)
		}
	}
	if s.sound {
		highest.Add(highest, big.NewRat(5, 100))
	}
	return highest
}

func (s scene) recomputeInfra(deduct func(int64, *big.Rat), linear func(weight int64, value *int64, from, to int64)) {
	if s.nodesTotal > 0 {
		deduct(20, big.NewRat(s.nodesTotal-s.nodesReady, s.nodesTotal))
	}
	if s.podsTotal > 0 {
		deduct(15, big.NewRat(s.podsTotal-s.podsReady, s.podsTotal))
	}
	var present, down, known, bad int64
	for _, device := range s.devices {
		if device != "" {
			present++
		}
		if device == "down" {
			down++
		}
	}
	var fullest *int64
	for i, network := range s.networks {
		if network != "unknown" {
			known++
		}
		if !slices.Contains([]string{"unknown", "ok", "ready", "reachable"}, network) {
			bad++
		}
		if disk := s.disks[i]; disk != nil && (fullest == nil || *disk > *fullest) {
			fullest = disk
		}
	}
	if present > 0 {
		deduct(10, big.NewRat(down, present))
	}
	linear(5, fullest, 75, 90)
	if known > 0 {
		deduct(5, big.NewRat(bad, known))
	}
}

// gatedScore is the score by the table of gates.
func (s scene) gatedScore(base exact.Decimal) exact.Decimal {
	score := base
	cap := func(condition bool, limit int64) {
		if condition {
			score = exact.Min(score, exact.FromInt(limit))
		}
	}
	ai := s.aiShare()
	if s.sound {
		ai.Sub(ai, big.NewRat(5, 100))
	}
	atLeast := func(hundredths int64) bool { return ai.Cmp(big.NewRat(hundredths, 100)) >= 0 }
	cap(s.temperature != nil && *s.temperature >= 380000, 84)
	cap(s.humidity != nil && *s.humidity >= 850000, 84)
	cap(atLeast(95), 49)
	cap(atLeast(80) || (s.sound && atLeast(60)), 84)
	if s.hasInfra {
		cap(s.nodesTotal > s.nodesReady, 84)
		cap(s.nodesTotal > 0 && s.nodesReady == 0, 0)
		cap(s.podsTotal > s.podsReady, 84)
		cap(s.podsTotal > 0 && s.podsReady == 0, 49)
		cap(slices.Contains(s.devices, "down"), 84)
		cap(s.devices[0] == "down" && s.samples == 0, 49)
	}
	cap(s.age == nil || *s.age > 120, 49)
	cap(s.age != nil && *s.age > 60, 84)
	cap(s.age != nil && *s.age > 300, 0)
	return score
}

func TestTheScoreAgreesWithAnIndependentComputation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		risk := s.judge()
		require.Equal(t, s.recomputed(), risk.BaseScore.String())
		require.Equal(t, s.gatedScore(risk.BaseScore).String(), risk.Score.String())
	})
}

func BenchmarkEvaluateRisk(b *testing.B) {
	latest := applied(b, noon, envelope(SourceInfraState, "cluster", "2026-05-20T11:59:50Z", clusterPayload), envelope(SourceFactoryState, "arm", "2026-05-20T11:59:59Z", climatePayload))
	b.ReportAllocs()
	for b.Loop() {
		if EvaluateRisk(*latest.FactoryState, latest.InfraState, *latest.PipelineStatus).Level != LevelSafe {
			b.Fatal("wrong level")
		}
	}
}
