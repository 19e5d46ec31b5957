package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"millrace/platform/temporalconf"
	"millrace/starter/printing"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// RunCommand makes the reports on a day.
type RunCommand struct {
	Date     string   `help:"Local day to report on, such as 2026-01-31." required:"" placeholder:"DAY"`
	Target   []string `help:"Factory id or cloud-infra; by default all. May be repeated." placeholder:"TARGET"`
	ModelID  string   `name:"model-id" help:"Model that words the reports, instead of the worker's." placeholder:"ID"`
	AskAgain bool     `help:"Ask the model even where a draft of the same figures is kept."`
	Notify   bool     `help:"Tell people again of a day that they were told of." xor:"telling"`
	Quiet    bool     `help:"Tell nobody." xor:"telling"`
	NoWait   bool     `help:"Start the run and leave it."`
	Join     bool     `help:"Join a run on the same day even where it was asked for something else."`
	JSON     bool     `name:"json" help:"Print the result as JSON."`
}

// Validate refuses what can't be meant.
func (c *RunCommand) Validate() error {
	return errors.Join(checkDay("--date", c.Date), checkTargets("--target", c.Target))
}

// Run starts the reports, or joins a run on the same day, and waits for its end.
func (c *RunCommand) Run(ctx context.Context, logger *slog.Logger) error {
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.run(ctx, temporal, os.Stdout, os.Stderr)
}

func (c *RunCommand) run(ctx context.Context, temporal client.Client, out, progress io.Writer) error {
	id := names.DailyReportID(c.Date)
	options := client.StartWorkflowOptions{ID: id, TaskQueue: names.QueueReports, StaticSummary: "Report on " + c.Date + ", asked for by an operator"}
	input := workflows.DailyInput{Date: c.Date, Targets: c.Target, Model: c.ModelID, Force: c.AskAgain, Notify: c.Notify, Quiet: c.Quiet}
	run, joined, err := c.start(ctx, temporal, options, input)
	if err != nil {
		return err
	}
	if joined {
		fmt.Fprintf(progress, "%s is running already: joined\n", id) //nolint:errcheck // a closed terminal
	}
	if c.NoWait {
		if joined {
			return nil
		}
		_, err := fmt.Fprintf(out, "%s started\n", id)
		return err
	}
	var day workflows.DailyResult
	if err := follow(ctx, temporal, run, workflows.StatusQuery, dailyProgress, &day, progress); err != nil {
		return err
	}
	if err := c.print(out, day); err != nil {
		return err
	}
	return failed(count(day.Results, workflows.TargetFailed))
}

func dailyProgress(value converterValue) string {
	var day workflows.DailyResult
	if err := value.Get(&day); err != nil {
		return "progress is unreadable: " + err.Error()
	}
	return fmt.Sprintf("%s %s: %d reports", day.Date, day.Status, len(day.Results))
}

func count(results []workflows.TargetResult, status string) int {
	n := 0
	for _, r := range results {
		if r.Status == status {
			n++
		}
	}
	return n
}

func (c *RunCommand) print(out io.Writer, day workflows.DailyResult) error {
	if c.JSON {
		return printing.JSON(out, day)
	}
	_, err := fmt.Fprintf(out, "%s (%s): %s\n", day.Date, day.Timezone, day.Status)
	for _, r := range day.Results {
		if err == nil {
			_, err = fmt.Fprintln(out, resultLine(r))
		}
	}
	for _, told := range day.Deliveries {
		if err == nil {
			_, err = fmt.Fprintf(out, "message: %s %s\n", told.Outcome, told.Reason)
		}
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func resultLine(r workflows.TargetResult) string {
	parts := []string{fmt.Sprintf("%-20s %-18s", r.Target, r.Status)}
	if r.Awaited {
		parts = append(parts, awaitedNote)
	}
	for _, part := range []string{r.Generator, r.Verdict, r.ReportKey, r.Stage, r.Error, r.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}
