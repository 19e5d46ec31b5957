package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/domain/observability"
	observabilitystore "millrace/storage/observability"
)

// AggregateReader is what the reads of aggregates need of the governance table.
type AggregateReader interface {
	Aggregates(ctx context.Context, q observabilitystore.AggregateQuery, now time.Time) ([]observability.Aggregate, string, error)
	AggregatesOn(ctx context.Context, p observability.Period, cursor string, limit int32, now time.Time) ([]observability.Aggregate, string, error)
}

// SignalAggregate is what an application did in one period.
type SignalAggregate struct {
	AppID       string    `json:"app_id"`
	Granularity string    `json:"granularity" enum:"hourly,daily,monthly"`
	Start       time.Time `json:"start" doc:"First instant of the period, UTC."`
	End         time.Time `json:"end" doc:"First instant after it."`
	// Counters that are absent are 0.
	Counters map[string]exact.Decimal `json:"counters" doc:"Exact sums by name; one that is absent is 0. {protocol}_request_count counts signals of the type request; lat_{bound} those that took at most bound ms and more than the bound before (1-2-5 from 1 to 100000, then inf)."`
	Rates    observability.Rates      `json:"rates" doc:"Computed when read. A percentile lies between lower and upper for certain; value is interpolated and off by less than their distance, at most 60 % of upper."`
}

// SignalAggregateList is a page of aggregates.
type SignalAggregateList struct {
	Aggregates []SignalAggregate `json:"aggregates" nullable:"false"`
	NextCursor string            `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end. A page may have fewer than limit before the end."`
}

// AppPath names an application.
type AppPath struct {
	AppID string `path:"app_id" maxLength:"64" doc:"Id of the application: A-Z, a-z, 0-9, dot, underscore and dash."`
}

type appAggregatesInput struct {
	AppPath
	Granularity string `query:"granularity" enum:"hourly,daily,monthly" default:"hourly"`
	From        string `query:"from" doc:"First period: an RFC 3339 instant, a day (2026-05-04) or a month (2026-05), UTC. By default a day, a month or a year before to."`
	To          string `query:"to" doc:"End, not included; by default now."`
	Limit       int32  `query:"limit" minimum:"1" maximum:"1000" default:"200"`
	Cursor      string `query:"cursor" maxLength:"1024" doc:"The nextCursor of the page before; the other parameters stay the same."`
}

type dateAggregatesInput struct {
	Date        string `query:"date" required:"true" doc:"A day (2026-05-04) for hourly and daily aggregates, a month (2026-05) for monthly ones."`
	Granularity string `query:"granularity" enum:"hourly,daily" doc:"Of a day: daily by default. Not for a month."`
	Limit       int32  `query:"limit" minimum:"1" maximum:"1000" default:"200"`
	Cursor      string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before; the other parameters stay the same."`
}

type aggregateListOutput struct {
	Body SignalAggregateList
}

// Aggregates adds the reads of aggregates.
func Aggregates(reader AggregateReader, now func() time.Time) Routes {
	return func(r *Router) {
		Handle(r, Operation{
			ID: "list-app-aggregates", Method: http.MethodGet, Path: "/v1/apps/{app_id}/aggregates", Tag: "signals", Scope: monitoring.ScopeRead,
			Summary: "Read an application's aggregates", Description: "Oldest first. Signals are counted every five minutes, in the period of their timestamp. An application that was never seen has none.",
		}, func(ctx context.Context, in *appAggregatesInput) (*aggregateListOutput, error) {
			query, err := in.query(now())
			if err != nil {
				return nil, err
			}
			list, next, err := reader.Aggregates(ctx, query, now())
			return aggregateList(list, next), err
		})
		Handle(r, Operation{
			ID: "list-aggregates", Method: http.MethodGet, Path: "/v1/aggregates", Tag: "signals", Scope: monitoring.ScopeRead,
			Summary: "Read the aggregates of all applications", Description: "Those of one day or month, by application.",
		}, func(ctx context.Context, in *dateAggregatesInput) (*aggregateListOutput, error) {
			period, err := in.period()
			if err != nil {
				return nil, err
			}
			list, next, err := reader.AggregatesOn(ctx, period, in.Cursor, in.Limit, now())
			return aggregateList(list, next), err
		})
	}
}

func (in *appAggregatesInput) query(now time.Time) (observabilitystore.AggregateQuery, error) {
	if err := observability.CheckAppID(in.AppID); err != nil {
		return observabilitystore.AggregateQuery{}, signalProblem("path", err)
	}
	q := observabilitystore.AggregateQuery{
		AppID: in.AppID, Granularity: observability.Granularity(in.Granularity), To: now, Cursor: in.Cursor, Limit: in.Limit,
	}
	var ok bool
	if in.To != "" {
		if q.To, ok = momentOf(in.To); !ok {
			return q, invalidInput("query.to", "must be an RFC 3339 instant, a day or a month")
		}
	}
	q.From = map[observability.Granularity]time.Time{
		observability.Hourly: q.To.AddDate(0, 0, -1), observability.Daily: q.To.AddDate(0, -1, 0), observability.Monthly: q.To.AddDate(-1, 0, 0),
	}[q.Granularity]
	if in.From != "" {
		if q.From, ok = momentOf(in.From); !ok {
			return q, invalidInput("query.from", "must be an RFC 3339 instant, a day or a month")
		}
	}
	if !q.From.Before(q.To) {
		return q, invalidInput("query.from", "must be before to")
	}
	q.To = q.To.Add(-1) // the end is not included
	return q, nil
}

// momentOf reads an instant; a day or a month stands for its first one, UTC. Keys
// have years of four digits: a zone must not lead out of them.
func momentOf(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01"} {
		if at, err := time.Parse(layout, text); err == nil {
			year := at.UTC().Year()
			return at.UTC(), year >= 0 && year <= 9999
		}
	}
	return time.Time{}, false
}

func (in *dateAggregatesInput) period() (observability.Period, error) {
	if day, err := time.Parse(time.DateOnly, in.Date); err == nil {
		granularity := observability.Daily
		if in.Granularity != "" {
			granularity = observability.Granularity(in.Granularity)
		}
		return observability.PeriodOf(granularity, day), nil
	}
	month, err := time.Parse("2006-01", in.Date)
	switch {
	case err != nil:
		return observability.Period{}, invalidInput("query.date", "must be a day such as 2026-05-04 or a month such as 2026-05")
	case in.Granularity != "":
		return observability.Period{}, invalidInput("query.granularity", "goes with a day only")
	}
	return observability.PeriodOf(observability.Monthly, month), nil
}

func aggregateList(list []observability.Aggregate, next string) *aggregateListOutput {
	out := &aggregateListOutput{Body: SignalAggregateList{Aggregates: make([]SignalAggregate, len(list)), NextCursor: next}}
	for i, a := range list {
		out.Body.Aggregates[i] = SignalAggregate{
			AppID: a.AppID, Granularity: string(a.Granularity), Start: a.Start, End: a.End(), Counters: a.Counters, Rates: a.Counters.Rates(),
		}
	}
	return out
}
