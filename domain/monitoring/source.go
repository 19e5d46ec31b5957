package monitoring

import (
	"fmt"
	"time"
)

// Source is the latest state of one source: its newest observation, the summary
// of that observation's minute, and what the owner configured.
type Source struct {
	ID          string      `json:"sourceId"`
	Observation Observation `json:"observation"`
	CreatedAt   time.Time   `json:"createdAt"`
	// ReceivedAt is the server's time of the last observation or heartbeat.
	ReceivedAt time.Time `json:"receivedAt"`
	// Life is random and new each time the source is created, so that nothing
	// decided on a deleted source is applied to its successor.
	Life string `json:"life"`
	// Rev counts the accepted observations of this life, from 1.
	Rev           int64         `json:"rev"`
	Minute        Minute        `json:"minute"`
	Configuration Configuration `json:"configuration"`
}

// Outcome says what an observation did.
type Outcome string

// Outcomes of observations. All but Accepted leave the measurements as they are.
const (
	Accepted  Outcome = "accepted"
	Duplicate Outcome = "duplicate"
	Reversed  Outcome = "reversed"
	Alive     Outcome = "heartbeat"
)

// IdentityError tells that an observation claims another identity than its
// source has.
type IdentityError struct {
	Field     string
	Have, Got string
}

// Error names the field and both values.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("%s of a source never changes: it is %q, not %q", e.Field, e.Have, e.Got)
}

// UnknownSourceError tells that a heartbeat names a source without observation.
type UnknownSourceError struct {
	ID string
}

// Error names the source.
func (e *UnknownSourceError) Error() string { return fmt.Sprintf("there is no source %q", e.ID) }

// Arrival is a checked observation at the server.
type Arrival struct {
	SourceID    string
	Observation Observation
	ReceivedAt  time.Time
	// Life is the life of the source if this observation creates it.
	Life string
}

// Decision is what an arrival does. Next is the source after it: for Duplicate
// and Reversed the source as it is.
type Decision struct {
	Outcome Outcome
	Created bool
	// Sampled tells that the minute counts the observation. An accepted one is
	// not sampled when its id was deleted and the retained minute counts it already.
	Sampled bool
	// Opens tells that this life of the source had no part in the minute before,
	// so that Next.Minute builds on the retained row and not on the latest one.
	Opens bool
	Next  Source
}

// Decide weighs an arrival against the latest row and, for a minute that the
// latest row does not hold, against the retained row of that minute; both are
// nil where there is none. Errors are *IdentityError, *UnknownSourceError and
// ErrMinuteFull.
func (a Arrival) Decide(latest *Source, retained *Minute) (Decision, error) {
	if latest == nil {
		return a.create(retained)
	}
	if err := latest.Observation.checkSame(a.Observation); err != nil {
		return Decision{}, err
	}
	at, newest := a.Observation.ObservedAt, latest.Observation.ObservedAt
	switch {
	case a.Observation.Heartbeat:
		return Decision{Outcome: Alive, Next: latest.received(a.ReceivedAt)}, nil
	case at.Equal(newest):
		return Decision{Outcome: Duplicate, Next: *latest}, nil
	case at.Before(newest):
		return Decision{Outcome: Reversed, Next: *latest}, nil
	}
	return a.advance(*latest, retained)
}

func (a Arrival) create(retained *Minute) (Decision, error) {
	if a.Observation.Heartbeat {
		return Decision{}, &UnknownSourceError{ID: a.SourceID}
	}
	next := Source{ID: a.SourceID, CreatedAt: a.ReceivedAt, Life: a.Life}
	d, err := a.advance(next, retained)
	d.Created = true
	return d, err
}

// advance applies a newer observation. As observedAt only grows, its minute is
// either the latest row's or a later one.
func (a Arrival) advance(s Source, retained *Minute) (Decision, error) {
	opens := s.Rev == 0 || !s.Minute.Start.Equal(MinuteOf(a.Observation.ObservedAt))
	if opens {
		s.Minute = Minute{}
		if retained != nil {
			s.Minute = *retained
		}
	}
	minute, err := s.Minute.Add(a.Observation)
	if err != nil {
		return Decision{}, err
	}
	sampled := minute.SampleCount > s.Minute.SampleCount
	s.Observation, s.Minute = a.Observation, minute
	s.Observation.ObservedAt = a.Observation.ObservedAt.UTC()
	s.Rev++
	return Decision{Outcome: Accepted, Sampled: sampled, Opens: opens, Next: s.received(a.ReceivedAt)}, nil
}

// received is the source with its receipt refreshed; the clocks of several
// servers never turn it back.
func (s Source) received(at time.Time) Source {
	if at.After(s.ReceivedAt) {
		s.ReceivedAt = at
	}
	return s
}

func (o Observation) checkSame(other Observation) error {
	for _, f := range []struct{ field, have, got string }{
		{"kind", o.Kind, other.Kind},
		{"provider", o.Provider, other.Provider},
		{"account", o.Account, other.Account},
	} {
		if f.have != f.got {
			return &IdentityError{Field: f.field, Have: f.have, Got: f.got}
		}
	}
	return nil
}
