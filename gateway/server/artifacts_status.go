package server

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"

	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

func (a artifactRoutes) status(ctx context.Context, in *ArtifactPath) (*statusOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return a.ask(ctx, in)
}

// ask asks the lifecycle how it stands. Of one that Temporal has forgotten the
// store tells what it knows.
func (a artifactRoutes) ask(ctx context.Context, path *ArtifactPath) (*statusOutput, error) {
	var status workflows.Status
	value, err := a.Workflows.QueryWorkflow(ctx, names.ArtifactLifecycleID(path.ID, path.Version), "", workflows.StatusQuery)
	if err == nil {
		err = value.Get(&status)
	}
	if _, forgotten := errors.AsType[*serviceerror.NotFound](err); forgotten {
		return a.remembered(ctx, path)
	}
	if err != nil {
		return nil, temporalProblem(err)
	}
	return &statusOutput{Body: status}, nil
}

func (a artifactRoutes) remembered(ctx context.Context, path *ArtifactPath) (*statusOutput, error) {
	v, err := a.version(ctx, path)
	if err != nil {
		return nil, err
	}
	tally, err := a.tally(ctx, v)
	if err != nil {
		return nil, err
	}
	runs, err := a.Store.Runs(ctx, path.ID, path.Version)
	if err != nil {
		return nil, err
	}
	status := workflows.Status{
		ArtifactID: path.ID, Version: path.Version, Kind: v.Kind, Author: v.Author, State: v.State, Since: v.StateSince, BundleHash: v.BundleHash,
		Tally: tally, Refusals: []workflows.Refusal{}, Runs: []workflows.RunInfo{},
	}
	for _, run := range runs {
		status.Runs = append(status.Runs, workflows.RunInfo{RunID: run.RunID, Role: run.Role, Status: string(run.Status), Detail: run.Detail, At: run.StartedAt})
	}
	return &statusOutput{Body: status}, nil
}
