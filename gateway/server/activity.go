package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// TrendReader is what the routes of trends and activity need of the monitoring
// store.
type TrendReader interface {
	Trend(ctx context.Context, owner string, account *monitoringstore.Account, span monitoring.Span, now time.Time) (*monitoring.Trend, error)
}

// Trend is the agents of one account over time.
type Trend struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
	SpanShape
	Buckets []TrendBucket `json:"buckets" nullable:"false"`
}

// SpanShape is a stretch of time in equal buckets, the last of which holds now.
type SpanShape struct {
	Range       string    `json:"range" enum:"hour,day,week"`
	From        time.Time `json:"from" doc:"Inclusive."`
	To          time.Time `json:"to" doc:"Exclusive."`
	StepSeconds int64     `json:"stepSeconds" doc:"Length of a bucket: 60 for an hour, 900 for a day, 3600 for a week."`
}

// TrendBucket is the minutes of one bucket put together.
type TrendBucket struct {
	Start       time.Time `json:"start"`
	SampleCount int64     `json:"sampleCount"`
	SourceCount int       `json:"sourceCount" doc:"Agents with an observation in the bucket."`
	Metrics     []Summary `json:"metrics" nullable:"false"`
}

// Activity is how busy the owner's agents were.
type Activity struct {
	SpanShape
	Buckets []ActivityBucket `json:"buckets" nullable:"false"`
}

// ActivityBucket counts the observations of one bucket.
type ActivityBucket struct {
	Start        time.Time `json:"start"`
	SampleCount  int64     `json:"sampleCount"`
	ActiveAgents int       `json:"activeAgents" doc:"Agents with an observation in the bucket."`
}

// RangeQuery is how far to look back.
type RangeQuery struct {
	Range string `query:"range" enum:"hour,day,week" default:"hour" doc:"How far to look back."`
}

type trendInput struct {
	Provider string `path:"provider" maxLength:"64"`
	Account  string `path:"account" maxLength:"128"`
	RangeQuery
}

type trendOutput struct {
	Body Trend
}

type activityOutput struct {
	Body Activity
}

type activityRoutes struct {
	reader TrendReader
	now    func() time.Time
}

// Activities adds the routes of account trends and of the owner's activity. Both
// are computed from retained minutes when they are asked for.
func Activities(reader TrendReader, now func() time.Time) Routes {
	a := activityRoutes{reader: reader, now: now}
	return func(r *Router) {
		Handle(r, Operation{
			ID: "get-account-trend", Method: http.MethodGet, Path: "/v1/accounts/{provider}/{account}/trend", Tag: "activity",
			Scope: monitoring.ScopeRead, Summary: "Read an account's trend",
			Description: "The minutes of all agents of the account put together, bucket by bucket; empty buckets are there too. Deleted agents are not counted.",
		}, a.trend)
		Handle(r, Operation{
			ID: "get-activity", Method: http.MethodGet, Path: "/v1/activity", Tag: "activity",
			Scope: monitoring.ScopeRead, Summary: "Read the activity of the owner's agents",
			Description: "The older form of trends, over all accounts: how many observations and active agents each bucket has.",
		}, a.activity)
	}
}

func (a activityRoutes) trend(ctx context.Context, in *trendInput) (*trendOutput, error) {
	if err := monitoring.CheckAccount(in.Provider, in.Account); err != nil {
		return nil, under("path", err)
	}
	trend, shape, err := a.read(ctx, &monitoringstore.Account{Provider: in.Provider, Account: in.Account}, in.Range)
	if err != nil {
		return nil, err
	}
	out := &trendOutput{Body: Trend{Provider: in.Provider, Account: in.Account, SpanShape: shape, Buckets: make([]TrendBucket, len(trend.Buckets))}}
	for i, b := range trend.Buckets {
		out.Body.Buckets[i] = TrendBucket{Start: b.Start, SampleCount: b.SampleCount, SourceCount: b.SourceCount, Metrics: summariesOf(b.Series)}
	}
	return out, nil
}

func (a activityRoutes) activity(ctx context.Context, in *RangeQuery) (*activityOutput, error) {
	trend, shape, err := a.read(ctx, nil, in.Range)
	if err != nil {
		return nil, err
	}
	out := &activityOutput{Body: Activity{SpanShape: shape, Buckets: make([]ActivityBucket, len(trend.Buckets))}}
	for i, b := range trend.Buckets {
		out.Body.Buckets[i] = ActivityBucket{Start: b.Start, SampleCount: b.SampleCount, ActiveAgents: b.SourceCount}
	}
	return out, nil
}

func (a activityRoutes) read(ctx context.Context, account *monitoringstore.Account, name string) (*monitoring.Trend, SpanShape, error) {
	now := a.now()
	span, err := monitoring.SpanOf(name, now)
	if err != nil {
		return nil, SpanShape{}, under("query", err)
	}
	trend, err := a.reader.Trend(ctx, PrincipalFrom(ctx).Owner, account, span, now)
	if err != nil {
		return nil, SpanShape{}, under("query", err)
	}
	return trend, SpanShape{Range: name, From: span.From, To: span.To, StepSeconds: int64(span.Step.Seconds())}, nil
}
