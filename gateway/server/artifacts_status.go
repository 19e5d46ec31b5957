package server

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

func (a artifactRoutes) status(ctx context.Context, in *ArtifactPath) (*statusOutput, error) {
	if err := in.readable(); err != nil {
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
	if status.State == artifact.None {
		return a.unborn(ctx, path, status)
	}
	return &statusOutput{Body: status}, nil
}

// unborn tells of a lifecycle that has written no version whether it is still at
// it, or why it refused the submission: its own state does not outlive that.
func (a artifactRoutes) unborn(ctx context.Context, path *ArtifactPath, status workflows.Status) (*statusOutput, error) {
	status.ArtifactID, status.Version = path.ID, path.Version
	id := names.ArtifactLifecycleID(path.ID, path.Version)
	described, err := a.Workflows.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return nil, temporalProblem(err)
	}
	if described.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		status.WaitingFor = "the content to be checked"
		return &statusOutput{Body: status}, nil
	}
	status.WaitingFor = "nothing: the submission was refused"
	err = a.Workflows.GetWorkflow(ctx, id, "").Get(ctx, nil)
	if refused, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		status.Refused = 1
		status.Refusals = []workflows.Refusal{{At: described.WorkflowCloseTime.UTC(), Verb: artifact.Create, Actor: status.Author, Reason: refused.Message()}}
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
