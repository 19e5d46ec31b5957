package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/domain/report"
	"millrace/platform/temporalconf"
	"millrace/starter/printing"
	storage "millrace/storage/report"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// StatusCommand shows a day.
type StatusCommand struct {
	Place
	Timezone string `name:"report-timezone" help:"IANA zone whose days are reported on." default:"Asia/Seoul" env:"MILLRACE_REPORT_TIMEZONE" placeholder:"ZONE"`
	Date     string `help:"Local day, such as 2026-01-31; by default yesterday." placeholder:"DAY"`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Validate refuses what can't be meant.
func (c *StatusCommand) Validate() error {
	if c.Date == "" {
		return c.settle(time.Now())
	}
	return checkDay("--date", c.Date)
}

// settle makes yesterday the day where none is given.
func (c *StatusCommand) settle(now time.Time) error {
	yesterday, err := report.PreviousDay(now, c.Timezone)
	if err != nil {
		return fmt.Errorf("--report-timezone (MILLRACE_REPORT_TIMEZONE): %w", err)
	}
	c.Date = yesterday.Date()
	return nil
}

// TargetState is what there is of a target's report, and its last run.
type TargetState struct {
	Target    string     `json:"target"`
	Report    bool       `json:"report"`
	Metadata  bool       `json:"metadata"`
	Generator string     `json:"generator,omitempty"`
	Verdict   string     `json:"verdict,omitempty"`
	WrittenAt *time.Time `json:"written_at,omitempty"`
	// Run is the status of the last run as Temporal has it, empty where it knows
	// none; Stage and hours are how far it is.
	Run       string `json:"run,omitempty"`
	Stage     string `json:"stage,omitempty"`
	HoursDone int    `json:"hours_done,omitempty"`
	Hours     int    `json:"hours,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Run prints the day.
func (c *StatusCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.show(ctx, store, temporal, os.Stdout)
}

func (c *StatusCommand) show(ctx context.Context, store storage.Store, temporal client.Client, out io.Writer) error {
	entries, err := store.Day(ctx, c.Date)
	if err != nil {
		return err
	}
	targets := c.targets()
	for _, e := range entries {
		if !slices.Contains(targets, e.Target) {
			targets = append(targets, e.Target) // a factory of earlier days
		}
	}
	states := make([]TargetState, len(targets))
	for i, target := range targets {
		states[i] = stateOf(target, entries)
		if err := states[i].look(ctx, temporal, c.Date); err != nil {
			return err
		}
	}
	if c.JSON {
		return printing.JSON(out, states)
	}
	return printStates(out, states)
}

func stateOf(target string, entries []storage.Entry) TargetState {
	state := TargetState{Target: target}
	for _, e := range entries {
		if e.Target != target {
			continue
		}
		state.Report, state.Metadata, state.Generator, state.Verdict = e.Report, e.Metadata, e.Generator, string(e.Verdict)
		if e.Report {
			state.WrittenAt = &e.LastModified
		}
	}
	return state
}

// look asks Temporal for the last run.
func (s *TargetState) look(ctx context.Context, temporal client.Client, date string) error {
	id := names.TargetReportID(date, s.Target)
	description, err := temporal.DescribeWorkflow(ctx, id, "")
	var none *serviceerror.NotFound
	switch {
	case errors.As(err, &none):
		return nil
	case err != nil:
		return fmt.Errorf("describe %s: %w", id, err)
	}
	s.Run = description.Status.String()
	value, err := temporal.QueryWorkflow(ctx, id, "", workflows.StatusQuery)
	var status workflows.TargetStatus
	if err != nil || value.Get(&status) != nil {
		return nil //nolint:nilerr // without a worker nobody answers; the status of the run stands
	}
	s.Stage, s.HoursDone, s.Hours, s.Error = status.Stage, status.Done, status.Hours, status.Result.Error
	return nil
}

func printStates(out io.Writer, states []TargetState) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tREPORT\tGENERATOR\tVERDICT\tWRITTEN\tLAST RUN\tSTAGE\tHOURS\tERROR") //nolint:errcheck // Flush tells
	for _, s := range states {
		written, hours := "-", "-"
		if s.WrittenAt != nil {
			written = s.WrittenAt.Format(time.RFC3339)
		}
		if s.Hours > 0 {
			hours = fmt.Sprintf("%d/%d", s.HoursDone, s.Hours)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Target, s.report(), orDash(s.Generator), orDash(s.Verdict), written, orDash(s.Run), orDash(s.Stage), hours, orDash(s.Error)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (s TargetState) report() string {
	switch {
	case s.Report && s.Metadata:
		return "yes"
	case s.Report || s.Metadata:
		return "partly"
	}
	return "no"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
