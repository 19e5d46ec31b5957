package monitoring

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

func added(t require.TestingT, observations ...Observation) Minute {
	var m Minute
	for _, o := range observations {
		next, err := m.Add(o)
		require.NoError(t, err)
		m = next
	}
	return m
}

func temperatures(values ...string) []Observation {
	observations := make([]Observation, len(values))
	for i, v := range values {
		metrics := map[string]*exact.Decimal{"temperature": nil}
		if v != "" {
			metrics["temperature"] = number(v)
		}
		observations[i] = resourceAt(noon.Add(time.Duration(i)*time.Second), "celsius", metrics)
	}
	return observations
}

func TestMinuteSumsMeansAndMaximaAreExact(t *testing.T) {
	m := added(t, temperatures("0.1", "0.2", "", "0.4")...)
	require.Equal(t, noon, m.Start)
	require.Equal(t, int64(4), m.SampleCount)
	require.Len(t, m.Parts, 1)
	require.Len(t, m.Parts[0].Series, 1)
	r := m.Parts[0].Series[0]
	require.Equal(t, int64(3), r.ValidCount, "a null is no valid measurement")
	require.Equal(t, "0.7", r.Sum.String())
	require.Equal(t, "0.233333333", r.Mean.String())
	require.Equal(t, "0.4", r.Max.String())
}

func TestMinuteOfNullsOnlyHasNoMeanOrMaximum(t *testing.T) {
	r := added(t, temperatures("", "")...).Parts[0].Series[0]
	require.Zero(t, r.ValidCount)
	require.Nil(t, r.Mean)
	require.Nil(t, r.Max)
}

func TestMaximumOfNegativesIsNegative(t *testing.T) {
	require.Equal(t, "-2", added(t, temperatures("-3", "-2", "-5")...).Parts[0].Series[0].Max.String())
}

func TestMeanIsRoundedHalfEven(t *testing.T) {
	require.Equal(t, "0", added(t, temperatures("0", "0.000000001")...).Parts[0].Series[0].Mean.String())
	require.Equal(t, "0.000000002", added(t, temperatures("0", "0.000000003")...).Parts[0].Series[0].Mean.String())
}

func TestAddLeavesTheMinuteItStartsFromAlone(t *testing.T) {
	o := temperatures("1", "2", "3")
	before := added(t, o[0])
	copied, err := json.Marshal(before)
	require.NoError(t, err)
	_, err = before.Add(o[1])
	require.NoError(t, err)
	_, err = before.Add(o[2])
	require.NoError(t, err)
	after, err := json.Marshal(before)
	require.NoError(t, err)
	require.JSONEq(t, string(copied), string(after))
}

func TestAnObservationCountsOnce(t *testing.T) {
	o := temperatures("1", "2")
	require.Equal(t, added(t, o[0], o[1]), added(t, o[0], o[1], o[1], o[0]))
}

func TestAChangedUnitStartsAnotherSeries(t *testing.T) {
	value := map[string]*exact.Decimal{"temperature": number("20")}
	m := added(t, resourceAt(noon, "celsius", value), resourceAt(noon.Add(1), "kelvin", value), resourceAt(noon.Add(2), "celsius", value))
	require.Equal(t, int64(3), m.SampleCount)
	require.Len(t, m.Parts, 1)
	require.Len(t, m.Parts[0].Series, 2)
	require.Equal(t, int64(2), m.Parts[0].Series[0].ValidCount)
	require.Equal(t, "kelvin", m.Parts[0].Series[1].Unit)
}

func TestAChangedIdentityStartsAnotherPart(t *testing.T) {
	value := map[string]*exact.Decimal{"temperature": number("20")}
	other := resourceAt(noon.Add(1), "celsius", value)
	other.ResourceType = "freezer"
	m := added(t, resourceAt(noon, "celsius", value), other)
	require.Equal(t, int64(2), m.SampleCount)
	require.Len(t, m.Parts, 2)
	require.Equal(t, "freezer", m.Parts[1].ResourceType)
}

func TestAMinuteIsBounded(t *testing.T) {
	var m Minute
	for i := range maxParts {
		o := resourceAt(noon.Add(time.Duration(i)), "celsius", nil)
		o.ResourceType = fmt.Sprint("type", i)
		var err error
		m, err = m.Add(o)
		require.NoError(t, err)
	}
	o := resourceAt(noon.Add(time.Second), "celsius", nil)
	full, err := m.Add(o)
	require.ErrorIs(t, err, ErrMinuteFull)
	require.Equal(t, m, full)
	o.ResourceType = "type3"
	_, err = m.Add(o)
	require.NoError(t, err, "what it knows already still counts")
}

func TestUnitsOfAMinuteAreBounded(t *testing.T) {
	var m Minute
	var err error
	for i := range maxSeries + 1 {
		m, err = m.Add(resourceAt(noon.Add(time.Duration(i)), fmt.Sprint("unit", i), map[string]*exact.Decimal{"temperature": nil}))
	}
	require.ErrorIs(t, err, ErrMinuteFull)
}

func TestMinuteMatchesTheRationalsOfItsSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-1e15+1, 1e15-1), 1, 40).Draw(t, "nanounits")
		sum, highest := new(big.Rat), new(big.Rat).SetFrac64(values[0], 1e9)
		var m Minute
		for i, v := range values {
			value := exact.FromInt(v).Mul(exact.MustParse("1e-9"))
			next, err := m.Add(resourceAt(noon.Add(time.Duration(i)), "celsius", map[string]*exact.Decimal{"temperature": &value}))
			require.NoError(t, err)
			m = next
			r := new(big.Rat).SetFrac64(v, 1e9)
			sum.Add(sum, r)
			if r.Cmp(highest) > 0 {
				highest = r
			}
		}
		got := m.Parts[0].Series[0]
		require.Equal(t, int64(len(values)), got.ValidCount)
		require.Zero(t, rational(t, got.Sum).Cmp(sum))
		require.Zero(t, rational(t, *got.Max).Cmp(highest))
		off := new(big.Rat).Quo(sum, new(big.Rat).SetInt64(int64(len(values))))
		off.Sub(off, rational(t, *got.Mean)).Abs(off)
		require.LessOrEqual(t, off.Cmp(big.NewRat(1, 2e9)), 0)
	})
}

func rational(t require.TestingT, d exact.Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(d.String())
	require.True(t, ok)
	return r
}

func TestMinuteSurvivesJSON(t *testing.T) {
	m := added(t, temperatures("0.1", "", "3")...)
	body, err := json.Marshal(m)
	require.NoError(t, err)
	var again Minute
	require.NoError(t, json.Unmarshal(body, &again))
	copied, err := json.Marshal(again)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(copied))
}

func TestKeysOfSourcesAndMinutes(t *testing.T) {
	require.Equal(t, "SOURCE#a%23b%25", SourceSK("a#b%"))
	require.Equal(t, "OWNER#user:ann#SOURCE#a%23b", MinutePK("user:ann", "a#b"))
	require.Equal(t, "MINUTE#2026-11-30T12:00Z", MinuteSK(noon.In(time.FixedZone("KST", 9*3600)).Add(59*time.Second)))
	at, err := ParseMinuteSK("MINUTE#2026-11-30T12:00Z")
	require.NoError(t, err)
	require.Equal(t, noon, at)
	for _, text := range []string{"", "MINUTE#", "MINUTE#2026-11-30T12:00:00Z", "SOURCE#2026-11-30T12:00Z", "MINUTE#2026-13-30T12:00Z"} {
		_, err := ParseMinuteSK(text)
		require.Error(t, err, text)
	}
}

func FuzzParseMinuteSK(f *testing.F) {
	f.Add("MINUTE#2026-11-30T12:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := ParseMinuteSK(text); err == nil {
			require.Equal(t, text, MinuteSK(at))
		}
	})
}

func BenchmarkMinuteAdd(b *testing.B) {
	metrics := map[string]*exact.Decimal{}
	for i, d := range AgentMetrics {
		value := exact.FromInt(int64(i))
		metrics[d.Key] = &value
	}
	m := added(b, agentAt(noon, metrics))
	o := agentAt(noon.Add(time.Second), metrics)
	for b.Loop() {
		if _, err := m.Add(o); err != nil {
			b.Fatal(err)
		}
	}
}
