package report

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/report/reporttest"
)

type cloudBody struct {
	half string
	body []byte
}

// cloudBodiesOf are the bodies of objects by half.
func cloudBodiesOf(all []reporttest.Object) []cloudBody {
	bodies := make([]cloudBody, 0, len(all))
	for _, object := range all {
		bodies = append(bodies, cloudBody{object.Dataset, object.Body})
	}
	return bodies
}

func cloudSummaryOf(day Day, hour Hour, bodies []cloudBody) CloudHourSummary {
	h := NewCloudHour(day, hour, DefaultSettings())
	for _, b := range bodies {
		h.Add(b.half, b.body)
	}
	return h.Summary()
}

// cloudAround are the objects of an hour and some of the hours beside it.
func cloudAround(day Day, hour Hour) []cloudBody {
	var near []reporttest.Object
	for object := range cloudDay(day).Objects() {
		at, err := time.Parse("2006-01-02T15:04:05.000Z.json", object.Key[strings.LastIndex(object.Key, "/")+1:])
		if err == nil && at.After(hour.Start.Add(-10*time.Minute)) && at.Before(hour.End.Add(10*time.Minute)) {
			near = append(near, object)
		}
	}
	return cloudBodiesOf(near)
}

// The drills of an hour with a gap in it, one with a deploy and one with nodes.
var propertyHours = []int{2, 4, 10, 13}

func TestTheOrderOfReadingChangesNothing(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	bodies, want := map[int][]cloudBody{}, map[int]string{}
	for _, hour := range propertyHours {
		bodies[hour] = cloudAround(day, day.Hours()[hour])
		want[hour] = cloudJSON(t, cloudSummaryOf(day, day.Hours()[hour], bodies[hour]))
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom(propertyHours).Draw(t, "hour")
		hour, all := day.Hours()[number], bodies[number]
		shuffled := slices.Clone(all)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // not for secrets
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, want[number], cloudJSON(t, cloudSummaryOf(day, hour, shuffled)))
	})
}

func TestDuplicatesAreCountedAndChangeNothingElse(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	hour := day.Hours()[10]
	all := cloudAround(day, hour)
	want := cloudSummaryOf(day, hour, all)
	rapid.Check(t, func(t *rapid.T) {
		twice := slices.Clone(all)
		var inHour int64
		for range rapid.IntRange(0, 20).Draw(t, "extra") {
			b := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			twice = append(twice, b)
			if s, ok := readCloudSample(b.half, b.body, DefaultSettings()); ok && hour.Contains(s.at) {
				inHour++
			}
		}
		got := cloudSummaryOf(day, hour, twice)
		require.Equal(t, want.InputCounts.DuplicateRecords+inHour, got.InputCounts.DuplicateRecords)
		got.InputCounts = want.InputCounts
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		merged, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, string(wanted), string(merged))
	})
}

// However the samples of an hour are split and put together again, their figures
// are the same: that is what lets hours be merged into days.
func TestFiguresMergeInAnyGrouping(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	var samples []cloudSample
	for _, number := range []int{4, 10} {
		for _, b := range cloudAround(day, day.Hours()[number]) {
			if s, ok := readCloudSample(b.half, b.body, DefaultSettings()); ok {
				samples = append(samples, s)
			}
		}
	}
	fold := func(samples []cloudSample) CloudFigures {
		var f CloudFigures
		for _, s := range samples {
			f = f.merge(s.figures(map[string]bool{}))
		}
		return f
	}
	want := cloudJSON(t, fold(samples).trim(maxCloudEntries))
	rapid.Check(t, func(r *rapid.T) {
		var groups [3][]cloudSample
		for _, s := range samples {
			group := rapid.IntRange(0, 2).Draw(r, "group")
			groups[group] = append(groups[group], s)
		}
		slices.Reverse(groups[2])
		got := fold(groups[2]).merge(fold(groups[0]).merge(fold(groups[1])))
		require.Equal(r, want, cloudJSON(t, got.trim(maxCloudEntries)))
	})
}

func TestTwoBodiesOfOneTimeGiveTheSameWhicheverComesFirst(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	body := func(count string) cloudBody {
		return cloudBody{CloudFast, []byte(`{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00Z","fast":{"backend_runtime":{"status":"warning","alb":{"target_5xx_count_5m":` + count + `}}}}`)}
	}
	one, other := cloudSummaryOf(day, day.Hours()[10], []cloudBody{body("1"), body("2")}), cloudSummaryOf(day, day.Hours()[10], []cloudBody{body("2"), body("1")})
	require.Equal(t, cloudJSON(t, one), cloudJSON(t, other))
	require.EqualValues(t, 1, one.InputCounts.DuplicateRecords)
}

// A day cut into hours must tell the same as its samples all at once: the edges
// of hours make neither gaps nor events.
func TestWhereHoursAreCutChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var points []CloudStretch
		var events []CloudEvent
		for _, second := range rapid.SliceOfN(rapid.IntRange(0, 6*3600), 0, 60).Draw(t, "times") {
			at := base.Add(time.Duration(second) * time.Second)
			points = append(points, CloudStretch{First: at, Last: at})
			e := CloudEvent{Type: CloudNodesStatus, Severity: SeverityWarning, Start: at, End: at.Add(time.Minute), Samples: 1}
			if second%3 == 0 {
				e.Severity = SeverityDanger
			}
			events = append(events, e)
		}
		slices.SortFunc(points, func(a, b CloudStretch) int { return a.First.Compare(b.First) })
		slices.SortFunc(events, CloudEvent.compare)
		var stretches []CloudStretch
		var merged []CloudEvent
		for hour := range 7 {
			in := func(at time.Time) bool { return at.Sub(base)/time.Hour == time.Duration(hour) }
			stretches = append(stretches, cloudStretches(slices.DeleteFunc(slices.Clone(points), func(s CloudStretch) bool { return !in(s.First) }), 2*time.Minute)...)
			merged = append(merged, mergeCloudEvents(slices.DeleteFunc(slices.Clone(events), func(e CloudEvent) bool { return !in(e.Start) }), time.Minute)...)
		}
		require.Equal(t, cloudStretches(points, 2*time.Minute), cloudStretches(stretches, 2*time.Minute))
		require.Equal(t, mergeCloudEvents(events, time.Minute), mergeCloudEvents(merged, time.Minute))
	})
}

func TestGapsAndCoverageFillTheDay(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	window := day.Window()
	rapid.Check(t, func(t *rapid.T) {
		var points []CloudStretch
		for _, second := range rapid.SliceOfN(rapid.IntRange(0, 24*3600-1), 0, 40).Draw(t, "times") {
			at := window.Start.Add(time.Duration(second) * time.Second)
			points = append(points, CloudStretch{First: at, Last: at})
		}
		stretches := cloudStretches(points, 10*time.Minute)
		var total time.Duration
		for _, gap := range cloudGaps(CloudSlow, stretches, day.spans(), 10*time.Minute, day) {
			require.Greater(t, gap.DurationSeconds, int64(600))
			total += gap.End.Sub(gap.Start)
		}
		for _, s := range stretches {
			total += s.Last.Sub(s.First)
		}
		require.LessOrEqual(t, total, day.Length())
		require.Greater(t, total+20*time.Minute+time.Nanosecond, day.Length(), "only the edges may be shorter than a gap")
	})
}

func FuzzCloudHour(f *testing.F) {
	day := seoulDay(f, "2026-01-01")
	hour := day.Hours()[10]
	n := 0
	for object := range cloudDay(day).Objects() {
		if n++; n%200 == 0 || strings.HasSuffix(object.Key, "broken.json") {
			f.Add(object.Body)
		}
	}
	f.Add([]byte(`{"schema_version":"cloud-infra-status-v1","updated_at":"2026-01-01T01:00:00Z","fast":{},"slow":{"eks_management":{"nodes":{"ready":1e300,"total":-3}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := NewCloudHour(day, hour, DefaultSettings())
		h.Add(CloudFast, body)
		h.Add(CloudSlow, body)
		h.Add("neither", body)
		s := h.Summary()
		require.GreaterOrEqual(t, s.InputCounts.InvalidRecords, int64(1))
		d := MergeCloudDay(day, DefaultSettings(), []CloudHourSummary{s})
		context, err := json.Marshal(d.Context(DefaultSettings()))
		require.NoError(t, err)
		require.LessOrEqual(t, len(context), DefaultSettings().MaxContextBytes)
		for _, section := range d.Document(Korean).Sections {
			for _, table := range section.Tables {
				for _, row := range table.Rows {
					require.Len(t, row, len(table.Columns))
					require.NotContains(t, strings.Join(row, ""), "\n")
				}
			}
		}
	})
}
