package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
)

// SilenceTerms are what a silence says.
type SilenceTerms struct {
	Reason string    `json:"reason,omitempty" maxLength:"200" doc:"Slug of the alerts that are silenced; absent silences the whole scope." example:"nodes_all_not_ready"`
	Until  time.Time `json:"until" doc:"When it ends, at most 30 days ahead."`
	Why    string    `json:"why" minLength:"1" maxLength:"500" doc:"Why it is needed; shown with every alert that it holds back." example:"planned maintenance"`
}

// SilenceRequest asks for a silence.
type SilenceRequest struct {
	ID     string    `json:"id,omitempty" pattern:"^[a-z0-9]{8,64}$" doc:"An id of your own, so that a retry after a lost answer changes nothing; by default a new one."`
	Scope  string    `json:"scope" maxLength:"80" doc:"A factory id, cloud-infra, artifacts, observability or app.{app_id}."`
	Reason string    `json:"reason,omitempty" maxLength:"200" doc:"Slug of the alerts that are silenced; absent silences the whole scope." example:"nodes_all_not_ready"`
	Until  time.Time `json:"until" doc:"When it ends, at most 30 days ahead."`
	Why    string    `json:"why" minLength:"1" maxLength:"500" doc:"Why it is needed; shown with every alert that it holds back." example:"planned maintenance"`
}

// SilenceList are the silences of a scope that hold now.
type SilenceList struct {
	Silences []alert.Silence `json:"silences" nullable:"false"`
}

// SilencePath names a silence.
type SilencePath struct {
	Scope string `path:"scope" maxLength:"80" doc:"The scope that it silences."`
	ID    string `path:"silence_id" pattern:"^[a-z0-9]{8,64}$" doc:"Id of the silence."`
}

type createSilenceInput struct {
	Body SilenceRequest
}

type changeSilenceInput struct {
	SilencePath
	Body SilenceTerms
}

type listSilencesInput struct {
	Scope string `query:"scope" required:"true" maxLength:"80" doc:"The scope whose silences are listed."`
}

type createdSilenceOutput struct {
	Location string `header:"Location"`
	Body     alert.Silence
}

type silenceOutput struct {
	Body alert.Silence
}

type silenceListOutput struct {
	Body SilenceList
}

const silencesPath = "/v1/alerts/silences"

func (a alertRoutes) silences(r *Router) {
	one := silencesPath + "/{scope}/{silence_id}"
	Handle(r, silenceOperation("create-silence", http.MethodPost, silencesPath, "Silence alerts",
		"The alerts are recorded as suppressed all the same. The owner of the token is written down as who did it."), a.createSilence)
	Handle(r, silenceOperation("list-silences", http.MethodGet, silencesPath, "List the silences of a scope", "Those that hold now."), a.listSilences)
	Handle(r, silenceOperation("get-silence", http.MethodGet, one, "Read a silence", "Also one that is over, for 30 days."), a.getSilence)
	Handle(r, silenceOperation("change-silence", http.MethodPut, one, "Change a silence", "Replaces reason, end and why."), a.changeSilence)
	Handle(r, silenceOperation("delete-silence", http.MethodDelete, one, "End a silence", "Idempotent: ending none answers 204 too."), a.deleteSilence)
}

func silenceOperation(id, method, path, summary, description string) Operation {
	op := Operation{
		ID: id, Method: method, Path: path, Tag: "alerts", Summary: summary, Description: description,
		Scope: monitoring.ScopeAdmin, MaxBody: 8 << 10,
	}
	switch id {
	case "create-silence":
		op.Status, op.Problems = http.StatusCreated, []int{http.StatusConflict}
	case "get-silence":
		op.Problems = []int{http.StatusNotFound}
	case "change-silence":
		op.Problems = []int{http.StatusNotFound, http.StatusConflict}
	}
	return op
}

func (a alertRoutes) createSilence(ctx context.Context, in *createSilenceInput) (*createdSilenceOutput, error) {
	now := factory.MillisOf(a.now())
	s := alert.Silence{
		ID: in.Body.ID, Scope: in.Body.Scope, Reason: in.Body.Reason, Until: factory.MillisOf(in.Body.Until), Why: in.Body.Why,
		CreatedBy: PrincipalFrom(ctx).Owner, CreatedAt: now, UpdatedAt: now,
	}
	own := s.ID != ""
	if !own {
		s.ID = strings.ToLower(rand.Text())
	}
	if err := s.Check(now.Time); err != nil {
		return nil, alertProblem("body", err)
	}
	if own {
		// A retry is the same silence, though it comes later.
		if stored, err := a.store.Silence(ctx, s.Scope, s.ID); err == nil && sameTerms(stored, s) {
			s = stored
		}
	}
	if err := a.store.CreateSilence(ctx, s); err != nil {
		return nil, alertProblem("body", err)
	}
	return &createdSilenceOutput{Location: silencesPath + "/" + url.PathEscape(s.Scope) + "/" + s.ID, Body: s}, nil
}

func sameTerms(a, b alert.Silence) bool {
	return a.Reason == b.Reason && a.Until.Equal(b.Until.Time) && a.Why == b.Why && a.CreatedBy == b.CreatedBy
}

func (a alertRoutes) listSilences(ctx context.Context, in *listSilencesInput) (*silenceListOutput, error) {
	if err := alert.CheckScope(in.Scope); err != nil {
		return nil, alertProblem("query", err)
	}
	silences, err := a.store.Silences(ctx, in.Scope, a.now())
	if err != nil {
		return nil, err
	}
	return &silenceListOutput{Body: SilenceList{Silences: silences}}, nil
}

func (in SilencePath) check() error {
	if err := alert.CheckScope(in.Scope); err != nil {
		return alertProblem("path", err)
	}
	return nil
}

func (a alertRoutes) getSilence(ctx context.Context, in *SilencePath) (*silenceOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	s, err := a.store.Silence(ctx, in.Scope, in.ID)
	if err != nil {
		return nil, alertProblem("path", err)
	}
	return &silenceOutput{Body: s}, nil
}

func (a alertRoutes) changeSilence(ctx context.Context, in *changeSilenceInput) (*silenceOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	s, err := a.store.Silence(ctx, in.Scope, in.ID)
	if err != nil {
		return nil, alertProblem("path", err)
	}
	was, now := s.UpdatedAt, a.now()
	s.Reason, s.Until, s.Why = in.Body.Reason, factory.MillisOf(in.Body.Until), in.Body.Why
	s.UpdatedAt = factory.MillisOf(now)
	if !s.UpdatedAt.After(was.Time) {
		s.UpdatedAt = factory.MillisOf(was.Add(time.Millisecond))
	}
	if err := s.Check(now); err != nil {
		return nil, alertProblem("body", err)
	}
	if err := a.store.ChangeSilence(ctx, s, was); err != nil {
		return nil, alertProblem("path", err)
	}
	return &silenceOutput{Body: s}, nil
}

func (a alertRoutes) deleteSilence(ctx context.Context, in *SilencePath) (*struct{}, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return nil, a.store.DeleteSilence(ctx, in.Scope, in.ID)
}
