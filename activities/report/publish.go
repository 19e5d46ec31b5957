package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/exact"
	"millrace/domain/report"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Content types of reports.
const (
	markdownType = "text/markdown; charset=utf-8"
	htmlType     = "text/html; charset=utf-8"
)

// Publisher writes reports that passed every check.
type Publisher struct {
	Store    storage.Store
	Settings report.Settings
	Logger   *slog.Logger
}

// Generation is how a report came about: generation-metadata.json.
type Generation struct {
	SchemaVersion string          `json:"schema_version"`
	FactoryID     string          `json:"factory_id"`
	Date          string          `json:"report_date"`
	Timezone      string          `json:"timezone"`
	Language      report.Language `json:"language"`
	GeneratedAt   time.Time       `json:"generated_at"`
	// Generator is model or template; ModelID is the model that worded the report,
	// or that was asked in vain.
	Generator string `json:"generator"`
	ModelID   string `json:"model_id"`
	StandIn   bool   `json:"stand_in,omitempty"`
	// Reason tells why a report is a template.
	Reason           string         `json:"reason,omitempty"`
	OverallStatus    report.Verdict `json:"overall_status"`
	ContextKey       string         `json:"context_key"`
	ReportKey        string         `json:"report_key"`
	HTMLKey          string         `json:"html_key"`
	DraftKey         string         `json:"draft_key,omitempty"`
	PromptDigest     string         `json:"prompt_digest,omitempty"`
	ValidationStatus string         `json:"validation_status"`
	// Violations are what was wrong with the drafts that were refused.
	Violations []string `json:"violations,omitempty"`
	// Tokens and cost are those that this run paid for, Draft those of the draft
	// that was published, which an earlier run may have paid for.
	InputTokens  int64  `json:"input_token_count"`
	OutputTokens int64  `json:"output_token_count"`
	Cost         string `json:"cost_usd,omitempty"`
	// ModelCalls is how many requests of this run may have to be paid for; of
	// LostCalls among them no tokens are known, so that Cost leaves them out.
	ModelCalls int        `json:"model_call_count"`
	LostCalls  int        `json:"unanswered_model_call_count,omitempty"`
	Draft      *DraftCost `json:"draft,omitempty"`
}

// DraftCost is what a draft cost when it was written.
type DraftCost struct {
	CreatedAt    time.Time      `json:"created_at"`
	InputTokens  int64          `json:"input_token_count"`
	OutputTokens int64          `json:"output_token_count"`
	Cost         *exact.Decimal `json:"cost_usd,omitempty"`
}

// validationPassed is the only status of a published report.
const validationPassed = "passed"

// kindInvalidReport is an error of code, not of a model: a report by code alone
// that fails its own check.
const kindInvalidReport = "InvalidReport"

// PublishReport composes a report from a draft, or by code alone where there is no
// draft or it does not pass the checks of the finished text, and writes it:
// report.html, report.md, and last generation-metadata.json, which tells that the
// others are whole. Doing it again writes the same.
func (p Publisher) PublishReport(ctx context.Context, req workflows.PublishRequest) (workflows.PublishResult, error) {
	defer beating(ctx)()
	result, err := p.publish(ctx, req, activity.GetInfo(ctx).ScheduledTime.UTC())
	return result, failure(err)
}

func (p Publisher) publish(ctx context.Context, req workflows.PublishRequest, at time.Time) (workflows.PublishResult, error) {
	day, err := readDay(ctx, p.Store, p.Settings, req.Target, req.Date, req.Timezone)
	if err != nil {
		return workflows.PublishResult{}, err
	}
	generation := p.generation(day, req, at)
	text, err := p.worded(ctx, day, req, &generation)
	if err != nil {
		return workflows.PublishResult{}, err
	}
	if text == nil {
		if text, err = day.template(); err != nil {
			return workflows.PublishResult{}, err
		}
	}
	if err := p.write(ctx, *text, generation); err != nil {
		return workflows.PublishResult{}, err
	}
	return workflows.PublishResult{
		Generator: generation.Generator, ReportKey: generation.ReportKey, HTMLKey: generation.HTMLKey,
		MetadataKey: report.MetadataKey(p.Store.Prefix, req.Date, req.Target),
		Verdict:     string(day.doc.Verdict), Summary: day.doc.Summary(), Reason: generation.Reason,
	}, nil
}

func (p Publisher) generation(day writtenDay, req workflows.PublishRequest, at time.Time) Generation {
	model := req.Model
	if model == "" && !day.doc.Empty {
		model = p.Settings.ModelID
	}
	return Generation{
		SchemaVersion: draftSchema, FactoryID: req.Target, Date: req.Date, Timezone: req.Timezone, Language: p.Settings.Language, GeneratedAt: at,
		Generator: workflows.GeneratorTemplate, ModelID: model, Reason: req.Reason, OverallStatus: day.doc.Verdict,
		ContextKey:       report.ContextKey(p.Store.Prefix, req.Date, req.Target),
		ReportKey:        report.MarkdownKey(p.Store.Prefix, req.Date, req.Target),
		HTMLKey:          report.HTMLKey(p.Store.Prefix, req.Date, req.Target),
		ValidationStatus: validationPassed, Violations: req.Violations,
		InputTokens: req.InputTokens, OutputTokens: req.OutputTokens, Cost: req.Cost,
		ModelCalls: req.ModelCalls, LostCalls: req.LostCalls,
	}
}

// worded is the report in a model's words, nil with the reason where there is no
// draft that passes.
func (p Publisher) worded(ctx context.Context, day writtenDay, req workflows.PublishRequest, g *Generation) (*report.Report, error) {
	if req.DraftKey == "" {
		return nil, nil
	}
	if !p.isDraftOf(req) {
		return nil, &report.InvalidError{Field: "draft_key", Rule: "must be the key of a draft of this report"}
	}
	var record draftRecord
	err := p.Store.ReadJSON(ctx, req.DraftKey, &record)
	var damaged *objects.IntegrityError
	switch {
	case errors.Is(err, objects.ErrNotFound), errors.Is(err, storage.ErrDamaged), errors.As(err, &damaged):
		g.Reason = "the draft is not there any more"
		return nil, nil
	case err != nil:
		return nil, err
	}
	text, violations := day.compose(record)
	if len(violations) > 0 {
		g.Violations = append(g.Violations, violations...)
		g.Reason = "the draft failed its checks: " + strings.Join(violations, "; ")
		p.Logger.WarnContext(ctx, "a draft failed the checks of the finished report", "target", req.Target, "date", req.Date, "violations", len(violations))
		return nil, nil
	}
	g.Generator, g.ModelID, g.StandIn, g.Reason = workflows.GeneratorModel, record.Model, record.StandIn, ""
	g.DraftKey, g.PromptDigest = req.DraftKey, record.Digest
	g.Violations = append(g.Violations, record.Corrects...)
	g.Draft = &DraftCost{CreatedAt: record.CreatedAt, InputTokens: record.InputTokens, OutputTokens: record.OutputTokens, Cost: record.Cost}
	return &text, nil
}

var draftName = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (p Publisher) isDraftOf(req workflows.PublishRequest) bool {
	prefix, suffix, _ := strings.Cut(report.DraftKey(p.Store.Prefix, req.Date, req.Target, "\x00"), "\x00")
	name, ok := strings.CutPrefix(req.DraftKey, prefix)
	name, isJSON := strings.CutSuffix(name, suffix)
	return ok && isJSON && draftName.MatchString(name)
}

// compose makes a report of a draft and checks both again.
func (d writtenDay) compose(record draftRecord) (report.Report, []string) {
	draft, lines := d.judge(record)
	if len(lines) > 0 {
		return report.Report{}, lines
	}
	origin := report.Origin{Model: record.Model, StandIn: record.StandIn, Testbed: d.testbed}
	text := report.Compose(d.doc, &draft, origin)
	for _, violation := range report.VerifyReport(d.doc, d.context, text.Markdown, origin, true, d.foreign) {
		lines = append(lines, violation.String())
	}
	return text, lines
}

// template makes the report by code alone. It is checked as well: one that fails
// is not published.
func (d writtenDay) template() (*report.Report, error) {
	origin := report.Origin{Testbed: d.testbed}
	text := report.Compose(d.doc, nil, origin)
	if violations := report.VerifyReport(d.doc, d.context, text.Markdown, origin, false, d.foreign); len(violations) > 0 {
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("the template report fails its own check: %s", violations[0]), kindInvalidReport, nil)
	}
	return &text, nil
}

// write stores the metadata last: who finds them finds the report that they are of.
func (p Publisher) write(ctx context.Context, text report.Report, g Generation) error {
	if err := p.Store.Bucket.Put(ctx, g.HTMLKey, htmlType, text.HTML); err != nil {
		return err
	}
	if err := p.Store.Bucket.Put(ctx, g.ReportKey, markdownType, text.Markdown); err != nil {
		return err
	}
	_, err := p.Store.PutJSON(ctx, report.MetadataKey(p.Store.Prefix, g.Date, g.FactoryID), g)
	return err
}
