package alert

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
)

// Carry is what an entity carries from run to run.
type Carry struct {
	// Pending are alerts taken on but not begun.
	Pending []alert.Alert `json:"pending,omitempty"`
	// Open are the alerts whose end is watched for, by key.
	Open map[string]Open `json:"open,omitempty"`
	// Repeats are the log lines on which suppressions are being counted.
	Repeats map[string]alert.Record `json:"repeats,omitempty"`
	Refused []Refusal               `json:"refused,omitempty"`
	Recent  []alert.Record          `json:"recent,omitempty"`
	Totals  map[string]int64        `json:"totals,omitempty"`
	// Deliveries numbers the observations, so that each has a token of its own.
	Deliveries int64 `json:"deliveries"`
}

// Open is an alert that was sent and whose end is watched for.
type Open struct {
	Alert    alert.Alert `json:"alert"`
	Since    time.Time   `json:"since"`
	Quiet    int         `json:"quiet"`
	Incident Incident    `json:"incident,omitzero"`
}

// Refusal is a raise, or one alert of it, that was refused.
type Refusal struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Status is the answer to the query "status".
type Status struct {
	Scope    string           `json:"scope"`
	InFlight []string         `json:"in_flight"`
	Pending  int              `json:"pending"`
	Writing  bool             `json:"writing"`
	Open     []Open           `json:"open"`
	Totals   map[string]int64 `json:"totals"`
	Recent   []alert.Record   `json:"recent"`
	Refused  []Refusal        `json:"refused"`
}

// Bounds of what an entity remembers.
const (
	maxRecent  = 20
	maxRefused = 20
	maxOpen    = 100
	maxRepeats = 100
)

func (c *Carry) init() {
	if c.Open == nil {
		c.Open = map[string]Open{}
	}
	if c.Repeats == nil {
		c.Repeats = map[string]alert.Record{}
	}
	if c.Totals == nil {
		c.Totals = map[string]int64{}
	}
}

func (w *riskAlert) status() Status {
	s := Status{
		Scope: w.scope, InFlight: workflow.DeterministicKeys(w.inFlight), Pending: len(w.state.Pending), Writing: w.writing,
		Totals: w.state.Totals, Recent: w.state.Recent, Refused: w.state.Refused,
	}
	for _, key := range workflow.DeterministicKeys(w.state.Open) {
		s.Open = append(s.Open, w.state.Open[key])
	}
	return s
}

// refuse keeps the reason of a refused raise.
func (w *riskAlert) refuse(ctx workflow.Context, err error) {
	workflow.GetLogger(ctx).Warn("alert refused", "error", err)
	w.state.Refused = newest(append(w.state.Refused, Refusal{At: workflow.Now(ctx), Reason: err.Error()}), maxRefused)
}

// remember counts an outcome and shows it.
func (w *riskAlert) remember(ctx workflow.Context, r alert.Record) {
	w.state.Totals[string(r.Outcome)]++
	w.state.Recent = newest(append(w.state.Recent, r), maxRecent)
	w.describe(ctx)
}

func newest[T any](list []T, n int) []T {
	if len(list) > n {
		list = append([]T(nil), list[len(list)-n:]...)
	}
	return list
}
