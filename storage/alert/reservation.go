package alert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/domain/alert"
	"millrace/storage/table"
)

// Delivery states on an alert's item.
const (
	slackPending = "pending"
)

// Incident is the Slack message of an incident that is still going on, so that
// it can be edited in place. The zero value means none.
type Incident struct {
	Channel string `json:"channel,omitempty"`
	TS      string `json:"ts,omitempty"`
}

// Reservation is whether an alert may be sent now. Why and Detail tell why not.
type Reservation struct {
	Reserved bool
	Why      string
	Detail   string
	Incident Incident
}

// state is the item of an alert.
type state struct {
	ReservationID   string `json:"reservation_id"`
	SourceUpdatedAt string `json:"last_source_updated_at"`
	CooldownUntil   int64  `json:"cooldown_until"`
	SlackStatus     string `json:"last_slack_status"`
	Channel         string `json:"slack_channel"`
	TS              string `json:"slack_ts"`
	IncidentUntil   int64  `json:"incident_until"`
}

// Reserve claims the right to send an alert at a time, and starts its cooldown.
// It is one conditional update: the snapshot must be newer than the last one
// and the cooldown over. A retry of the same reservation continues as long as
// it is not settled.
func (s Store) Reserve(ctx context.Context, a alert.Alert, at time.Time, cooldown time.Duration) (Reservation, error) {
	t, key, ttl := s.place(a, a.Key())
	var reserved state
	err := t.Update(ctx, reserve(a, key, ttl, at, cooldown), &reserved)
	var refused *table.ConflictError
	switch {
	case err == nil:
		r := Reservation{Reserved: true}
		if reserved.IncidentUntil > at.Unix() {
			r.Incident = Incident{Channel: reserved.Channel, TS: reserved.TS}
		}
		return r, nil
	case !errors.As(err, &refused):
		return Reservation{}, fmt.Errorf("reserve alert: %w", err)
	}
	var stored state
	if err := table.Decode(refused.Current, &stored); err != nil {
		return Reservation{}, fmt.Errorf("reserve alert: %w", err)
	}
	return stored.refusal(a, at), nil
}

func reserve(a alert.Alert, key table.Key, ttl string, at time.Time, cooldown time.Duration) table.Change {
	order, id := orderOf(a, at).String(), a.ReservationID()
	set := map[string]any{
		"scope": a.Scope, "source_type": a.SourceType, "severity": a.Severity, "reason": alert.Slug(a.Reason), "status": a.Status,
		"last_sent_at": at.Unix(), "last_observed_at": at.Unix(), "cooldown_until": at.Add(cooldown).Unix(),
		"last_source_key": a.SourceKey, "last_source_updated_at": order, "last_slack_status": slackPending,
		"reservation_id": id, ttl: expiry(at, cooldown),
	}
	if a.Score != nil {
		set["last_score"] = a.Score
	}
	return table.Change{Key: key, Set: set, Condition: &table.Condition{
		Expression: "((attribute_not_exists(#source) OR #source < :source) AND (attribute_not_exists(#cooldown) OR #cooldown <= :now)) OR (#id = :id AND #slack = :pending)",
		Names:      map[string]string{"#source": "last_source_updated_at", "#cooldown": "cooldown_until", "#id": "reservation_id", "#slack": "last_slack_status"},
		Values:     table.Item{":source": table.String(order), ":now": table.Int(at.Unix()), ":id": table.String(id), ":pending": table.String(slackPending)},
	}}
}

// refusal explains what stood in the way.
func (s state) refusal(a alert.Alert, at time.Time) Reservation {
	switch {
	case s.ReservationID == a.ReservationID():
		return Reservation{Why: alert.WhyDuplicate, Detail: "this snapshot's alert is " + s.SlackStatus}
	case s.SourceUpdatedAt >= orderOf(a, at).String():
		return Reservation{Why: alert.WhyCooldown, Detail: "a snapshot of " + s.SourceUpdatedAt + " was alerted already"}
	}
	return Reservation{Why: alert.WhyCooldown, Detail: "cooldown until " + time.Unix(s.CooldownUntil, 0).UTC().Format(time.RFC3339)}
}

// Settlement is how the sending of a reserved alert ended.
type Settlement struct {
	Outcome alert.Outcome
	// Error is what Slack or the network said; never a webhook URL.
	Error    string
	At       time.Time
	Cooldown time.Duration
	Incident Incident
	// IncidentFor is how long the incident's message is edited in place.
	IncidentFor time.Duration
}

// Settle records how a reserved alert's sending ended. What was sent, or may
// have been, is quiet for the cooldown from then on; what failed is not. A
// reservation that another one has replaced meanwhile is left alone.
func (s Store) Settle(ctx context.Context, a alert.Alert, r Settlement) error {
	t, key, ttl := s.place(a, a.Key())
	c := table.Change{
		Key: key, Set: map[string]any{"last_slack_status": r.Outcome, ttl: expiry(r.At, r.Cooldown)},
		Condition: &table.Condition{
			Expression: "#id = :id", Names: map[string]string{"#id": "reservation_id"}, Values: table.Item{":id": table.String(a.ReservationID())},
		},
	}
	if r.Error == "" {
		c.Remove = append(c.Remove, "last_slack_error")
	} else {
		c.Set["last_slack_error"] = r.Error
	}
	if r.Outcome == alert.Failed {
		c.Remove = append(c.Remove, "cooldown_until")
	} else {
		c.Set["last_sent_at"], c.Set["cooldown_until"] = r.At.Unix(), r.At.Add(r.Cooldown).Unix()
	}
	if r.Incident.TS != "" {
		c.Set["slack_channel"], c.Set["slack_ts"], c.Set["incident_until"] = r.Incident.Channel, r.Incident.TS, r.At.Add(r.IncidentFor).Unix()
	}
	return ignoreConflict(t.Update(ctx, c, nil))
}

// Close ends the incident of an alert: the next one gets a message of its own.
func (s Store) Close(ctx context.Context, a alert.Alert) error {
	t, key, _ := s.place(a, a.Key())
	present := t.Present()
	return ignoreConflict(t.Update(ctx, table.Change{Key: key, Remove: []string{"slack_channel", "slack_ts", "incident_until"}, Condition: &present}, nil))
}

func ignoreConflict(err error) error {
	var refused *table.ConflictError
	if err == nil || errors.As(err, &refused) {
		return nil
	}
	return fmt.Errorf("settle alert: %w", err)
}
