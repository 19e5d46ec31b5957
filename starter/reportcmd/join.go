package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// awaitedNote tells of a report that another run made, by that run's options.
const awaitedNote = "(made by another run)"

// RunningError tells that another run on the day was asked for something else.
type RunningError struct {
	WorkflowID string
	Input      workflows.DailyInput
}

// Error says what runs and what can be done.
func (e *RunningError) Error() string {
	return fmt.Sprintf("%s is running already and was asked for something else (%s): wait for its end, or watch it with --join; nothing was started",
		e.WorkflowID, asksFor(e.Input))
}

// asksFor tells an input in words.
func asksFor(in workflows.DailyInput) string {
	targets := "all targets"
	if len(in.Targets) > 0 {
		targets = "targets " + strings.Join(in.Targets, ", ")
	} else if len(in.Factories) > 0 {
		targets = "factories " + strings.Join(in.Factories, ", ")
	}
	parts := []string{targets}
	if in.Model != "" {
		parts = append(parts, "model "+in.Model)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{in.Force, "ask again"}, {in.Notify, "notify"}, {in.Quiet, "quiet"}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, "; ")
}

// start starts a run. Where one on the day is running, it is joined if it was
// asked for the same, or if that does not matter.
func (c *RunCommand) start(ctx context.Context, temporal client.Client, options client.StartWorkflowOptions, input workflows.DailyInput) (run client.WorkflowRun, joined bool, err error) {
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err = temporal.ExecuteWorkflow(ctx, options, names.DailyReport, input)
	running, already := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	switch {
	case err == nil:
		return run, false, nil
	case !already:
		return nil, false, fmt.Errorf("start %s: %w", options.ID, err)
	case !c.Join:
		other, err := inputOf(ctx, temporal, options.ID, running.RunId)
		if err != nil {
			return nil, false, fmt.Errorf("%s is running already, and what it was asked for can't be read: %w", options.ID, err)
		}
		if !reflect.DeepEqual(other, input) {
			return nil, false, &RunningError{WorkflowID: options.ID, Input: other}
		}
	}
	return temporal.GetWorkflow(ctx, options.ID, running.RunId), true, nil
}

// inputOf is what a run was started with: its first event has it.
func inputOf(ctx context.Context, temporal client.Client, id, runID string) (workflows.DailyInput, error) {
	var input workflows.DailyInput
	history := temporal.GetWorkflowHistory(ctx, id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !history.HasNext() {
		return input, errors.New("it has no history")
	}
	event, err := history.Next()
	if err != nil {
		return input, fmt.Errorf("read history: %w", err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(event.GetWorkflowExecutionStartedEventAttributes().GetInput(), &input); err != nil {
		return input, fmt.Errorf("read input: %w", err)
	}
	return input, nil
}
