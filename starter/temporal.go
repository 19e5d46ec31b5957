package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/platform/temporalconf"
)

func dial(ctx context.Context, logger *slog.Logger) (client.Client, error) {
	return temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
}

// start starts a workflow unless one with its id runs already, and tells whether
// it did.
func start(ctx context.Context, c client.Client, options client.StartWorkflowOptions, workflow string, input any) (bool, error) {
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	_, err := c.ExecuteWorkflow(ctx, options, workflow, input)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &running):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("start %s: %w", options.ID, err)
	}
	return true, nil
}
