package monitoring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func shownKeys(v SourceView) []string {
	keys := []string{}
	for _, m := range v.Metrics {
		keys = append(keys, m.Key)
	}
	return keys
}

func TestASourceIsStaleByTheAgeOfItsReceipt(t *testing.T) {
	s := Source{Observation: agentAt(noon.Add(-time.Hour), nil), ReceivedAt: noon}
	require.False(t, s.View(noon.Add(5*time.Minute)).Stale)
	require.True(t, s.View(noon.Add(5*time.Minute+1)).Stale)
	s.Configuration.StaleAfterSeconds = 3600
	require.False(t, s.View(noon.Add(time.Hour)).Stale)
}

func TestAgentsShowWhatTheySentInOneOrder(t *testing.T) {
	s := Source{Observation: agentAt(noon, map[string]*exact.Decimal{"requests": number("2"), "contextUtilization": number("9.5"), "errors": nil})}
	v := s.View(noon)
	require.Equal(t, []string{"contextUtilization", "requests", "errors"}, shownKeys(v))
	require.Equal(t, "percent", v.Metrics[0].Unit)
	require.Nil(t, v.Metrics[2].Value)

	s.Configuration.Order = []string{"errors"}
	require.Equal(t, []string{"errors", "contextUtilization", "requests"}, shownKeys(s.View(noon)))
}

func TestProjectionHidesWhatNoLongerMatchesKeyAndUnit(t *testing.T) {
	metrics := map[string]*exact.Decimal{"temperature": number("20"), "cycles": number("7")}
	s := Source{Observation: resourceAt(noon, "celsius", metrics)}
	require.Equal(t, []string{"cycles", "temperature"}, shownKeys(s.View(noon)), "the sender's order")
	minute := added(t, s.Observation)

	for _, c := range []struct {
		name          string
		configuration Configuration
		shown         []string
	}{
		{"owner's order", Configuration{Order: []string{"temperature"}}, []string{"temperature", "cycles"}},
		{"other unit", Configuration{Definitions: []Definition{{Key: "temperature", Unit: "kelvin", Kind: Gauge}, {Key: "cycles", Unit: "cycles", Kind: Counter}}}, []string{"cycles"}},
		{"other keys", Configuration{Definitions: []Definition{{Key: "pressure", Unit: "celsius", Kind: Gauge}}}, []string{}},
		{"other label", Configuration{Definitions: []Definition{{Key: "temperature", Unit: "celsius", Label: "Heat", Kind: Gauge}}}, []string{"temperature"}},
	} {
		s.Configuration = c.configuration
		v := s.View(noon)
		require.Equal(t, c.shown, shownKeys(v), c.name)
		view, ok := s.Project(minute)
		require.True(t, ok)
		require.Equal(t, int64(1), view.SampleCount, c.name)
		require.Len(t, view.Series, len(c.shown), c.name)
		for i, key := range c.shown {
			require.Equal(t, key, view.Series[i].Key, c.name)
			require.Equal(t, v.Metrics[i].Label, view.Series[i].Label, c.name)
		}
	}
}

func TestAMinuteFromBeforeTheIDWasReusedShowsNothing(t *testing.T) {
	value := map[string]*exact.Decimal{"temperature": number("20")}
	retained := added(t, resourceAt(noon, "celsius", value))
	reused := resourceAt(noon.Add(time.Hour), "celsius", value)
	reused.ResourceType = "freezer"
	_, shown := Source{Observation: reused}.Project(retained)
	require.False(t, shown)
	_, shown = Source{Observation: agentAt(noon.Add(time.Hour), nil)}.Project(retained)
	require.False(t, shown)

	views := retained.AsRecorded()
	require.Len(t, views, 1)
	require.Equal(t, "oven", views[0].Identity.ResourceType)
	require.Equal(t, "celsius", views[0].Series[0].Unit)
}
