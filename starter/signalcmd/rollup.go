package signalcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"millrace/platform/temporalconf"
	"millrace/workflows/names"
	workflows "millrace/workflows/observability"
)

// RollupCommand counts pending signals.
type RollupCommand struct {
	From string `help:"First time of receipt (RFC 3339); by default the beginning." placeholder:"TIME"`
	To   string `help:"Time of receipt at which to stop, not included (RFC 3339); by default now." placeholder:"TIME"`
}

// Run starts the rollup, or joins one of the same range that runs already, and
// waits for its end.
func (c *RollupCommand) Run(ctx context.Context, logger *slog.Logger) error {
	input, err := c.input()
	if err != nil {
		return err
	}
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.rollup(ctx, temporal, input, os.Stdout)
}

func (c *RollupCommand) input() (workflows.RollupInput, error) {
	var input workflows.RollupInput
	for _, bound := range []struct {
		flag, text string
		into       **time.Time
	}{{"--from", c.From, &input.From}, {"--to", c.To, &input.To}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, bound.text)
		if err != nil {
			return input, fmt.Errorf("%s: must be an RFC 3339 instant with a zone", bound.flag)
		}
		*bound.into = &at
	}
	if input.From != nil && input.To != nil && !input.From.Before(*input.To) {
		return input, fmt.Errorf("--from: must be before --to")
	}
	return input, nil
}

func (c *RollupCommand) rollup(ctx context.Context, temporal client.Client, input workflows.RollupInput, out io.Writer) error {
	options := client.StartWorkflowOptions{ID: names.SignalRollupID(c.From, c.To), TaskQueue: names.QueueScheduled, StaticSummary: "Count pending signals, asked for by an operator"}
	run, err := temporal.ExecuteWorkflow(ctx, options, names.SignalRollup, input)
	if err != nil {
		return fmt.Errorf("start rollup: %w", err)
	}
	var done workflows.Carry
	if err := run.Get(ctx, &done); err != nil {
		return fmt.Errorf("count signals: %w", err)
	}
	n := done.Counts
	_, err = fmt.Fprintf(out, "received before %s: counted %d, counted by others %d, stuck %d, in %d transactions; %d trace rows\n",
		done.To.Format(time.RFC3339), n.Signals, n.Dropped, n.Stuck, n.Transactions, n.TraceRows)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// ReconcileCommand checks a day.
type ReconcileCommand struct {
	Day string `arg:"" help:"Day to check, such as 2026-05-04; signals may come two days late." placeholder:"DAY"`
}

// Run starts the check and waits for its end; it fails when something drifted.
func (c *ReconcileCommand) Run(ctx context.Context, logger *slog.Logger) error {
	if _, err := time.Parse(time.DateOnly, c.Day); err != nil {
		return fmt.Errorf("DAY: must be a day such as 2026-05-04")
	}
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.reconcile(ctx, temporal, os.Stdout)
}

func (c *ReconcileCommand) reconcile(ctx context.Context, temporal client.Client, out io.Writer) error {
	options := client.StartWorkflowOptions{ID: names.SignalReconcileID(c.Day), TaskQueue: names.QueueScheduled, StaticSummary: "Check the signals of " + c.Day}
	run, err := temporal.ExecuteWorkflow(ctx, options, names.SignalReconcile, workflows.ReconcileInput{Day: c.Day})
	if err != nil {
		return fmt.Errorf("start check: %w", err)
	}
	var done workflows.ReconcileResult
	if err := run.Get(ctx, &done); err != nil {
		return fmt.Errorf("check signals: %w", err)
	}
	var drifted int64
	for _, day := range done.Days {
		drifted += day.Drifted
		fmt.Fprintf(out, "%s: %d signals of %d applications, %d not counted, %d counters drifted\n", day.Day, day.Signals, day.Apps, day.Pending, day.Drifted) //nolint:errcheck // a closed terminal
		for _, d := range day.Drifts {
			fmt.Fprintf(out, "  %s, %s: %s is %s, should be %s\n", d.AppID, d.Comparison, d.Counter, d.Have, d.Want) //nolint:errcheck // a closed terminal
		}
	}
	if drifted > 0 {
		return fmt.Errorf("%d counters drifted", drifted)
	}
	return nil
}
