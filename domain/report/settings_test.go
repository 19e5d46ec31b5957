package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func TestTheDefaultSettingsAreValid(t *testing.T) {
	require.NoError(t, DefaultSettings().Check())
}

func TestBadSettingsNameTheirField(t *testing.T) {
	for field, spoil := range map[string]func(*Settings){
		"timezone":               func(s *Settings) { s.Timezone = "Local" },
		"output_prefix":          func(s *Settings) { s.OutputPrefix = "/reports" },
		"factory_ids":            func(s *Settings) { s.FactoryIDs = []string{"cloud-infra"} },
		"datasets":               func(s *Settings) { s.Datasets = []string{"image_snapshot"} },
		"profiles":               func(s *Settings) { s.Profiles = map[string]Profile{"factory-a": {}} },
		"language":               func(s *Settings) { s.Language = "fr" },
		"max_tokens":             func(s *Settings) { s.MaxTokens = 0 },
		"max_context_events":     func(s *Settings) { s.MaxContextEvents = 0 },
		"max_context_bytes":      func(s *Settings) { s.MaxContextBytes = 1000 },
		"max_hourly_events":      func(s *Settings) { s.MaxHourlyEvents = 0 },
		"get_concurrency":        func(s *Settings) { s.GetConcurrency = 0 },
		"max_objects_per_hour":   func(s *Settings) { s.MaxObjectsPerHour = 0 },
		"temperature":            func(s *Settings) { s.Temperature = exact.FromInt(2) },
		"factory_state_interval": func(s *Settings) { s.FactoryStateInterval = 0 },
		"infra_state_interval":   func(s *Settings) { s.InfraStateInterval = 1500 * time.Millisecond },
		"cloud_slow_interval":    func(s *Settings) { s.CloudSlowInterval = 2 * time.Hour },
		"event_merge_gap":        func(s *Settings) { s.EventMergeGap = -1 },
		"risk bounds":            func(s *Settings) { s.RiskDangerMax = exact.FromInt(90) },
		"temperature bounds":     func(s *Settings) { s.TemperatureWarning = s.TemperatureCritical },
		"humidity bounds":        func(s *Settings) { s.HumidityCritical = exact.FromInt(1) },
		"ai score bounds":        func(s *Settings) { s.AISpike = exact.FromInt(1) },
	} {
		settings := DefaultSettings()
		spoil(&settings)
		requireInvalid(t, settings.Check(), field)
	}
}

func TestAnUnknownFactoryIsProduction(t *testing.T) {
	require.False(t, DefaultSettings().Profile("factory-z").Testbed())
	require.True(t, DefaultSettings().Profile("factory-b").Testbed())
	require.Equal(t, "vm-windows", DefaultSettings().Profile("factory-c").EnvironmentType)
}
