package observability

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

func drawPending(t *rapid.T) Pending {
	p := Pending{
		AppID: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app"), SignalID: rapid.StringMatching(`[a-z]{8}`).Draw(t, "id"),
		Timestamp: noon.Add(time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, "at"))),
		Protocol:  rapid.SampledFrom([]Protocol{AIGP, ACP, ALP, UOP}).Draw(t, "protocol"),
		Type:      rapid.SampledFrom([]Type{Request, Response, Failure}).Draw(t, "type"), Status: rapid.SampledFrom([]Status{StatusOK, StatusError}).Draw(t, "status"),
		Tokens: Tokens{Input: rapid.Int64Range(0, MaxTokens).Draw(t, "input")},
	}
	p.TotalTokens = p.Sum()
	p.CostUSD = decimal(fmt.Sprintf("0.%030d", rapid.Int64Range(0, 1<<60).Draw(t, "cost")))
	p.DurationMS = decimal(fmt.Sprintf("%d.5", rapid.Int64Range(0, 200_000).Draw(t, "duration")))
	return p
}

// TestPackingKeepsEverySignalOnceAndFitsATransaction holds for any signals.
func TestPackingKeepsEverySignalOnceAndFitsATransaction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		signals := rapid.SliceOfN(rapid.Custom(drawPending), 0, 60).Draw(t, "signals")
		limit := rapid.IntRange(4, 100).Draw(t, "limit")
		want := Counters{}
		for _, s := range signals {
			want.Count(s)
		}
		have := map[Granularity]Counters{Hourly: {}, Daily: {}, Monthly: {}}
		packed := 0
		for _, b := range Pack(slices.Clone(signals), limit) {
			additions := b.Additions()
			if n := len(b.Signals) + len(additions); n > limit || len(b.Signals) == 0 {
				t.Fatalf("a batch of %d writes, limit %d", n, limit)
			}
			packed += len(b.Signals)
			for _, s := range b.Signals {
				if s.AppID != b.AppID {
					t.Fatalf("a batch of two applications")
				}
			}
			for _, a := range additions {
				have[a.Period.Granularity].Add(a.Counters)
			}
		}
		if packed != len(signals) {
			t.Fatalf("packed %d of %d", packed, len(signals))
		}
		for g, counters := range have {
			if drifts := counters.Drifts(want); len(drifts) > 0 {
				t.Fatalf("%s: %v", g, drifts)
			}
		}
	})
}

func TestSignalsOfAnHourShareItsAggregates(t *testing.T) {
	var signals []Pending
	for n := range 97 {
		s := valid()
		s.SignalID = fmt.Sprint(n)
		signals = append(signals, s.Pending())
	}
	require.Len(t, Pack(signals, 100), 1, "97 signals and 3 aggregates")
	require.Len(t, Pack(append(signals, signals[0]), 100), 2)
}

func TestWithoutDropsPlaces(t *testing.T) {
	b := Batch{AppID: "a", Signals: []Pending{{SignalID: "0"}, {SignalID: "1"}, {SignalID: "2"}}}
	require.Equal(t, []Pending{{SignalID: "1"}}, b.Without(map[int]bool{0: true, 2: true}).Signals)
}

// TestPercentilesLieWithinTheirStatedBounds compares with the true percentile.
func TestPercentilesLieWithinTheirStatedBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, 150_000), 1, 200).Draw(t, "durations")
		p := rapid.Int64Range(1, 100).Draw(t, "p")
		c := Counters{}
		for _, d := range durations {
			duration := exact.FromInt(d)
			c.Count(Pending{DurationMS: &duration})
		}
		slices.Sort(durations)
		rank := (int64(len(durations))*p + 99) / 100
		truth := exact.FromInt(durations[rank-1])
		got := c.Percentile(p)
		if truth.Less(got.Lower) || got.Value.Less(got.Lower) {
			t.Fatalf("%s is below %s", truth, got.Lower)
		}
		if got.Upper == nil {
			if !exact.FromInt(100_000).Less(truth) {
				t.Fatalf("%s has a bucket", truth)
			}
			return
		}
		if got.Upper.Less(truth) || got.Upper.Less(got.Value) {
			t.Fatalf("%s or %s is above %s", truth, got.Value, got.Upper)
		}
		width := got.Upper.Sub(got.Lower)
		if got.Upper.Cmp(exact.FromInt(1)) > 0 && exact.MustParse("0.6").Mul(*got.Upper).Less(width) {
			t.Fatalf("a bucket of %s up to %s is wider than stated", width, got.Upper)
		}
	})
	require.Nil(t, Counters{}.Percentile(95))
}

func TestDurationsFallIntoTheirBucket(t *testing.T) {
	for duration, want := range map[string]string{
		"0": "lat_1", "1": "lat_1", "1.000001": "lat_2", "2": "lat_2", "4.9": "lat_5", "99999.9": "lat_100000", "100000": "lat_100000", "100000.000001": "lat_inf",
	} {
		require.Equal(t, want, LatencyCounter(exact.MustParse(duration)), duration)
	}
}

func TestRatesAreComputedFromSums(t *testing.T) {
	c := Counters{}
	for n := range 3 {
		p := Pending{Protocol: ACP, Type: Request, CostUSD: decimal("0.1"), DurationMS: decimal("10")}
		if n == 0 {
			p.Status = StatusError
		}
		c.Count(p)
	}
	rates := c.Rates()
	require.Equal(t, "33.3333", rates.ErrorRate.String())
	require.Equal(t, "10", rates.MeanDurationMS.String())
	require.Equal(t, "0.1", rates.MeanCostUSD.String())
	require.Equal(t, "3", c.Of("acp_request_count").String())
	require.Equal(t, Rates{}, Counters{}.Rates())
}

func TestCountersAreToldFromKeys(t *testing.T) {
	for name, want := range map[string]bool{
		"signal_count": true, "lat_5": true, "lat_inf": true, "lat_3": false, "aigp_request_count": true, "http_request_count": false, "expires_at": false, "PK": false,
	} {
		require.Equal(t, want, IsCounter(name), name)
	}
}

func TestPeriodsEndAtMonthAndYearEnds(t *testing.T) {
	last := time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for _, c := range []struct {
		g                   Granularity
		sk, next, gsi1PK, a string
	}{
		{Hourly, "AGG#HOURLY#2026-12-31#23", "AGG#HOURLY#2027-01-01#00", "AGG#2026-12-31", "APP#a#23"},
		{Daily, "AGG#DAILY#2026-12-31", "AGG#DAILY#2027-01-01", "AGG#2026-12-31", "APP#a"},
		{Monthly, "AGG#MONTHLY#2026-12", "AGG#MONTHLY#2027-01", "AGG#2026-12", "APP#a"},
	} {
		p := PeriodOf(c.g, last.In(time.FixedZone("", 9*3600)))
		require.Equal(t, c.sk, p.SK())
		require.Equal(t, c.next, p.Next().SK())
		require.Equal(t, p.Next(), PeriodOf(c.g, last.Add(1)))
		pk, sk := p.GSI1("a")
		require.Equal(t, c.gsi1PK, pk)
		require.Equal(t, c.a, sk)
		parsed, ok := ParsePeriodSK(p.SK())
		require.True(t, ok)
		require.Equal(t, p, parsed)
	}
	require.Len(t, PeriodOf(Monthly, time.Date(2028, 2, 10, 0, 0, 0, 0, time.UTC)).Within(Daily), 29)
	require.Len(t, PeriodOf(Daily, last).Within(Hourly), 24)
	_, ok := ParsePeriodSK("SIG#x")
	require.False(t, ok)
}
