package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/monitoring"
	"millrace/domain/observability"
)

// SignalAlertReader is what the reads of applications' alerts need of the
// governance table.
type SignalAlertReader interface {
	Alerts(ctx context.Context, appID, cursor string, limit int32, now time.Time) ([]observability.Alert, string, error)
	AlertsOn(ctx context.Context, day time.Time, cursor string, limit int32, now time.Time) ([]observability.Alert, string, error)
}

// AppAlertList is a page of alerts of applications, newest first.
type AppAlertList struct {
	Alerts     []observability.Alert `json:"alerts" nullable:"false"`
	NextCursor string                `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end. A page may have fewer than limit before the end."`
}

type appAlertsInput struct {
	AppPath
	Limit  int32  `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before."`
}

type dateAlertsInput struct {
	Date   string `query:"date" required:"true" doc:"A day, UTC, such as 2026-05-04."`
	Limit  int32  `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before; the date stays the same."`
}

type appAlertsOutput struct {
	Body AppAlertList
}

// SignalAlerts adds the reads of what alert rules of applications raised.
func SignalAlerts(reader SignalAlertReader, now func() time.Time) Routes {
	const description = "Newest first. An alert is one firing of a rule; it is kept for 90 days."
	return func(r *Router) {
		Handle(r, Operation{
			ID: "list-app-alerts", Method: http.MethodGet, Path: "/v1/apps/{app_id}/alerts", Tag: "signals", Scope: monitoring.ScopeRead,
			Summary: "Read an application's alerts", Description: description,
		}, func(ctx context.Context, in *appAlertsInput) (*appAlertsOutput, error) {
			if err := observability.CheckAppID(in.AppID); err != nil {
				return nil, signalProblem("path", err)
			}
			alerts, next, err := reader.Alerts(ctx, in.AppID, in.Cursor, in.Limit, now())
			return &appAlertsOutput{Body: AppAlertList{Alerts: alerts, NextCursor: next}}, err
		})
		Handle(r, Operation{
			ID: "list-signal-alerts", Method: http.MethodGet, Path: "/v1/signals/alerts", Tag: "signals", Scope: monitoring.ScopeRead,
			Summary: "Read the alerts of all applications on a day", Description: description,
		}, func(ctx context.Context, in *dateAlertsInput) (*appAlertsOutput, error) {
			day, err := time.Parse(time.DateOnly, in.Date)
			if err != nil {
				return nil, invalidInput("query.date", "must be a day such as 2026-05-04")
			}
			alerts, next, err := reader.AlertsOn(ctx, day, in.Cursor, in.Limit, now())
			return &appAlertsOutput{Body: AppAlertList{Alerts: alerts, NextCursor: next}}, err
		})
	}
}
