package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
	alertstore "millrace/storage/alert"
)

// AlertStore is what the alert routes need of their store.
type AlertStore interface {
	Records(ctx context.Context, q alertstore.Query) ([]alert.Record, string, error)
	CreateSilence(ctx context.Context, s alert.Silence) error
	Silence(ctx context.Context, scope, id string) (alert.Silence, error)
	Silences(ctx context.Context, scope string, now time.Time) ([]alert.Silence, error)
	ChangeSilence(ctx context.Context, s alert.Silence, was factory.Millis) error
	DeleteSilence(ctx context.Context, scope, id string) error
}

// AlertList is a page of the alert log, newest first.
type AlertList struct {
	Alerts     []alert.Record `json:"alerts" nullable:"false"`
	NextCursor string         `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end."`
}

type listAlertsInput struct {
	Scope  string `query:"scope" maxLength:"80" doc:"A factory id, cloud-infra, artifacts, observability or app.{app_id}; absent asks for all but the applications."`
	From   string `query:"from" maxLength:"40" doc:"RFC 3339 instant, inclusive; by default 24 hours before to. The log is kept for 30 days."`
	To     string `query:"to" maxLength:"40" doc:"RFC 3339 instant, exclusive; by default now."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Greatest number of lines in the page."`
	Cursor string `query:"cursor" maxLength:"200" doc:"The nextCursor of the page before."`
}

type alertListOutput struct {
	Body AlertList
}

type alertRoutes struct {
	store  AlertStore
	scopes []string
	now    func() time.Time
}

// Alerts adds the alert log and the silences; factories are those whose alerts
// are listed when no scope is asked for.
func Alerts(store AlertStore, factories []string, now func() time.Time) Routes {
	a := alertRoutes{store: store, now: now}
	a.scopes = append(append(a.scopes, factories...), alert.ScopeCloud, alert.ScopeArtifacts, alert.ScopeObservability)
	return func(r *Router) {
		Handle(r, Operation{
			ID: "list-alerts", Method: http.MethodGet, Path: "/v1/alerts", Tag: "alerts", Scope: monitoring.ScopeRead,
			Summary: "List what became of alerts",
			Description: "Newest first: each alert that was sent, failed, is ambiguous (Slack may have it twice) or was suppressed, with the reason. " +
				"The same suppression again within five minutes counts on one line.",
		}, a.list)
		a.silences(r)
	}
}

// defaultAlertWindow is how far back the list looks unless told.
const defaultAlertWindow = 24 * time.Hour

func (a alertRoutes) list(ctx context.Context, in *listAlertsInput) (*alertListOutput, error) {
	q, err := a.query(in)
	if err != nil {
		return nil, err
	}
	records, next, err := a.store.Records(ctx, q)
	if err != nil {
		return nil, err
	}
	return &alertListOutput{Body: AlertList{Alerts: records, NextCursor: next}}, nil
}

func (a alertRoutes) query(in *listAlertsInput) (alertstore.Query, error) {
	now := a.now()
	q := alertstore.Query{Scopes: a.scopes, To: now, Limit: in.Limit, Cursor: in.Cursor, Now: now}
	if in.Scope != "" {
		if err := alert.CheckScope(in.Scope); err != nil {
			return q, alertProblem("query", err)
		}
		q.Scopes = []string{in.Scope}
	}
	var err error
	if q.To, err = instantOr(in.To, "query.to", now); err != nil {
		return q, err
	}
	if q.From, err = instantOr(in.From, "query.from", q.To.Add(-defaultAlertWindow)); err != nil {
		return q, err
	}
	if !q.From.Before(q.To) {
		return q, invalidInput("query.from", "must be before to")
	}
	return q, nil
}

func instantOr(text, field string, fallback time.Time) (time.Time, error) {
	if text == "" {
		return fallback, nil
	}
	at, err := factory.ParseInstant(text)
	if err != nil {
		return time.Time{}, invalidInput(field, "must be an RFC 3339 instant with a zone")
	}
	return at, nil
}

// alertProblem is the problem of an error of alerts; place says where the input
// stood.
func alertProblem(place string, err error) error {
	var broken *alert.InvalidError
	switch {
	case errors.As(err, &broken):
		return invalidInput(place+"."+broken.Field, broken.Rule)
	case errors.Is(err, alertstore.ErrNoSilence):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such silence")
	case errors.Is(err, alertstore.ErrSilenceExists):
		return NewProblem(http.StatusConflict, "conflict", "another silence has this id")
	case errors.Is(err, alertstore.ErrSilenceChanged):
		return NewProblem(http.StatusConflict, "conflict", "the silence was changed meanwhile: read it again")
	}
	return err
}
