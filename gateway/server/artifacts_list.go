package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/artifact"
	"millrace/domain/monitoring"
	storage "millrace/storage/artifact"
)

// PageInput asks for a page of a list, the newest first.
type PageInput struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"nextCursor of the page before."`
	Limit  int32  `query:"limit" minimum:"1" maximum:"100" default:"50"`
}

func (p PageInput) page() storage.Page {
	return storage.Page{Limit: p.Limit, Cursor: p.Cursor, Descending: true}
}

type byStateInput struct {
	PageInput

	State string `query:"state" default:"in_review" doc:"State of the versions."`
}

type byActorInput struct {
	PageInput

	Approver string `query:"approver" required:"true" maxLength:"128" example:"user:kim"`
}

type byDayInput struct {
	PageInput

	Day string `query:"day" format:"date" doc:"A UTC day, 2006-01-02; today by default."`
}

type byUndoInput struct {
	PageInput

	State string `query:"state" enum:"pending,running,compensated,failed" default:"running"`
}

func (a artifactRoutes) addLists(r *Router) {
	read := func(id, path, summary string) Operation {
		return Operation{ID: id, Method: http.MethodGet, Path: path, Tag: "artifacts", Scope: monitoring.ScopeRead, Summary: summary}
	}
	Handle(r, read("list-artifacts", artifactsPath, "List versions by state"), a.byState)
	Handle(r, read("list-artifact-decisions", "/v1/artifact-approvals", "List the decisions of an approver"), a.byActor)
	Handle(r, read("list-artifact-transitions-of-day", "/v1/artifact-transitions", "List the changes of state of a day"), a.transitionsOn)
	Handle(r, read("list-artifact-runs-of-day", "/v1/artifact-runs", "List the runs that began on a day"), a.runsOn)
	Handle(r, read("list-artifact-compensations", "/v1/artifact-compensations", "List the undos in a state"), a.undos)
}

func (a artifactRoutes) byState(ctx context.Context, in *byStateInput) (*pageOutput[ArtifactVersion], error) {
	state := artifact.State(in.State)
	if !state.Known() {
		return nil, invalidInput("query.state", "must be a state of an artifact")
	}
	items, next, err := a.Store.InState(ctx, state, in.page())
	return listOf(versionView, items, next, err)
}

func (a artifactRoutes) byActor(ctx context.Context, in *byActorInput) (*pageOutput[ArtifactApproval], error) {
	if err := artifact.CheckActor("approver", in.Approver); err != nil {
		return nil, artifactProblem("query", err)
	}
	items, next, err := a.Store.ByApprover(ctx, in.Approver, in.page())
	return listOf(approvalView, items, next, err)
}

func (a artifactRoutes) day(in string) (string, error) {
	if in == "" {
		return artifact.Date(a.Now()), nil
	}
	if _, err := time.Parse(time.DateOnly, in); err != nil {
		return "", invalidInput("query.day", "must be a day such as 2026-05-31")
	}
	return in, nil
}

func (a artifactRoutes) transitionsOn(ctx context.Context, in *byDayInput) (*pageOutput[ArtifactTransition], error) {
	day, err := a.day(in.Day)
	if err != nil {
		return nil, err
	}
	items, next, err := a.Store.TransitionsOn(ctx, day, in.page())
	return listOf(transitionView, items, next, err)
}

func (a artifactRoutes) runsOn(ctx context.Context, in *byDayInput) (*pageOutput[ArtifactRun], error) {
	day, err := a.day(in.Day)
	if err != nil {
		return nil, err
	}
	items, next, err := a.Store.RunsOn(ctx, day, in.page())
	return listOf(runView, items, next, err)
}

func (a artifactRoutes) undos(ctx context.Context, in *byUndoInput) (*pageOutput[ArtifactCompensation], error) {
	items, next, err := a.Store.CompensationsIn(ctx, storage.CompensationState(in.State), in.page())
	return listOf(undoView, items, next, err)
}
