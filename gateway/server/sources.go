package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// SourceStore is what the routes of sources need of the monitoring store.
type SourceStore interface {
	Ingest(ctx context.Context, owner, id string, o monitoring.Observation, now time.Time) (monitoringstore.Ingested, error)
	Source(ctx context.Context, owner, id string) (monitoring.Source, error)
	Sources(ctx context.Context, owner string, account *monitoringstore.Account, cursor string, limit int) ([]monitoring.Source, string, error)
	SourcesByID(ctx context.Context, owner string, account *monitoringstore.Account, ids []string) ([]monitoring.Source, error)
	Configure(ctx context.Context, owner, id string, edit func(monitoring.Source) (monitoring.Configuration, error)) (monitoring.Source, error)
	DeleteSource(ctx context.Context, owner, id string) error
	Minutes(ctx context.Context, r monitoringstore.MinuteRange) ([]monitoring.Minute, string, error)
}

// SourcePath names a source.
type SourcePath struct {
	SourceID string `path:"source_id" minLength:"1" maxLength:"128" doc:"Id of the source, of the owner's choice: visible characters, no spaces, percent-encoded where a path needs it."`
}

type putSourceInput struct {
	SourcePath
	Body Observation
}

type putSourceOutput struct {
	Status int
	Body   Ingested
}

type sourceOutput struct {
	Body Source
}

type listSourcesInput struct {
	IDs      []string `query:"ids,explode" maxItems:"100" doc:"Only these sources; repeat the parameter for each. Ids without a source are left out, and there is one page."`
	Provider string   `query:"provider" maxLength:"64" doc:"Only sources of this provider's account; goes with account."`
	Account  string   `query:"account" maxLength:"128" doc:"Only sources of this account; goes with provider."`
	Limit    int      `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Greatest number of sources in the page. With an account a page may have fewer before the end."`
	Cursor   string   `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before."`
}

type sourceListOutput struct {
	Body SourceList
}

type sourceRoutes struct {
	store    SourceStore
	now      func() time.Time
	attempts prometheus.Histogram
}

// Sources adds the routes of an owner's sources: observations, the latest state,
// configuration and minute summaries. An owner sees no source of another.
func Sources(store SourceStore, registry prometheus.Registerer, now func() time.Time) Routes {
	s := sourceRoutes{store: store, now: now, attempts: promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
		Name: "millrace_observation_write_attempts", Help: "Writes tried for an observation, 0 for duplicates and reversed ones.",
		Buckets: []float64{0, 1, 2, 4, 8, 16, 40},
	})}
	return func(r *Router) {
		Handle(r, sourceOperation("put-source", http.MethodPut, "/v1/sources/{source_id}", "Send an observation",
			"Creates the source with its first observation (201). A newer observedAt replaces the latest observation and counts into its minute, in one transaction. "+
				"An equal one is a duplicate and an older one reversed: both change nothing, so a retry is safe. A heartbeat refreshes receivedAt only. "+
				"The kind, provider and account of a source never change (409); the preset may.",
			http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable), s.put)
		Handle(r, sourceOperation("list-sources", http.MethodGet, "/v1/sources", "List sources", "In the order of their ids."), s.list)
		Handle(r, sourceOperation("get-source", http.MethodGet, "/v1/sources/{source_id}", "Read a source's latest state",
			"Metrics are in the configured order, without those whose key and unit no longer match a definition.", http.StatusNotFound), s.get)
		Handle(r, sourceOperation("delete-source", http.MethodDelete, "/v1/sources/{source_id}", "Delete a source",
			"Its minutes stay until they expire. Idempotent: deleting what is not there answers 204 too.", http.StatusServiceUnavailable), s.remove)
		s.configurationRoutes(r)
		s.minuteRoutes(r)
	}
}

func sourceOperation(id, method, path, summary, description string, problems ...int) Operation {
	op := Operation{
		ID: id, Method: method, Path: path, Tag: "sources", Summary: summary, Description: description,
		Scope: monitoring.ScopeWrite, Problems: problems,
	}
	if method == http.MethodGet {
		op.Scope = monitoring.ScopeRead
	}
	if method == http.MethodPut {
		op.Also = []int{http.StatusCreated}
	}
	return op
}

func (s sourceRoutes) put(ctx context.Context, in *putSourceInput) (*putSourceOutput, error) {
	now := s.now()
	observation := in.Body.observation()
	if err := checkSourceID(in.SourceID); err != nil {
		return nil, err
	}
	if err := observation.Check(now); err != nil {
		return nil, inBody(err)
	}
	done, err := s.store.Ingest(ctx, PrincipalFrom(ctx).Owner, in.SourceID, observation, now)
	if err != nil {
		return nil, sourceProblem(err)
	}
	s.attempts.Observe(float64(done.Attempts))
	out := &putSourceOutput{Status: http.StatusOK, Body: Ingested{
		Outcome: string(done.Outcome), Sampled: done.Sampled, Source: sourceOf(done.Next, now),
	}}
	if done.Created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (s sourceRoutes) get(ctx context.Context, in *SourcePath) (*sourceOutput, error) {
	source, err := s.source(ctx, in.SourceID)
	if err != nil {
		return nil, err
	}
	return &sourceOutput{Body: sourceOf(source, s.now())}, nil
}

func (s sourceRoutes) source(ctx context.Context, id string) (monitoring.Source, error) {
	if err := checkSourceID(id); err != nil {
		return monitoring.Source{}, err
	}
	source, err := s.store.Source(ctx, PrincipalFrom(ctx).Owner, id)
	return source, sourceProblem(err)
}

func (s sourceRoutes) remove(ctx context.Context, in *SourcePath) (*struct{}, error) {
	if err := checkSourceID(in.SourceID); err != nil {
		return nil, err
	}
	return nil, sourceProblem(s.store.DeleteSource(ctx, PrincipalFrom(ctx).Owner, in.SourceID))
}

func (s sourceRoutes) list(ctx context.Context, in *listSourcesInput) (*sourceListOutput, error) {
	account, err := in.account()
	if err != nil {
		return nil, err
	}
	sources, next, err := s.listed(ctx, in, account)
	if err != nil {
		return nil, err
	}
	out := &sourceListOutput{Body: SourceList{Sources: make([]Source, len(sources)), NextCursor: next}}
	now := s.now()
	for i, source := range sources {
		out.Body.Sources[i] = sourceOf(source, now)
	}
	return out, nil
}

func (s sourceRoutes) listed(ctx context.Context, in *listSourcesInput, account *monitoringstore.Account) ([]monitoring.Source, string, error) {
	owner := PrincipalFrom(ctx).Owner
	if len(in.IDs) == 0 {
		return s.store.Sources(ctx, owner, account, in.Cursor, in.Limit)
	}
	if in.Cursor != "" {
		return nil, "", invalidInput("query.cursor", "must not be given with ids")
	}
	for i, id := range in.IDs {
		if monitoring.CheckSourceID(id) != nil {
			return nil, "", invalidInput(fmt.Sprintf("query.ids[%d]", i), "must be the id of a source")
		}
	}
	sources, err := s.store.SourcesByID(ctx, owner, account, in.IDs)
	return sources, "", err
}

func (in *listSourcesInput) account() (*monitoringstore.Account, error) {
	if in.Provider == "" && in.Account == "" {
		return nil, nil
	}
	if err := monitoring.CheckAccount(in.Provider, in.Account); err != nil {
		return nil, under("query", err)
	}
	return &monitoringstore.Account{Provider: in.Provider, Account: in.Account}, nil
}

func checkSourceID(id string) error {
	if monitoring.CheckSourceID(id) != nil {
		return invalidInput("path.source_id", "must have 1 to 128 visible characters and no spaces")
	}
	return nil
}

// inBody says that a field which breaks a rule is one of the body.
func inBody(err error) error { return under("body", err) }

func under(place string, err error) error {
	var broken *monitoring.InvalidError
	if errors.As(err, &broken) && !strings.HasPrefix(broken.Field, place+".") {
		return invalidInput(place+"."+broken.Field, broken.Rule)
	}
	return err
}

// sourceProblem is the problem of an error of the store.
func sourceProblem(err error) error {
	var changed *monitoring.IdentityError
	var unknown *monitoring.UnknownSourceError
	switch {
	case errors.Is(err, monitoringstore.ErrSourceNotFound):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such source")
	case errors.As(err, &unknown):
		return NewProblem(http.StatusNotFound, "not-found", "a heartbeat needs a source: send an observation first")
	case errors.As(err, &changed):
		return NewProblem(http.StatusConflict, "identity-changed", changed.Field+" of a source never changes: delete the source, or use another id").
			WithField("body."+changed.Field, fmt.Sprintf("must stay %q", changed.Have))
	case errors.Is(err, monitoring.ErrMinuteFull):
		return NewProblem(http.StatusConflict, "minute-full", monitoring.ErrMinuteFull.Error())
	case errors.Is(err, monitoringstore.ErrContended):
		return NewProblem(http.StatusServiceUnavailable, "contended", "the source is written by too many at once; nothing was written").
			WithHeader("Retry-After", "1").Because(err)
	}
	return err
}
