package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// riskAt has a good score at each second of the hour.
func riskAt(start time.Time, seconds ...float64) []sample {
	var samples []sample
	for _, second := range seconds {
		samples = append(samples, riskSample(factoryA, start.Add(time.Duration(second*float64(time.Second))), "100", "normal"))
	}
	return samples
}

// every is from, from+3, ... below to.
func every(from, to float64) []float64 {
	var seconds []float64
	for second := from; second < to; second += 3 {
		seconds = append(seconds, second)
	}
	return seconds
}

func riskGaps(gaps []GapWindow) []GapWindow {
	var list []GapWindow
	for _, gap := range gaps {
		if gap.Dataset == RiskScoreDataset {
			list = append(list, gap)
		}
	}
	return list
}

func TestAGapIsLongerThanTwiceTheInterval(t *testing.T) {
	_, _, start := newYear(t)
	for _, c := range []struct {
		name    string
		seconds []float64
		kind    GapType
		length  string
	}{
		{"six seconds are none", append(every(0, 300), every(303, 3600)...), "", ""},
		{"nine seconds", append(every(0, 300), every(306, 3600)...), GapInternal, "9"},
		{"a little more than six", append(every(0, 298), every(303.001, 3600)...), GapInternal, "6.001"},
		{"the hour's start", every(9, 3600), GapHourStart, "9"},
		{"six seconds at the start are none", every(6, 3600), "", ""},
		{"the hour's end", every(0, 3590), GapHourEnd, "12"},
	} {
		gaps := riskGaps(summaryOf(t, riskAt(start, c.seconds...)...).DataQuality.GapWindows)
		if c.kind == "" {
			require.Empty(t, gaps, c.name)
			continue
		}
		require.Len(t, gaps, 1, c.name)
		require.Equal(t, c.kind, gaps[0].GapType, c.name)
		require.Equal(t, c.length, gaps[0].DurationSeconds.String(), c.name)
	}
}

func TestTheInfraStateHasItsOwnRhythm(t *testing.T) {
	_, _, start := newYear(t)
	var samples []sample
	for _, second := range []int{0, 40, 81} {
		samples = append(samples, infraSample(factoryA, start.Add(time.Duration(second)*time.Second), cluster{}))
	}
	var internal []string
	for _, gap := range summaryOf(t, samples...).DataQuality.GapWindows {
		if gap.Dataset == InfraStateDataset && gap.GapType == GapInternal {
			internal = append(internal, gap.DurationSeconds.String())
		}
	}
	require.Equal(t, []string{"41"}, internal, "40 seconds are none")
}

func TestTheTenLongestGapsAreTold(t *testing.T) {
	_, _, start := newYear(t)
	var seconds []float64
	for i := range 30 {
		seconds = append(seconds, float64(i*i)*3)
	}
	quality := summaryOf(t, riskAt(start, seconds...)...).DataQuality
	require.Len(t, quality.GapWindows, 10)
	require.Greater(t, quality.DataGapCount, int64(10))
	for i := 1; i < len(quality.GapWindows); i++ {
		require.False(t, quality.GapWindows[i-1].DurationSeconds.Less(quality.GapWindows[i].DurationSeconds))
	}
}

func TestAGapAcrossAnHoursEdgeIsOne(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	start := day.Window().Start
	settings := DefaultSettings()
	samples := riskAt(start, every(0, 3600-12)...) // 15 s silent before the first edge
	samples = append(samples, riskAt(start, every(3600+12, 7200-4)...)...)
	samples = append(samples, riskAt(start, every(7200+4, 10800)...)...) // 4 + 4 s about the second edge
	daily := mergeSamples(factoryA, day, settings, samples)
	gaps := riskGaps(daily.Gaps)
	require.Len(t, gaps, 3, "the last is the rest of the day")
	require.Equal(t, "27", gaps[0].DurationSeconds.String())
	require.Equal(t, GapInternal, gaps[0].GapType)
	require.Equal(t, "00:59~01:00", gaps[0].TimeRange)
	require.Equal(t, "10", gaps[1].DurationSeconds.String(), "neither part, 6 and 4, is a gap by itself")
	require.Equal(t, GapHourEnd, gaps[2].GapType)
	require.Equal(t, int64(21*3600+2), gaps[2].EndUTC.Unix()-gaps[2].StartUTC.Unix())
}

func TestHoursThatHavePartInALongGapAreCritical(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	settings := DefaultSettings()
	settings.FactoryStateInterval, settings.RiskScoreInterval, settings.InfraStateInterval = time.Minute, time.Minute, time.Minute
	var quiet []sample
	for at := day.Window().Start; at.Before(day.Window().End); at = at.Add(time.Minute) {
		quiet = append(quiet, stateSample(factoryA, at, calm()), riskSample(factoryA, at, "100", "normal"), infraSample(factoryA, at, cluster{}))
	}
	silent := func(from, to time.Duration) FactoryDaily {
		var samples []sample
		start := day.Window().Start
		for _, s := range quiet {
			at := timeIn(s.body)
			if at.Before(start.Add(from)) || !at.Before(start.Add(to)) {
				samples = append(samples, s)
			}
		}
		return mergeByHour(factoryA, day, settings, samples)
	}
	require.Zero(t, silent(0, 0).Pipeline.CriticalGapCount)
	require.Zero(t, silent(90*time.Minute, 93*time.Minute).Pipeline.CriticalGapCount)
	require.Equal(t, int64(1), silent(70*time.Minute, 76*time.Minute).Pipeline.CriticalGapCount)
	require.Equal(t, int64(2), silent(117*time.Minute, 123*time.Minute).Pipeline.CriticalGapCount, "three minutes on each side")
	require.Equal(t, int64(3), silent(110*time.Minute, 190*time.Minute).Pipeline.CriticalGapCount)
	require.Equal(t, "81", silent(110*time.Minute, 190*time.Minute).DataQuality.GapMinutes.String(), "three datasets, one silence")
}

func TestCoveredTimeCountsOnce(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(minute)*60, 0) }
	require.Equal(t, 12*time.Minute, covered([]Span{{at(5), at(10)}, {at(0), at(7)}, {at(6), at(8)}, {at(20), at(22)}}))
	require.Zero(t, covered(nil))
}
