package server

import (
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
)

// Observation is what a sender saw of a source.
type Observation struct {
	Kind              string             `json:"kind" enum:"agent,resource" doc:"An agent, with fixed metrics, or a custom resource, with metrics of its own. Never changes." example:"agent"`
	Provider          string             `json:"provider,omitempty" doc:"Provider of the account; needed for agents. Never changes." example:"anthropic"`
	Account           string             `json:"account,omitempty" doc:"The provider's account; needed for agents. Never changes." example:"team-a"`
	Preset            string             `json:"preset,omitempty" doc:"Name of the collector's preset; may change." example:"cli"`
	ResourceType      string             `json:"resourceType,omitempty" doc:"What the custom resource is; needed for resources." example:"oven"`
	MetricDefinitions []MetricDefinition `json:"metricDefinitions,omitempty" doc:"The metrics of a custom resource: at most 50."`
	MetricOrder       []string           `json:"metricOrder,omitempty" doc:"Keys in the order to show them; those left out follow."`
	StatusMessage     string             `json:"statusMessage,omitempty" doc:"What a custom resource says of itself: at most 500 characters."`
	ObservedAt        time.Time          `json:"observedAt" doc:"The sender's time: from 2020 on, at most 5 minutes ahead."`
	Heartbeat         bool               `json:"heartbeat,omitempty" doc:"Says only that the source is alive; has no metrics."`
	Metrics           Measurements       `json:"metrics,omitempty"`
}

// Measurements are values by metric; null is a value that was not to be had.
type Measurements map[string]*exact.Decimal

// Schema describes numbers or nulls by key.
func (Measurements) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:                 huma.TypeObject,
		Description:          "Values by metric key: up to 15 digits before the point and 9 after it; null where a value was not to be had.",
		AdditionalProperties: &huma.Schema{Type: huma.TypeNumber, Nullable: true},
	}
}

// MetricDefinition says what a metric measures.
type MetricDefinition struct {
	Key   string `json:"key" doc:"[A-Za-z][A-Za-z0-9_.-]{0,63}" example:"temperature"`
	Unit  string `json:"unit" doc:"1 to 32 characters. Key and unit together tell whether measurements may be put together." example:"celsius"`
	Label string `json:"label,omitempty" doc:"What to show: at most 100 characters." example:"Temperature"`
	Kind  string `json:"kind" enum:"gauge,counter" doc:"A level, or a total that is never negative."`
}

// Ingested says what an observation did.
type Ingested struct {
	Outcome string `json:"outcome" enum:"accepted,duplicate,reversed,heartbeat" doc:"All but accepted leave the measurements as they are."`
	Sampled bool   `json:"sampled" doc:"Whether the minute counts the observation."`
	Source  Source `json:"source" doc:"The source afterwards."`
}

// Source is the latest state of a source.
type Source struct {
	SourceID      string        `json:"sourceId"`
	Kind          string        `json:"kind" enum:"agent,resource"`
	Provider      string        `json:"provider,omitempty"`
	Account       string        `json:"account,omitempty"`
	Preset        string        `json:"preset,omitempty"`
	ResourceType  string        `json:"resourceType,omitempty"`
	StatusMessage string        `json:"statusMessage,omitempty"`
	ObservedAt    time.Time     `json:"observedAt" doc:"The sender's time of the newest observation."`
	ReceivedAt    time.Time     `json:"receivedAt" doc:"The server's time of the newest observation or heartbeat."`
	CreatedAt     time.Time     `json:"createdAt"`
	Stale         bool          `json:"stale" doc:"Whether the receipt is older than the source may be silent."`
	Metrics       []Measurement `json:"metrics" nullable:"false"`
	Configuration Configuration `json:"configuration"`
}

// Measurement is one metric of the latest observation.
type Measurement struct {
	MetricDefinition
	Value *exact.Decimal `json:"value" nullable:"true" doc:"null where the value was not to be had."`
}

// SourceList is a page of sources in the order of their ids.
type SourceList struct {
	Sources    []Source `json:"sources" nullable:"false"`
	NextCursor string   `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end."`
}

// Configuration is the owner's part of a source.
type Configuration struct {
	Revision          int64              `json:"revision" doc:"Number of edits."`
	ETag              string             `json:"etag" doc:"What If-Match takes." example:"\"7R2B.3\""`
	DisplayName       string             `json:"displayName,omitempty"`
	MetricDefinitions []MetricDefinition `json:"metricDefinitions,omitempty" nullable:"false" doc:"Definitions to show by, instead of the sender's."`
	MetricOrder       []string           `json:"metricOrder,omitempty" nullable:"false" doc:"Order to show metrics in, instead of the sender's."`
	StaleAfterSeconds int64              `json:"staleAfterSeconds" doc:"Seconds that the source may be silent."`
}

func (o Observation) observation() monitoring.Observation {
	return monitoring.Observation{
		Identity: monitoring.Identity{Kind: o.Kind, Provider: o.Provider, Account: o.Account, ResourceType: o.ResourceType},
		Preset:   o.Preset, Definitions: definitionsFrom(o.MetricDefinitions), Order: o.MetricOrder,
		StatusMessage: o.StatusMessage, ObservedAt: o.ObservedAt.UTC(), Heartbeat: o.Heartbeat, Metrics: o.Metrics,
	}
}

func definitionsFrom(shown []MetricDefinition) []monitoring.Definition {
	definitions := make([]monitoring.Definition, len(shown))
	for i, d := range shown {
		definitions[i] = monitoring.Definition(d)
	}
	return definitions
}

func definitionsOf(definitions []monitoring.Definition) []MetricDefinition {
	shown := make([]MetricDefinition, len(definitions))
	for i, d := range definitions {
		shown[i] = MetricDefinition(d)
	}
	return shown
}

func sourceOf(s monitoring.Source, now time.Time) Source {
	v := s.View(now)
	shown := Source{
		SourceID: v.ID, Kind: v.Identity.Kind, Provider: v.Identity.Provider, Account: v.Identity.Account,
		Preset: v.Preset, ResourceType: v.Identity.ResourceType, StatusMessage: v.StatusMessage,
		ObservedAt: v.ObservedAt, ReceivedAt: v.ReceivedAt, CreatedAt: v.CreatedAt, Stale: v.Stale,
		Metrics: make([]Measurement, len(v.Metrics)), Configuration: configurationOf(s),
	}
	for i, m := range v.Metrics {
		shown.Metrics[i] = Measurement{MetricDefinition: MetricDefinition(m.Definition), Value: m.Value}
	}
	return shown
}

func configurationOf(s monitoring.Source) Configuration {
	c := s.Configuration
	return Configuration{
		Revision: c.Revision, ETag: configurationTag(s), DisplayName: c.DisplayName,
		MetricDefinitions: definitionsOf(c.Definitions), MetricOrder: c.Order,
		StaleAfterSeconds: int64(s.StaleAfter().Seconds()),
	}
}

// configurationTag names one revision of the configuration of one life of a
// source: a source deleted and made anew never has a former tag.
func configurationTag(s monitoring.Source) string {
	return fmt.Sprintf(`"%s.%d"`, s.Life, s.Configuration.Revision)
}
