package monitoring

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

func requests(n int64) map[string]*exact.Decimal {
	d := exact.FromInt(n)
	return map[string]*exact.Decimal{"requests": &d}
}

func arrive(t require.TestingT, latest *Source, o Observation, at time.Time) Decision {
	d, err := Arrival{SourceID: "a", Observation: o, ReceivedAt: at, Life: "one"}.Decide(latest, nil)
	require.NoError(t, err)
	return d
}

func TestTheFirstObservationCreatesTheSource(t *testing.T) {
	o := agentAt(noon, requests(1))
	d := arrive(t, nil, o, noon.Add(time.Second))
	require.Equal(t, Accepted, d.Outcome)
	require.True(t, d.Created)
	require.True(t, d.Opens)
	require.Equal(t, Source{
		ID: "a", Observation: o, CreatedAt: noon.Add(time.Second), ReceivedAt: noon.Add(time.Second),
		Life: "one", Rev: 1, Minute: added(t, o),
	}, d.Next)
}

func TestWhatAnObservationDoesDependsOnItsTime(t *testing.T) {
	first := arrive(t, nil, agentAt(noon.Add(30*time.Second), requests(1)), noon).Next
	for _, c := range []struct {
		name    string
		o       Observation
		outcome Outcome
		opens   bool
		samples int64
		rev     int64
	}{
		{"equal", agentAt(noon.Add(30*time.Second), requests(9)), Duplicate, false, 1, 1},
		{"older", agentAt(noon.Add(29*time.Second), requests(9)), Reversed, false, 1, 1},
		{"same minute", agentAt(noon.Add(59*time.Second), requests(9)), Accepted, false, 2, 2},
		{"next minute", agentAt(noon.Add(60*time.Second), requests(9)), Accepted, true, 1, 2},
		{"much later", agentAt(noon.Add(time.Hour), requests(9)), Accepted, true, 1, 2},
		{"same instant in another zone", agentAt(noon.Add(30*time.Second).In(time.FixedZone("", 3600)), requests(9)), Duplicate, false, 1, 1},
	} {
		d := arrive(t, &first, c.o, noon.Add(2*time.Hour))
		require.Equal(t, c.outcome, d.Outcome, c.name)
		require.Equal(t, c.opens, d.Opens, c.name)
		require.Equal(t, c.samples, d.Next.Minute.SampleCount, c.name)
		require.Equal(t, c.rev, d.Next.Rev, c.name)
		if c.outcome != Accepted {
			require.Equal(t, first, d.Next, c.name)
		}
	}
}

func TestAHeartbeatRefreshesTheReceiptOnly(t *testing.T) {
	first := arrive(t, nil, agentAt(noon, requests(1)), noon).Next
	beat := agentAt(noon.Add(-time.Hour), nil)
	beat.Heartbeat = true
	d := arrive(t, &first, beat, noon.Add(time.Minute))
	want := first
	want.ReceivedAt = noon.Add(time.Minute)
	require.Equal(t, Decision{Outcome: Alive, Next: want}, d)

	d = arrive(t, &first, beat, noon.Add(-time.Minute))
	require.Equal(t, first, d.Next, "a server's clock never turns the receipt back")
}

func TestAHeartbeatNeedsASource(t *testing.T) {
	beat := agentAt(noon, nil)
	beat.Heartbeat = true
	_, err := Arrival{SourceID: "a", Observation: beat, ReceivedAt: noon}.Decide(nil, nil)
	var unknown *UnknownSourceError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "a", unknown.ID)
}

func TestKindAndAccountNeverChange(t *testing.T) {
	agent := arrive(t, nil, agentAt(noon, requests(1)), noon).Next
	resource := arrive(t, nil, resourceAt(noon, "celsius", nil), noon).Next
	for field, c := range map[string]struct {
		latest Source
		change func(*Observation)
	}{
		"kind":     {resource, func(o *Observation) { *o = agentAt(o.ObservedAt, nil) }},
		"provider": {agent, func(o *Observation) { o.Provider = "openai" }},
		"account":  {agent, func(o *Observation) { o.Account = "team-b" }},
	} {
		for _, heartbeat := range []bool{false, true} {
			o := c.latest.Observation
			o.ObservedAt, o.Heartbeat = noon.Add(time.Second), heartbeat
			c.change(&o)
			_, err := Arrival{Observation: o, ReceivedAt: noon}.Decide(&c.latest, nil)
			var changed *IdentityError
			require.ErrorAs(t, err, &changed, field)
			require.Equal(t, field, changed.Field)
		}
	}
}

func TestAResourceChangesItsPresetAndStaysAResource(t *testing.T) {
	first := arrive(t, nil, resourceAt(noon, "celsius", nil), noon).Next
	o := resourceAt(noon.Add(time.Second), "celsius", nil)
	o.Preset = "claude-code"
	d := arrive(t, &first, o, noon)
	require.Equal(t, Accepted, d.Outcome)
	require.Equal(t, Resource, d.Next.Observation.Kind)
	require.Equal(t, "claude-code", d.Next.Observation.Preset)
}

func TestIngestionKeepsTheConfiguration(t *testing.T) {
	first := arrive(t, nil, agentAt(noon, requests(1)), noon).Next
	first.Configuration = Configuration{Revision: 3, DisplayName: "Builder"}
	d := arrive(t, &first, agentAt(noon.Add(time.Hour), requests(2)), noon)
	require.Equal(t, first.Configuration, d.Next.Configuration)
}

func TestAReusedIDBuildsOnTheRetainedMinute(t *testing.T) {
	retained := added(t, agentAt(noon, requests(1)), agentAt(noon.Add(20*time.Second), requests(3)))
	decide := func(o Observation, sampled bool) Decision {
		d, err := Arrival{SourceID: "a", Observation: o, ReceivedAt: noon, Life: "two"}.Decide(nil, &retained)
		require.NoError(t, err)
		require.True(t, d.Created)
		require.Equal(t, sampled, d.Sampled)
		require.Equal(t, o, d.Next.Observation)
		return d
	}
	newer := decide(agentAt(noon.Add(30*time.Second), requests(5)), true).Next.Minute
	require.Equal(t, int64(3), newer.SampleCount)
	require.Equal(t, "9", newer.Parts[0].Series[0].Sum.String())

	again := decide(agentAt(noon.Add(20*time.Second), requests(3)), false).Next.Minute
	require.Equal(t, retained, again, "what was counted before the deletion is not counted again")

	other := decide(resourceAt(noon.Add(10*time.Second), "celsius", nil), true).Next.Minute
	require.Equal(t, retained.Parts[0], other.Parts[0], "another identity leaves what is retained alone")
	require.Len(t, other.Parts, 2)
}

// TestAnyInterleavingGivesTheMinutesOfTheSequentialModel sends observations in
// any order with repeats: the minutes are those of a plain loop that keeps what
// is newer than everything before it.
func TestAnyInterleavingGivesTheMinutesOfTheSequentialModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offsets := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 60).Draw(t, "seconds")
		var latest *Source
		rows, model := map[time.Time]Minute{}, map[time.Time][]int64{}
		newest := -1
		for _, s := range offsets {
			d := arrive(t, latest, agentAt(noon.Add(time.Duration(s)*time.Second), requests(int64(s))), noon)
			latest = &d.Next
			if d.Outcome == Accepted {
				require.Equal(t, d.Opens, len(rows[d.Next.Minute.Start].Parts) == 0)
				rows[d.Next.Minute.Start] = d.Next.Minute
			}
			if s > newest {
				newest = s
				start := noon.Add(time.Duration(s/60) * time.Minute)
				model[start] = append(model[start], int64(s))
			}
		}
		require.Len(t, rows, len(model))
		for start, values := range model {
			require.Equal(t, int64(len(values)), rows[start].SampleCount)
			r := rows[start].Parts[0].Series[0]
			require.Equal(t, exact.FromInt(slices.Max(values)).String(), r.Max.String())
			require.Equal(t, exact.FromInt(total(values)).String(), r.Sum.String())
		}
	})
}

func total(values []int64) int64 {
	var sum int64
	for _, v := range values {
		sum += v
	}
	return sum
}
