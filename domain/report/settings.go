package report

import (
	"fmt"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Datasets of a factory below processed/{factory}/.
const (
	FactoryStateDataset  = "factory_state"
	RiskScoreDataset     = "risk_score"
	InfraStateDataset    = "infra_state"
	StateSnapshotDataset = "state_snapshot"
)

// Profile says what kind of factory a target is, so that a testbed is never
// worded as production.
type Profile struct {
	EnvironmentType string `json:"environment_type"`
	InputModuleType string `json:"input_module_type"`
	// InterpretationMode is production_edge or testbed_dummy.
	InterpretationMode string `json:"interpretation_mode"`
}

// The interpretation modes.
const (
	ProductionEdge = "production_edge"
	TestbedDummy   = "testbed_dummy"
)

// Testbed tells whether the factory's data are generated.
func (p Profile) Testbed() bool { return p.InterpretationMode == TestbedDummy }

// Settings are the rules of a report. DefaultSettings has the values of the
// original (factory.md, 7.3).
type Settings struct {
	Timezone     string
	OutputPrefix string
	FactoryIDs   []string
	// Datasets are counted; of AuxDatasets only the last object of an hour is used.
	Datasets    []string
	AuxDatasets []string
	Language    Language

	ModelID     string
	MaxTokens   int
	Temperature exact.Decimal

	MaxContextEvents int
	MaxContextBytes  int
	MaxHourlyEvents  int
	EventMergeGap    time.Duration

	GetConcurrency    int
	MaxObjectsPerHour int

	FactoryStateInterval time.Duration
	RiskScoreInterval    time.Duration
	InfraStateInterval   time.Duration
	CloudFastInterval    time.Duration
	CloudSlowInterval    time.Duration

	// The bounds are inclusive: a score of RiskWarningMax or less is a warning, a
	// temperature of TemperatureWarning or more is one.
	RiskWarningMax      exact.Decimal
	RiskDangerMax       exact.Decimal
	TemperatureWarning  exact.Decimal
	TemperatureCritical exact.Decimal
	HumidityWarning     exact.Decimal
	HumidityCritical    exact.Decimal
	AISpike             exact.Decimal
	AICritical          exact.Decimal

	// Profiles are the factories whose kind is known; another one is production.
	Profiles map[string]Profile
}

// DefaultSettings are the rules as the original had them.
func DefaultSettings() Settings {
	return Settings{
		Timezone: "Asia/Seoul", OutputPrefix: "reports/daily",
		FactoryIDs: []string{"factory-a", "factory-b", "factory-c"},
		Datasets:   []string{FactoryStateDataset, RiskScoreDataset, InfraStateDataset}, AuxDatasets: []string{StateSnapshotDataset},
		Language: Korean,
		ModelID:  "anthropic.claude-3-sonnet-20240229-v1:0", MaxTokens: 3000, Temperature: exact.MustParse("0.2"),
		MaxContextEvents: 10, MaxContextBytes: 120_000, MaxHourlyEvents: 5, EventMergeGap: 120 * time.Second,
		GetConcurrency: 16, MaxObjectsPerHour: 10_000,
		FactoryStateInterval: 3 * time.Second, RiskScoreInterval: 3 * time.Second, InfraStateInterval: 20 * time.Second,
		CloudFastInterval: time.Minute, CloudSlowInterval: 5 * time.Minute,
		RiskWarningMax: exact.MustParse("84.99"), RiskDangerMax: exact.MustParse("49.99"),
		TemperatureWarning: exact.FromInt(32), TemperatureCritical: exact.FromInt(38),
		HumidityWarning: exact.FromInt(70), HumidityCritical: exact.FromInt(85),
		AISpike: exact.MustParse("0.7"), AICritical: exact.MustParse("0.95"),
		Profiles: map[string]Profile{
			"factory-a": {EnvironmentType: "physical-rpi", InputModuleType: "sensor", InterpretationMode: ProductionEdge},
			"factory-b": {EnvironmentType: "vm-mac", InputModuleType: "dummy", InterpretationMode: TestbedDummy},
			"factory-c": {EnvironmentType: "vm-windows", InputModuleType: "dummy", InterpretationMode: TestbedDummy},
		},
	}
}

// Profile is what is known about a factory.
func (s Settings) Profile(factoryID string) Profile {
	if profile, ok := s.Profiles[factoryID]; ok {
		return profile
	}
	return Profile{EnvironmentType: "unknown", InputModuleType: "unknown", InterpretationMode: ProductionEdge}
}

// Interval is how often a dataset gets an object; 0 for one that has no rhythm.
func (s Settings) Interval(dataset string) time.Duration {
	switch dataset {
	case FactoryStateDataset:
		return s.FactoryStateInterval
	case RiskScoreDataset:
		return s.RiskScoreInterval
	case InfraStateDataset:
		return s.InfraStateInterval
	}
	return 0
}

// minContextBytes is what a day's figures need without any event.
const minContextBytes = 16 << 10

// Check refuses settings that no report can follow. Its error is an
// *InvalidError.
func (s Settings) Check() error {
	if _, err := loadZone(s.Timezone); err != nil {
		return err
	}
	if err := s.checkTargets(); err != nil {
		return err
	}
	if s.Language != Korean && s.Language != English {
		return invalid("language", "must be ko or en")
	}
	if err := s.checkCounts(); err != nil {
		return err
	}
	if err := s.checkIntervals(); err != nil {
		return err
	}
	return s.checkBounds()
}

func (s Settings) checkTargets() error {
	if s.OutputPrefix == "" || s.OutputPrefix[0] == '/' || s.OutputPrefix[len(s.OutputPrefix)-1] == '/' {
		return invalid("output_prefix", "must be a key prefix without slashes at its ends")
	}
	for _, id := range s.FactoryIDs {
		if err := CheckTarget(id); err != nil || id == CloudTarget {
			return invalid("factory_ids", "must be factory ids")
		}
	}
	for _, dataset := range s.Datasets {
		if !slices.Contains(DefaultSettings().Datasets, dataset) {
			return invalid("datasets", "must be factory_state, risk_score and infra_state")
		}
	}
	for _, profile := range s.Profiles {
		if mode := profile.InterpretationMode; mode != ProductionEdge && mode != TestbedDummy {
			return invalid("profiles", "must have the mode production_edge or testbed_dummy")
		}
	}
	return nil
}

func (s Settings) checkCounts() error {
	for _, count := range []struct {
		name         string
		value, least int
	}{
		{"max_tokens", s.MaxTokens, 1},
		{"max_context_events", s.MaxContextEvents, 1},
		{"max_context_bytes", s.MaxContextBytes, minContextBytes},
		{"max_hourly_events", s.MaxHourlyEvents, 1},
		{"get_concurrency", s.GetConcurrency, 1},
		{"max_objects_per_hour", s.MaxObjectsPerHour, 1},
	} {
		if count.value < count.least {
			return invalid(count.name, fmt.Sprintf("must be at least %d", count.least))
		}
	}
	if s.Temperature.Sign() < 0 || exact.FromInt(1).Less(s.Temperature) {
		return invalid("temperature", "must be between 0 and 1")
	}
	return nil
}

func (s Settings) checkIntervals() error {
	for _, interval := range []struct {
		name  string
		value time.Duration
	}{
		{"factory_state_interval", s.FactoryStateInterval},
		{"risk_score_interval", s.RiskScoreInterval},
		{"infra_state_interval", s.InfraStateInterval},
		{"cloud_fast_interval", s.CloudFastInterval},
		{"cloud_slow_interval", s.CloudSlowInterval},
	} {
		if interval.value < time.Second || interval.value > time.Hour || interval.value%time.Second != 0 {
			return invalid(interval.name, "must be whole seconds, at most an hour")
		}
	}
	if s.EventMergeGap < 0 || s.EventMergeGap > time.Hour {
		return invalid("event_merge_gap", "must be at most an hour")
	}
	return nil
}

func (s Settings) checkBounds() error {
	for _, pair := range []struct {
		name        string
		mild, grave exact.Decimal
	}{
		{"risk bounds", s.RiskDangerMax, s.RiskWarningMax},
		{"temperature bounds", s.TemperatureWarning, s.TemperatureCritical},
		{"humidity bounds", s.HumidityWarning, s.HumidityCritical},
		{"ai score bounds", s.AISpike, s.AICritical},
	} {
		if !pair.mild.Less(pair.grave) {
			return invalid(pair.name, "must have the lower one below the greater one")
		}
	}
	return nil
}
