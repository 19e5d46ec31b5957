package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"millrace/platform/temporalconf"
	"millrace/starter/printing"
	storage "millrace/storage/report"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// BackfillCommand makes reports on days in the past.
type BackfillCommand struct {
	Place
	Targets     []string `help:"Factory ids and cloud-infra; by default all." placeholder:"TARGET"`
	DateFrom    string   `help:"First local day." placeholder:"DAY"`
	DateTo      string   `help:"Last local day, itself included." placeholder:"DAY"`
	TargetDates []string `help:"Single reports, instead of a range or besides it." placeholder:"TARGET:DAY"`
	OnlyMissing bool     `help:"Make only what is missing; what is there in part is left alone and is no failure." xor:"what"`
	Force       bool     `help:"Make reports again that are there, and those that are there in part." xor:"what"`
	MaxCalls    *int     `name:"max-bedrock-calls" help:"Requests to a model that may have to be paid for at most, in all; what is left over then is not made, and said so." placeholder:"N"`
	ModelID     string   `name:"model-id" help:"Model that words the reports, instead of the worker's." placeholder:"ID"`
	AskAgain    bool     `help:"Ask the model even where a draft of the same figures is kept."`
	DryRun      bool     `help:"Tell what would be done; do nothing."`
	OutputDir   string   `help:"Folder for the lists of results, report-backfill.json and report-backfill.md." type:"path" placeholder:"FOLDER"`
}

// Validate refuses what can't be meant.
func (c *BackfillCommand) Validate() error {
	_, err := c.asked()
	if c.MaxCalls != nil && *c.MaxCalls < 0 {
		err = errors.Join(err, errors.New("--max-bedrock-calls: must not be negative"))
	}
	return err
}

// Item is one report of a backfill.
type Item struct {
	Target string `json:"target"`
	Date   string `json:"report_date"`
	Action Action `json:"action"`
	// Status is planned in a dry run, skipped or force-needed where nothing was done,
	// and else how the report ended.
	Status     string `json:"status"`
	Generator  string `json:"generator,omitempty"`
	Verdict    string `json:"verdict,omitempty"`
	Stage      string `json:"stage,omitempty"`
	Error      string `json:"error,omitempty"`
	Reason     string `json:"reason,omitempty"`
	ReportKey  string `json:"report_key"`
	ModelCalls int    `json:"model_calls"`
	Cost       string `json:"cost_usd,omitempty"`
	// Awaited tells that another run made the report, by that run's options.
	Awaited bool `json:"awaited,omitempty"`
}

// Statuses of reports about which nothing was done.
const (
	statusPlanned = "planned"
	statusSkipped = "skipped"
)

// Summary is the list of results.
type Summary struct {
	DryRun     bool   `json:"dry_run"`
	WorkflowID string `json:"workflow_id,omitempty"`
	ModelCalls int    `json:"model_calls"`
	Failed     int    `json:"failed"`
	Items      []Item `json:"items"`
}

// Run plans the backfill, runs it and lists what became of each report.
func (c *BackfillCommand) Run(ctx context.Context, logger *slog.Logger) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.backfill(ctx, store, nil, os.Stdout, os.Stderr)
	}
	temporal, err := temporalconf.Dial(ctx, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	defer temporal.Close()
	return c.backfill(ctx, store, temporal, os.Stdout, os.Stderr)
}

func (c *BackfillCommand) backfill(ctx context.Context, store storage.Store, temporal client.Client, out, progress io.Writer) error {
	asked, err := c.asked()
	if err != nil {
		return err
	}
	items, err := c.plan(ctx, store, asked)
	if err != nil {
		return err
	}
	summary := Summary{DryRun: c.DryRun, Items: items}
	for i := range summary.Items {
		summary.Items[i].Status = undone(summary.Items[i].Action)
	}
	if !c.DryRun {
		if err := c.execute(ctx, temporal, &summary, progress); err != nil {
			return err
		}
	}
	summary.Failed = c.failures(summary)
	if err := c.write(summary, out); err != nil {
		return err
	}
	if c.DryRun {
		return nil
	}
	return failed(summary.Failed)
}

func undone(action Action) string {
	switch action {
	case Skip:
		return statusSkipped
	case ForceNeeded:
		return string(ForceNeeded)
	case Generate:
	}
	return statusPlanned
}

// failures counts what failed. What is there in part counts where it was asked
// for and not only what is missing.
func (c *BackfillCommand) failures(s Summary) int {
	n := 0
	for _, item := range s.Items {
		if item.Status == workflows.TargetFailed || (item.Status == string(ForceNeeded) && !c.OnlyMissing) {
			n++
		}
	}
	return n
}

// execute runs what is to be made through Temporal, where it goes on whatever
// happens to this command.
func (c *BackfillCommand) execute(ctx context.Context, temporal client.Client, s *Summary, progress io.Writer) error {
	input := workflows.BackfillInput{Model: c.ModelID, Force: c.AskAgain, MaxModelCalls: c.MaxCalls}
	place := map[workflows.TargetDate]int{}
	for i, item := range s.Items {
		if item.Action == Generate {
			key := workflows.TargetDate{Target: item.Target, Date: item.Date}
			place[key] = i
			input.Items = append(input.Items, key)
		}
	}
	if len(input.Items) == 0 {
		return nil
	}
	s.WorkflowID = names.ReportBackfillID(time.Now().UTC().Format("20060102T150405.000Z"))
	options := client.StartWorkflowOptions{
		ID: s.WorkflowID, TaskQueue: names.QueueReports, StaticSummary: fmt.Sprintf("Make %d reports on days in the past", len(input.Items)),
	}
	run, err := temporal.ExecuteWorkflow(ctx, options, names.ReportBackfill, input)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.WorkflowID, err)
	}
	fmt.Fprintf(progress, "%s started: %d reports\n", s.WorkflowID, len(input.Items)) //nolint:errcheck // a closed terminal
	var state workflows.BackfillState
	if err := follow(ctx, temporal, run, workflows.StatusQuery, backfillProgress, &state, progress); err != nil {
		return err
	}
	s.ModelCalls = state.ModelCalls
	for _, r := range state.Results {
		item := &s.Items[place[workflows.TargetDate{Target: r.Target, Date: r.Date}]]
		item.Status, item.Generator, item.Verdict, item.Stage, item.Error, item.Reason = r.Status, r.Generator, r.Verdict, r.Stage, r.Error, r.Reason
		item.ModelCalls, item.Cost, item.Awaited = r.ModelCalls, r.Cost, r.Awaited
	}
	return nil
}

func backfillProgress(value converterValue) string {
	var state workflows.BackfillState
	if err := value.Get(&state); err != nil {
		return "progress is unreadable: " + err.Error()
	}
	return fmt.Sprintf("%d reports ended, %d model calls", len(state.Results), state.ModelCalls)
}

// write prints the list as Markdown, and keeps both forms where a folder is
// given.
func (c *BackfillCommand) write(s Summary, out io.Writer) error {
	text := s.markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if c.OutputDir == "" {
		return nil
	}
	if err := os.MkdirAll(c.OutputDir, 0o750); err != nil {
		return fmt.Errorf("make folder of results: %w", err)
	}
	var body strings.Builder
	if err := printing.JSON(&body, s); err != nil {
		return err
	}
	for name, content := range map[string]string{"report-backfill.json": body.String(), "report-backfill.md": text} {
		if err := os.WriteFile(filepath.Join(c.OutputDir, name), []byte(content), 0o640); err != nil { //nolint:gosec // lists of reports are no secret
			return fmt.Errorf("write results: %w", err)
		}
	}
	return nil
}

func (s Summary) markdown() string {
	var b strings.Builder
	b.WriteString("| day | target | action | status | generator | model calls | note |\n|---|---|---|---|---|---|---|\n")
	for _, item := range s.Items {
		made := ""
		if item.Awaited {
			made = awaitedNote
		}
		note := strings.TrimSpace(strings.Join([]string{made, item.Stage, item.Error, item.Reason}, " "))
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %s |\n", item.Date, item.Target, item.Action, item.Status, item.Generator, item.ModelCalls,
			strings.NewReplacer("|", "\\|", "\n", " ").Replace(note))
	}
	counts := map[string]int{}
	for _, item := range s.Items {
		counts[item.Status]++
	}
	fmt.Fprintf(&b, "\n%d reports: %d made, %d without data, %d failed, %d not generated, %d skipped, %d need --force, %d planned; %d model calls\n", len(s.Items),
		counts[workflows.TargetSuccess], counts[workflows.TargetInsufficientData], counts[workflows.TargetFailed], counts[workflows.TargetNotGenerated],
		counts[statusSkipped], counts[string(ForceNeeded)], counts[statusPlanned], s.ModelCalls)
	return b.String()
}
