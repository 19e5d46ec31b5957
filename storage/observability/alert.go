package observability

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// Fired is the note that a rule fires. It makes one alert of one firing.
type Fired struct {
	SK string `json:"SK"`
	// At is when the firing was first seen; it is the alert's time.
	At      time.Time `json:"fired_at"`
	AlertSK string    `json:"alert_sk"`
	// Raised tells that the alert was written and handed on.
	Raised    bool  `json:"raised"`
	ExpiresAt int64 `json:"expires_at,omitempty"`
}

// RuleID is the rule that the note belongs to.
func (f Fired) RuleID() string {
	id, _, _ := strings.Cut(strings.TrimPrefix(f.SK, observability.FiredPrefix), "#")
	return id
}

// OfBudget tells whether the note is one of a day's budget: it names the day.
func (f Fired) OfBudget() bool { return strings.Count(f.SK, "#") > 2 }

// budgetNoteTTL keeps the notes of a day's budget until no late signal changes
// that day any more.
const budgetNoteTTL = 5 * 24 * time.Hour

// Claim notes that a rule fires, or returns the note that is there already.
func (s Store) Claim(ctx context.Context, r observability.Rule, f observability.Firing, at time.Time) (Fired, error) {
	a := observability.NewAlert(r, f, at)
	note := Fired{SK: observability.FiredSK(r.RuleID, f), At: at.UTC(), AlertSK: observability.AlertSK(a.Timestamp, a.AlertID)}
	note.ExpiresAt = at.Add(observability.AlertTTL).Unix()
	if !f.Day.IsZero() {
		note.ExpiresAt = f.Day.Add(budgetNoteTTL).Unix()
	}
	absent := s.Table.Absent()
	err := s.Table.Put(ctx, struct {
		PK string `json:"PK"`
		Fired
	}{observability.AppPK(r.AppID), note}, &absent)
	if conflict, ok := errors.AsType[*table.ConflictError](err); ok {
		var current Fired
		return current, table.Decode(conflict.Current, &current)
	}
	return note, err
}

// MarkRaised notes that the alert of a firing was written and handed on.
func (s Store) MarkRaised(ctx context.Context, appID string, f Fired) error {
	present := s.Table.Present()
	err := s.Table.Update(ctx, table.Change{
		Key: table.Key{Partition: observability.AppPK(appID), Sort: f.SK}, Set: map[string]any{"raised": true}, Condition: &present,
	}, nil)
	return ignoreConflict(err)
}

// FiredNotes are the notes of an application's rules.
func (s Store) FiredNotes(ctx context.Context, appID string) ([]Fired, error) {
	var notes []Fired
	prefix := observability.FiredPrefix
	for item, err := range s.Table.Query(ctx, table.Range{Partition: observability.AppPK(appID), From: prefix, To: prefix + "~", Consistent: true}) {
		if err != nil {
			return nil, err
		}
		var note Fired
		if err := table.Decode(item, &note); err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// Resolve ends a firing: its alert says when, and the note goes.
func (s Store) Resolve(ctx context.Context, appID string, f Fired, at time.Time) error {
	present := s.Table.Present()
	err := s.Table.Update(ctx, table.Change{
		Key: table.Key{Partition: observability.AppPK(appID), Sort: f.AlertSK}, SetOnce: map[string]any{"resolved_at": observability.Stamp(at)}, Condition: &present,
	}, nil)
	if err := ignoreConflict(err); err != nil {
		return err
	}
	return s.Table.Delete(ctx, table.Key{Partition: observability.AppPK(appID), Sort: f.SK}, nil)
}

func ignoreConflict(err error) error {
	if _, ok := errors.AsType[*table.ConflictError](err); ok {
		return nil
	}
	return err
}

// alertItem is an alert with its keys.
type alertItem struct {
	observability.Alert
	Timestamp string `json:"timestamp"`
	PK        string `json:"PK"`
	SK        string `json:"SK"`
	GSI1PK    string `json:"GSI1PK"`
	GSI1SK    string `json:"GSI1SK"`
	ExpiresAt int64  `json:"expires_at"`
}

// PutAlert keeps an alert. Writing it again changes nothing.
func (s Store) PutAlert(ctx context.Context, a observability.Alert) error {
	absent := s.Table.Absent()
	err := s.Table.Put(ctx, alertItem{
		Alert: a, Timestamp: observability.Stamp(a.Timestamp),
		PK: observability.AppPK(a.AppID), SK: observability.AlertSK(a.Timestamp, a.AlertID),
		GSI1PK: observability.AlertsPK(a.Timestamp), GSI1SK: observability.AlertGSI1SK(a.Timestamp, a.AlertID),
		ExpiresAt: a.Timestamp.Add(observability.AlertTTL).Unix(),
	}, &absent)
	if err := ignoreConflict(err); err != nil {
		return fmt.Errorf("put alert of %s: %w", a.AppID, err)
	}
	return nil
}

// Alerts reads a page of an application's alerts, newest first, and the cursor of
// the next. Expired ones are left out.
func (s Store) Alerts(ctx context.Context, appID, cursor string, limit int32, now time.Time) ([]observability.Alert, string, error) {
	items, next, err := s.Table.Page(ctx, table.PageQuery{
		Partition: observability.AppPK(appID), Prefix: observability.AlertPrefix, Cursor: cursor, Limit: limit, Descending: true, Consistent: true,
	})
	if err != nil {
		return nil, "", err
	}
	alerts, err := decodeAlerts(items, now)
	return alerts, next, err
}

// AlertsOn reads a page of all applications' alerts of a day, newest first.
func (s Store) AlertsOn(ctx context.Context, day time.Time, cursor string, limit int32, now time.Time) ([]observability.Alert, string, error) {
	entries, next, err := s.Table.Page(ctx, table.PageQuery{Index: gsi1, Partition: observability.AlertsPK(day), Cursor: cursor, Limit: limit, Descending: true})
	if err != nil {
		return nil, "", err
	}
	items, err := s.fetch(ctx, entries)
	if err != nil {
		return nil, "", err
	}
	alerts, err := decodeAlerts(items, now)
	return alerts, next, err
}

func decodeAlerts(items []table.Item, now time.Time) ([]observability.Alert, error) {
	alerts := make([]observability.Alert, 0, len(items))
	for _, item := range items {
		if expired(item, now) {
			continue
		}
		var a observability.Alert
		if err := table.Decode(item, &a); err != nil {
			return nil, err
		}
		alerts = append(alerts, a)
	}
	return alerts, nil
}
