// Package reporttest makes days of stored objects for tests, benchmarks and trials
// by hand: a day of a factory and a day of the cloud infrastructure, each with
// drills whose times are known. The same day always has the same bytes. Only
// tests import it.
package reporttest

import "time"

// Object is a stored object.
type Object struct {
	Key string
	// Dataset is factory_state, risk_score, infra_state, fast or slow.
	Dataset string
	Body    []byte
}

// Drill is a span of a day, from its start, in which something goes wrong.
type Drill struct {
	From, To time.Duration
}

// In tells whether an offset from the day's start lies in the drill.
func (d Drill) In(offset time.Duration) bool { return offset >= d.From && offset < d.To }

// Length is how long the drill lasts.
func (d Drill) Length() time.Duration { return d.To - d.From }

func span(hour, minute int, length time.Duration) Drill {
	from := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	return Drill{From: from, To: from + length}
}
