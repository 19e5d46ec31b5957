package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// defaultMinutes is the range of minutes that is read when none is given.
const defaultMinutes = time.Hour

// MinuteList is a page of a source's minutes, oldest first.
type MinuteList struct {
	SourceID   string    `json:"sourceId"`
	From       time.Time `json:"from" doc:"Inclusive."`
	To         time.Time `json:"to" doc:"Exclusive."`
	Minutes    []Minute  `json:"minutes" nullable:"false"`
	NextCursor string    `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end."`
}

// Minute is the summary of one minute of a source.
type Minute struct {
	Minute       time.Time `json:"minute" doc:"First instant of the minute."`
	Kind         string    `json:"kind" enum:"agent,resource"`
	ResourceType string    `json:"resourceType,omitempty"`
	SampleCount  int64     `json:"sampleCount" doc:"Observations counted."`
	Metrics      []Summary `json:"metrics" nullable:"false"`
}

// Summary is one metric over a stretch of time.
type Summary struct {
	MetricDefinition
	ValidCount int64          `json:"validCount" doc:"Observations with a value; nulls do not count."`
	Sum        exact.Decimal  `json:"sum" doc:"Exact."`
	Mean       *exact.Decimal `json:"mean" nullable:"true" doc:"sum / validCount, rounded half-even to 9 decimal places; null without a value."`
	Max        *exact.Decimal `json:"max" nullable:"true" doc:"null without a value."`
}

type minutesInput struct {
	SourcePath
	From   time.Time `query:"from" doc:"First instant, by default an hour before to."`
	To     time.Time `query:"to" doc:"Instant after the last minute, by default now."`
	Limit  int       `query:"limit" minimum:"1" maximum:"1440" default:"500" doc:"Greatest number of minutes read for the page."`
	Cursor string    `query:"cursor" maxLength:"256" doc:"The nextCursor of the page before."`
}

type minutesOutput struct {
	Body MinuteList
}

func (s sourceRoutes) minuteRoutes(r *Router) {
	Handle(r, sourceOperation("list-source-minutes", http.MethodGet, "/v1/sources/{source_id}/minutes", "Read a source's minutes",
		"The retained minutes that begin in [from, to), oldest first. Only metrics that match the source's current definitions are shown, and nothing of what the id was before it was used again. "+
			"The minutes of a deleted source are shown as they were recorded."), s.minutes)
}

func (s sourceRoutes) minutes(ctx context.Context, in *minutesInput) (*minutesOutput, error) {
	if err := checkSourceID(in.SourceID); err != nil {
		return nil, err
	}
	r, err := in.minuteRange(PrincipalFrom(ctx).Owner, s.now())
	if err != nil {
		return nil, err
	}
	source, err := s.store.Source(ctx, r.Owner, in.SourceID)
	deleted := errors.Is(err, monitoringstore.ErrSourceNotFound)
	if err != nil && !deleted {
		return nil, err
	}
	minutes, next, err := s.store.Minutes(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &minutesOutput{Body: MinuteList{SourceID: in.SourceID, From: r.From, To: r.To, Minutes: []Minute{}, NextCursor: next}}
	for _, m := range minutes {
		for _, view := range viewsOf(m, source, deleted) {
			out.Body.Minutes = append(out.Body.Minutes, minuteOf(view))
		}
	}
	return out, nil
}

func viewsOf(m monitoring.Minute, source monitoring.Source, deleted bool) []monitoring.MinuteView {
	if deleted {
		return m.AsRecorded()
	}
	if view, shown := source.Project(m); shown {
		return []monitoring.MinuteView{view}
	}
	return nil
}

func (in *minutesInput) minuteRange(owner string, now time.Time) (monitoringstore.MinuteRange, error) {
	r := monitoringstore.MinuteRange{
		Owner: owner, SourceID: in.SourceID, From: in.From.UTC(), To: in.To.UTC(), Cursor: in.Cursor, Limit: in.Limit, Now: now,
	}
	if in.To.IsZero() {
		r.To = monitoring.MinuteOf(now).Add(time.Minute)
	}
	if in.From.IsZero() {
		r.From = r.To.Add(-defaultMinutes)
	}
	if !r.From.Before(r.To) {
		return r, invalidInput("query.from", "must be before to")
	}
	return r, nil
}

func minuteOf(v monitoring.MinuteView) Minute {
	return Minute{
		Minute: v.Start, Kind: v.Identity.Kind, ResourceType: v.Identity.ResourceType,
		SampleCount: v.SampleCount, Metrics: summariesOf(v.Series),
	}
}

func summariesOf(series []monitoring.Series) []Summary {
	summaries := make([]Summary, len(series))
	for i, r := range series {
		summaries[i] = Summary{MetricDefinition: MetricDefinition(r.Definition), ValidCount: r.ValidCount, Sum: r.Sum, Mean: r.Mean, Max: r.Max}
	}
	return summaries
}
