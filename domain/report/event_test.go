package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

// scores are risk scores 3 s apart.
func scores(start time.Time, list ...string) []sample {
	var samples []sample
	for i, score := range list {
		samples = append(samples, riskSample(factoryA, start.Add(time.Duration(i)*3*time.Second), score, "normal", "temperature"))
	}
	return samples
}

func TestARunOfBadScoresIsOneEvent(t *testing.T) {
	_, _, start := newYear(t)
	hot := calm()
	hot.temperature, hot.fall = "42.8", "0.6"
	samples := append(scores(start.Add(10*time.Minute), "100", "80", "51.2", "84.99", "85"), stateSample(factoryA, start.Add(10*time.Minute+6*time.Second), hot))
	events := summaryOf(t, samples...).Events
	risk := eventsOf(events, EventRisk)
	require.Len(t, risk, 1)
	event := risk[0]
	require.Equal(t, SeverityWarning, event.Severity)
	require.Equal(t, start.Add(10*time.Minute+3*time.Second), event.StartUTC)
	require.Equal(t, "9", event.DurationSeconds.String())
	require.Equal(t, "15:10~15:10", event.TimeRange)
	require.Equal(t, "51.2", event.Evidence.MinScore.String())
	require.Equal(t, "42.8", event.Evidence.TemperatureMax.String())
	require.Equal(t, "0.6", event.Evidence.MaxFallScore.String())
	require.Equal(t, int64(3), event.Evidence.SampleCount)
	require.Equal(t, []string{"temperature"}, event.Evidence.TopCauses)
	require.Equal(t, "factory-a:factory_state:worker2:2026-01-01T06:10:06Z", event.Evidence.MessageIDs[0], "the worst first")
	require.Len(t, event.Evidence.MessageIDs, 3)
	// 50, 9 s = 0.15 min, and 33.79 of 84.99 points.
	require.Equal(t, "54.13", event.SeverityScore.String())
}

func eventsOf(events []Event, kind EventType) []Event {
	var list []Event
	for _, event := range events {
		if event.Type == kind {
			list = append(list, event)
		}
	}
	return list
}

func TestEveryEventType(t *testing.T) {
	_, _, start := newYear(t)
	hot := func(temperature, humidity, fire, fall, bend string) measured {
		return measured{temperature: temperature, humidity: humidity, pressure: "1013", fire: fire, fall: fall, bend: bend, sound: "none"}
	}
	for _, c := range []struct {
		name     string
		samples  []sample
		kind     EventType
		subject  string
		severity Severity
	}{
		{"a bad score", scores(start, "84.99"), EventRisk, "", SeverityWarning},
		{"a dangerous score", scores(start, "49.99"), EventRisk, "", SeverityDanger},
		{"a score of 49.995 reads 50", scores(start, "49.995"), EventRisk, "", SeverityWarning},
		{"a warm place", []sample{stateSample(factoryA, start, hot("32", "1", "0", "0", "0"))}, EventSensor, "temperature", SeverityWarning},
		{"a hot place", []sample{stateSample(factoryA, start, hot("38", "1", "0", "0", "0"))}, EventSensor, "temperature", SeverityDanger},
		{"a damp place", []sample{stateSample(factoryA, start, hot("1", "70", "0", "0", "0"))}, EventSensor, "humidity", SeverityWarning},
		{"a wet place", []sample{stateSample(factoryA, start, hot("1", "85", "0", "0", "0"))}, EventSensor, "humidity", SeverityDanger},
		{"fire", []sample{stateSample(factoryA, start, hot("1", "1", "0.7", "0", "0"))}, EventAI, "fire_score", SeverityWarning},
		{"a fall for sure", []sample{stateSample(factoryA, start, hot("1", "1", "0", "0.95", "0"))}, EventAI, "fall_score", SeverityDanger},
		{"a bend", []sample{stateSample(factoryA, start, hot("1", "1", "0", "0", "0.7"))}, EventAI, "bend_score", SeverityWarning},
		{"a node", []sample{infraSample(factoryA, start, cluster{down: []string{"worker1"}})}, EventNode, "", SeverityWarning},
		{"all nodes", []sample{infraSample(factoryA, start, cluster{down: []string{"master", "worker1", "worker2"}})}, EventNode, "", SeverityDanger},
		{"a workload", []sample{infraSample(factoryA, start, cluster{bad: []string{"ai-fall"}})}, EventWorkload, "", SeverityWarning},
		{"restarts", []sample{infraSample(factoryA, start, cluster{restarts: 1}), infraSample(factoryA, start.Add(20*time.Second), cluster{restarts: 3})}, EventRestart, "edge/ai-fall", SeverityInfo},
		{"many restarts", []sample{infraSample(factoryA, start, cluster{restarts: 1}), infraSample(factoryA, start.Add(20*time.Second), cluster{restarts: 4})}, EventRestart, "edge/ai-fall", SeverityWarning},
	} {
		events := eventsOf(summaryOf(t, c.samples...).Events, c.kind)
		require.NotEmpty(t, events, c.name)
		found := false
		for _, event := range events {
			found = found || (event.Subject == c.subject && event.Severity == c.severity)
			require.NotEmpty(t, event.Evidence.MessageIDs, c.name)
			require.NotEmpty(t, event.Summary, c.name)
		}
		require.True(t, found, c.name)
	}
	require.Empty(t, summaryOf(t, append(scores(start, "85"), stateSample(factoryA, start, hot("31.99", "69.99", "0.69", "0.69", "0.69")), infraSample(factoryA, start, cluster{}))...).Events)
}

func TestASilenceEndsARun(t *testing.T) {
	_, _, start := newYear(t)
	samples := append(scores(start, "80"), scores(start.Add(20*time.Minute), "80")...)
	require.Len(t, summaryOf(t, samples...).Events, 2, "nobody knows what was in between")
	samples = append(scores(start, "80", "100"), scores(start.Add(2*time.Minute), "80")...)
	require.Len(t, summaryOf(t, samples...).Events, 1, "runs close together are joined")
}

func TestTheFiveWorstEventsAreKept(t *testing.T) {
	_, _, start := newYear(t)
	var samples []sample
	for i := range 8 {
		samples = append(samples, scores(start.Add(time.Duration(i)*5*time.Minute), fmt.Sprint(80-i))...)
	}
	s := summaryOf(t, samples...)
	require.Len(t, s.Events, 5)
	require.Equal(t, int64(8), s.EventCount)
	require.Equal(t, "73", s.Events[0].Evidence.MinScore.String())
	require.Equal(t, "77", s.Events[4].Evidence.MinScore.String())
	require.Equal(t, "73", s.Risk.WorstPeriods[0].MinScore.String())
}

func TestNoWarningOutranksADanger(t *testing.T) {
	day, _, start := newYear(t)
	settings := DefaultSettings()
	longest := Event{Type: EventNode, Severity: SeverityWarning, StartUTC: start, EndUTC: start.Add(24 * time.Hour), Evidence: Evidence{NotReadyCount: 5, TotalCount: 5}}
	shortest := Event{Type: EventNode, Severity: SeverityDanger, StartUTC: start, EndUTC: start.Add(time.Second), Evidence: Evidence{NotReadyCount: 1, TotalCount: 5}}
	day.measure(&longest, settings)
	day.measure(&shortest, settings)
	require.Equal(t, "80", longest.SeverityScore.String())
	require.True(t, longest.SeverityScore.Less(shortest.SeverityScore))
}

func TestAnEventAcrossAnHoursEdgeIsOne(t *testing.T) {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	edge := day.Window().Start.Add(3 * time.Hour)
	at := func(seconds int) time.Time { return edge.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		name    string
		samples []sample
		count   int
	}{
		{"at once", append(scores(at(-6), "80", "70"), scores(at(0), "60")...), 1},
		{"120 s apart", append(scores(at(-3), "80"), scores(at(120), "60")...), 1},
		{"121 s apart", append(scores(at(-3), "80"), scores(at(121), "60")...), 2},
		{"another severity", append(scores(at(-3), "80"), scores(at(0), "40")...), 2},
	} {
		daily := mergeSamples(factoryA, day, DefaultSettings(), c.samples)
		require.Len(t, daily.Events, c.count, c.name)
		require.Equal(t, int64(c.count), daily.EventCount, c.name)
		if c.count == 1 {
			event := daily.Events[0]
			require.Equal(t, "60", event.Evidence.MinScore.String(), c.name)
			require.Equal(t, int64(len(c.samples)), event.Evidence.SampleCount, c.name)
			require.Equal(t, event.EndUTC.Sub(event.StartUTC).Seconds(), mustFloat(t, event.DurationSeconds), c.name)
			require.Len(t, daily.Risk.WorstPeriods, 1)
			require.Equal(t, event.TimeRange, daily.Risk.WorstPeriods[0].TimeRange, "the period is the whole event")
		}
	}
}

func mustFloat(t *testing.T, d exact.Decimal) float64 {
	whole, ok := d.Int64()
	require.True(t, ok)
	require.True(t, d.Equal(exact.FromInt(whole)))
	return float64(whole)
}

func TestJoinedEvidenceIsThatOfBoth(t *testing.T) {
	one := func(score string, ids ...string) Event {
		value := exact.MustParse(score)
		return Event{Type: EventRisk, Evidence: Evidence{MinScore: &value, SampleCount: 1, MessageIDs: ids, TopCauses: []string{"c" + score}}}
	}
	joined := joinTwo(one("80", "a", "b"), one("0", "c", "a", "d")).Evidence
	require.Equal(t, "0", joined.MinScore.String())
	require.Equal(t, []string{"c", "a", "d"}, joined.MessageIDs, "the worse one first")
	require.Equal(t, []string{"c0", "c80"}, joined.TopCauses)
	require.Equal(t, int64(2), joined.SampleCount)
}
