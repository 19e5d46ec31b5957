package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/domain/monitoring"
	"millrace/platform/temporalconf"
	workflows "millrace/workflows/monitoring"
	"millrace/workflows/names"
)

// RekeyCommand starts RekeyTokens.
type RekeyCommand struct {
	From string `help:"The older key, whose saved copies move to the current key of the workers' key ring." required:"" placeholder:"KEY"`
	Wait bool   `help:"Wait for the end and print the report."`
}

// Validate refuses what can't name a key.
func (c RekeyCommand) Validate() error { return monitoring.CheckKeyID(c.From) }

// Run starts the workflow, or joins it when it runs already.
func (c RekeyCommand) Run(ctx context.Context, logger *slog.Logger) error {
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.rekey(ctx, temporal, os.Stdout)
}

func (c RekeyCommand) rekey(ctx context.Context, temporal client.Client, out io.Writer) error {
	id := names.RekeyTokensID(c.From)
	_, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: names.QueueScheduled, StaticSummary: "Seals the saved copies of tokens under key " + c.From + " again under the current key",
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, names.RekeyTokens, workflows.RekeyInput{KeyID: c.From})
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	state := "started"
	switch {
	case errors.As(err, &running):
		state = "runs already"
	case err != nil:
		return fmt.Errorf("start %s: %w", id, err)
	}
	if _, err := fmt.Fprintf(out, "%s %s\n", id, state); err != nil || !c.Wait {
		return err
	}
	return report(ctx, temporal, id, out)
}

// report waits for the end. Giving up leaves the workflow running.
func report(ctx context.Context, temporal client.Client, id string, out io.Writer) error {
	var result workflows.RekeyReport
	if err := temporal.GetWorkflow(ctx, id, "").Get(ctx, &result); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(result); err != nil {
		return err
	}
	if !result.Clean {
		return fmt.Errorf("saved copies under key %s were still being made: are all gateways on the new key ring? Then run this again", result.KeyID)
	}
	return nil
}
