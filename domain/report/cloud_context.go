package report

import (
	"encoding/json"

	"millrace/domain/exact"
)

// CloudContext is what a model is told about a day, stored as
// report-context.json: figures and bounded events, but neither payloads nor
// messages of errors.
type CloudContext struct {
	SchemaVersion    string            `json:"schema_version"`
	ContextType      string            `json:"context_type"`
	Target           string            `json:"target"`
	ReportDate       string            `json:"report_date"`
	Timezone         string            `json:"timezone"`
	Window           DayWindow         `json:"window"`
	Status           string            `json:"status"`
	OverallStatus    Verdict           `json:"overall_status"`
	CollectionStatus CollectionStatus  `json:"collection_status"`
	DataQuality      CloudDailyQuality `json:"data_quality"`
	Figures          CloudFigures      `json:"figures"`
	NotConfigured    []string          `json:"not_configured_sections"`
	Tallies          CloudTallies      `json:"tallies"`
	Events           []CloudEvent      `json:"events"`
	EventCounts      CloudEventCounts  `json:"event_counts"`
	EventCount       int64             `json:"event_count"`
	DangerEventCount int64             `json:"danger_event_count"`
	// EventsOmitted are events of the day that are not among Events.
	EventsOmitted     int64              `json:"events_omitted_count"`
	RecommendedChecks []RecommendedCheck `json:"recommended_checks"`
	DataLimitations   []string           `json:"data_limitations"`
}

// CloudTallies count what the findings of a day speak of.
type CloudTallies struct {
	Lambdas           int   `json:"lambda_count"`
	FailedLambdas     int64 `json:"lambdas_with_errors"`
	TroubledSchedules int64 `json:"late_or_paused_schedules"`
	Schedules         int   `json:"schedule_count"`
	Factories         int   `json:"factory_count"`
	StaleFactories    int64 `json:"stale_factories"`
	StaleStorage      int64 `json:"factories_with_stale_objects"`
	Errors            int64 `json:"collector_error_count"`
	// DeadLetters and InactiveGroup are the minutes of the worst queue and group.
	DeadLetters   exact.Decimal `json:"dead_letter_minutes"`
	InactiveGroup exact.Decimal `json:"nodegroup_not_active_minutes"`
	NotConfigured int           `json:"not_configured_section_count"`
	Checks        int           `json:"recommended_check_count"`
	// Sections are by name; what is not configured is in neither number.
	Sections map[string]CloudSectionTally `json:"sections"`
}

// CloudSectionTally counts a section's samples and those that were not normal.
type CloudSectionTally struct {
	Samples   int64 `json:"samples"`
	NotNormal int64 `json:"not_normal_samples"`
}

const cloudContextType = "cloud_infra_daily_report"

// Context is the day for a model, within the settings' bounds: what matters least
// is left out first, and the number of events left out is told.
func (d CloudDaily) Context(settings Settings) CloudContext {
	c := CloudContext{
		SchemaVersion: SchemaVersion, ContextType: cloudContextType, Target: d.Target, ReportDate: d.ReportDate, Timezone: d.Timezone,
		Window: d.Window, Status: d.Status, OverallStatus: d.OverallStatus, CollectionStatus: d.CollectionStatus,
		DataQuality: d.DataQuality, NotConfigured: d.NotConfigured, Tallies: d.tallies(),
		EventCounts: d.EventCounts, EventCount: d.EventCount, DangerEventCount: d.DangerEventCount,
		RecommendedChecks: d.RecommendedChecks, DataLimitations: d.DataLimitations,
	}
	events := d.Events[:min(len(d.Events), settings.MaxContextEvents)]
	for _, entries := range []int{20, 10, 5, 2, 1} {
		c.Figures = d.Figures.trim(entries)
		c = c.with(events)
		if c.size() <= settings.MaxContextBytes {
			return c
		}
	}
	for len(events) > 0 {
		events = events[:len(events)-1]
		if c = c.with(events); c.size() <= settings.MaxContextBytes {
			return c
		}
	}
	c.DataQuality.GapWindows = []CloudGap{}
	c.Figures = d.Figures.trim(0)
	return c
}

func (c CloudContext) with(events []CloudEvent) CloudContext {
	c.Events, c.EventsOmitted = append([]CloudEvent{}, events...), c.EventCount-int64(len(events))
	return c
}

// size is the length of the context as it is stored.
func (c CloudContext) size() int {
	body, err := json.Marshal(c)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return len(body) + 1
}

func (d CloudDaily) tallies() CloudTallies {
	f := d.Figures
	t := CloudTallies{
		Lambdas: len(f.Pipeline.Lambdas), FailedLambdas: f.Pipeline.failedLambdas(),
		TroubledSchedules: f.Pipeline.troubledSchedules(), Schedules: len(f.Pipeline.Schedules),
		Factories: len(f.Freshness.Factories), StaleFactories: f.Freshness.stale(), StaleStorage: f.Storage.stale(),
		DeadLetters: f.Pipeline.deadLetters(), InactiveGroup: f.EKS.groupMinutes(),
		NotConfigured: len(d.NotConfigured), Checks: len(d.RecommendedChecks), Sections: map[string]CloudSectionTally{},
	}
	for _, n := range f.Errors {
		t.Errors += int64(n)
	}
	for _, s := range f.sections() {
		t.Sections[s.name] = CloudSectionTally{Samples: s.Samples.watched(), NotNormal: s.Samples.abnormal()}
	}
	return t
}
