package monitoring

import (
	"time"

	"millrace/domain/exact"
)

// SourceView is a source as its owner sees it: the latest measurements in the
// configured order, without those that no longer match a definition.
type SourceView struct {
	ID            string
	Identity      Identity
	Preset        string
	StatusMessage string
	ObservedAt    time.Time
	ReceivedAt    time.Time
	CreatedAt     time.Time
	// Stale is derived from the age of the last receipt; it is never stored.
	Stale         bool
	Metrics       []Measurement
	Configuration Configuration
}

// Measurement is one shown metric of an observation; Value is nil when it was
// not to be had.
type Measurement struct {
	Definition
	Value *exact.Decimal
}

// MinuteView is what is shown of one minute under one identity: the series that
// match the current definitions, in their order.
type MinuteView struct {
	Start       time.Time
	Identity    Identity
	SampleCount int64
	Series      []Series
}

// View is the source as it is shown at now.
func (s Source) View(now time.Time) SourceView {
	o := s.Observation
	return SourceView{
		ID: s.ID, Identity: o.Identity, Preset: o.Preset, StatusMessage: o.StatusMessage,
		ObservedAt: o.ObservedAt, ReceivedAt: s.ReceivedAt, CreatedAt: s.CreatedAt,
		Stale: s.Stale(now), Metrics: s.measurements(), Configuration: s.Configuration,
	}
}

// Stale tells whether the last receipt is older than the source may be silent.
func (s Source) Stale(now time.Time) bool { return now.Sub(s.ReceivedAt) > s.StaleAfter() }

// StaleAfter is how long the source may be silent.
func (s Source) StaleAfter() time.Duration {
	if s.Configuration.StaleAfterSeconds > 0 {
		return time.Duration(s.Configuration.StaleAfterSeconds) * time.Second
	}
	return DefaultStaleAfter
}

// Shown is the definitions by which the source is shown now, in order: the
// owner's where there are any, else the sender's.
func (s Source) Shown() []Definition {
	definitions, order := s.Observation.defined(), s.Observation.Order
	if len(s.Configuration.Definitions) > 0 {
		definitions = s.Configuration.Definitions
	}
	if len(s.Configuration.Order) > 0 {
		order = s.Configuration.Order
	}
	return ordered(definitions, order)
}

func (s Source) measurements() []Measurement {
	measured := s.Observation.defined()
	var shown []Measurement
	for _, d := range s.Shown() {
		m, defined := definitionOf(measured, d.Key)
		value, sent := s.Observation.Metrics[d.Key]
		if defined && sent && m.Compatible(d) {
			shown = append(shown, Measurement{Definition: d, Value: value})
		}
	}
	return shown
}

// Project is what the source shows of a retained minute: the part of its own
// identity. A minute of another identity, from before the id was used again,
// shows nothing.
func (s Source) Project(m Minute) (MinuteView, bool) {
	for _, p := range m.Parts {
		if p.Identity == s.Observation.Identity {
			return MinuteView{Start: m.Start, Identity: p.Identity, SampleCount: p.SampleCount, Series: p.shown(s.Shown())}, true
		}
	}
	return MinuteView{}, false
}

func (p Part) shown(definitions []Definition) []Series {
	var shown []Series
	for _, d := range definitions {
		for _, r := range p.Series {
			if r.Compatible(d) {
				r.Definition = d
				shown = append(shown, r)
			}
		}
	}
	return shown
}

// AsRecorded is the views of a minute whose source is deleted: each part by the
// definitions it was measured by.
func (m Minute) AsRecorded() []MinuteView {
	views := make([]MinuteView, len(m.Parts))
	for i, p := range m.Parts {
		views[i] = MinuteView{Start: m.Start, Identity: p.Identity, SampleCount: p.SampleCount, Series: p.Series}
	}
	return views
}
