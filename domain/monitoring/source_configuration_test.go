package monitoring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func configurable(kind string) Source {
	if kind == Agent {
		return Source{Observation: agentAt(noon, nil)}
	}
	return Source{Observation: resourceAt(noon, "celsius", nil)}
}

func TestAnEditChangesWhatItGivesAndCountsARevision(t *testing.T) {
	s := configurable(Resource)
	s.Configuration = Configuration{Revision: 4, DisplayName: "Oven 1", Order: []string{"temperature"}, StaleAfterSeconds: 60}
	c, err := ConfigurationEdit{DisplayName: new("")}.Apply(s)
	require.NoError(t, err)
	require.Equal(t, Configuration{Revision: 5, Order: []string{"temperature"}, StaleAfterSeconds: 60}, c)

	c, err = ConfigurationEdit{
		Definitions:       &[]Definition{{Key: "temperature", Unit: "kelvin", Kind: Gauge}},
		Order:             &[]string{"temperature"},
		StaleAfterSeconds: new(int64(600)),
	}.Apply(s)
	require.NoError(t, err)
	require.Equal(t, "Oven 1", c.DisplayName)
	require.Equal(t, "kelvin", c.Definitions[0].Unit)
	require.Equal(t, int64(600), c.StaleAfterSeconds)
}

func TestAnEditThatBreaksARuleNamesTheField(t *testing.T) {
	for _, c := range []struct {
		field, kind string
		edit        ConfigurationEdit
	}{
		{"displayName", Agent, ConfigurationEdit{DisplayName: new("a\x00b")}},
		{"staleAfterSeconds", Agent, ConfigurationEdit{StaleAfterSeconds: new(int64(9))}},
		{"staleAfterSeconds", Agent, ConfigurationEdit{StaleAfterSeconds: new(int64(604801))}},
		{"staleAfterSeconds", Agent, ConfigurationEdit{StaleAfterSeconds: new(int64(-1))}},
		{"metricDefinitions", Agent, ConfigurationEdit{Definitions: &AgentMetrics}},
		{"metricOrder[0]", Agent, ConfigurationEdit{Order: &[]string{"temperature"}}},
		{"metricDefinitions[0].unit", Resource, ConfigurationEdit{Definitions: &[]Definition{{Key: "temperature", Kind: Gauge}}}},
		{"metricOrder[0]", Resource, ConfigurationEdit{Order: &[]string{"pressure"}}},
		{"metricOrder[0]", Resource, ConfigurationEdit{
			Definitions: &[]Definition{{Key: "pressure", Unit: "bar", Kind: Gauge}}, Order: &[]string{"temperature"},
		}},
	} {
		_, err := c.edit.Apply(configurable(c.kind))
		var broken *InvalidError
		require.ErrorAs(t, err, &broken, c.field)
		require.Equal(t, c.field, broken.Field)
	}
}

func TestAnOrderThatTheSenderOutgrewDoesNotBlockOtherEdits(t *testing.T) {
	s := configurable(Resource)
	s.Configuration.Order = []string{"gone", "cycles"}
	_, err := ConfigurationEdit{DisplayName: new("Oven")}.Apply(s)
	require.NoError(t, err)
	require.Equal(t, []string{"cycles", "temperature"}, keysOf(s.Shown()))
}

func keysOf(definitions []Definition) []string {
	keys := make([]string, len(definitions))
	for i, d := range definitions {
		keys[i] = d.Key
	}
	return keys
}
