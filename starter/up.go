package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/platform/temporalconf"
	artifacts "millrace/workflows/artifact"
	workflows "millrace/workflows/factory"
	"millrace/workflows/names"
)

// upCommand starts the workflows that run as long as the product does.
type upCommand struct {
	Consumers        int  `help:"Number of interchangeable consumers of the telemetry queue." default:"1" env:"MILLRACE_CONSUMERS"`
	SearchAttributes bool `name:"artifact-search-attributes" help:"Make the search attributes of artifacts where the namespace lacks them, as the worker sets them." env:"MILLRACE_ARTIFACT_SEARCH_ATTRIBUTES"`
}

// maxConsumers keeps a slip of the finger from starting hundreds. One consumer
// holds up to 200 messages; more than a few are of use on several workers only.
const maxConsumers = 32

// Validate refuses a number of consumers that can't be meant.
func (c *upCommand) Validate() error {
	if c.Consumers < 1 || c.Consumers > maxConsumers {
		return fmt.Errorf("--consumers (MILLRACE_CONSUMERS): must be 1 to %d", maxConsumers)
	}
	return nil
}

// Run starts what does not run yet and ends surplus consumers; twice is harmless.
func (c *upCommand) Run(ctx context.Context, logger *slog.Logger) error {
	temporal, err := dial(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if c.SearchAttributes {
		namespace, err := temporalconf.Namespace()
		if err != nil {
			return err
		}
		if err := ensureSearchAttributes(ctx, temporal, namespace, os.Stdout); err != nil {
			return err
		}
	}
	return c.up(ctx, temporal, os.Stdout)
}

// beginning is one workflow that up starts.
type beginning struct {
	id, taskQueue, workflow, summary string
	input                            any
}

func (c *upCommand) beginnings() []beginning {
	var all []beginning
	for n := range c.Consumers {
		all = append(all, beginning{
			id: names.TelemetryIngestID(n), taskQueue: names.QueueTelemetry, workflow: names.TelemetryIngest,
			summary: fmt.Sprintf("Consumer %d of the telemetry queue", n),
			input:   workflows.IngestInput{Request: workflows.DrainRequest{Consumer: n}},
		})
	}
	return append(all,
		beginning{
			id: names.RuleErrorDrainID, taskQueue: names.QueueTelemetry, workflow: names.RuleErrorDrain,
			summary: "Takes back messages whose IoT rule failed", input: workflows.IngestInput{},
		},
		beginning{
			id: names.JobResultDrainID, taskQueue: names.QueueArtifacts, workflow: names.JobResultDrain,
			summary: "Tells lifecycles what devices reply to their jobs", input: artifacts.JobResultInput{},
		},
		beginning{
			id: reconcileAtUpID, taskQueue: names.QueueScheduled, workflow: names.RawReconcile,
			summary: "Enqueues what was received and not processed in the last day", input: reconcileAtUp,
		},
	)
}

// reconcileAtUpID is the id of the reconciliation at start; a schedule starts
// the hourly ones.
const reconcileAtUpID = names.ScheduleRawReconcile + "/up"

// reconcileAtUp looks at everything received since yesterday: nobody knows what
// happened while the product was down.
var reconcileAtUp = workflows.ReconcileRequest{WindowHours: 26, Complete: true}

func (c *upCommand) up(ctx context.Context, temporal client.Client, out io.Writer) error {
	for _, b := range c.beginnings() {
		options := client.StartWorkflowOptions{ID: b.id, TaskQueue: b.taskQueue, StaticSummary: b.summary}
		started, err := start(ctx, temporal, options, b.workflow, b.input)
		if err != nil {
			return err
		}
		state := "started"
		if !started {
			state = "runs already"
		}
		if _, err := fmt.Fprintf(out, "%-20s %s\n", b.id, state); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return c.end(ctx, temporal, out)
}

// end cancels consumers beyond the number asked for; they finish what they hold.
func (c *upCommand) end(ctx context.Context, temporal client.Client, out io.Writer) error {
	for n := c.Consumers; n < maxConsumers; n++ {
		err := temporal.CancelWorkflow(ctx, names.TelemetryIngestID(n), "")
		if _, none := errors.AsType[*serviceerror.NotFound](err); none {
			continue
		}
		if err != nil {
			return fmt.Errorf("end consumer %d: %w", n, err)
		}
		if _, err := fmt.Fprintf(out, "%-20s ends\n", names.TelemetryIngestID(n)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
