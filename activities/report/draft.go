package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/exact"
	"millrace/domain/report"
	"millrace/platform/bedrock"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Asker asks a model once. *bedrock.Error says whether to try again.
type Asker interface {
	Ask(ctx context.Context, r bedrock.Request) (bedrock.Answer, error)
}

// Writer has a model word days.
type Writer struct {
	Store    storage.Store
	Settings report.Settings
	Model    Asker
	Prices   report.TokenPrices
	Now      func() time.Time
	Logger   *slog.Logger
}

// draftRecord is a model's answer as it is kept under the digest of what was
// asked.
type draftRecord struct {
	SchemaVersion string `json:"schema_version"`
	Digest        string `json:"prompt_digest"`
	Target        string `json:"target"`
	Date          string `json:"report_date"`
	Model         string `json:"model_id"`
	// StandIn tells that the model was the local stack's.
	StandIn   bool      `json:"stand_in,omitempty"`
	Attempt   int       `json:"attempt"`
	CreatedAt time.Time `json:"created_at"`
	// Corrects are the violations of the draft before that the model was shown.
	Corrects     []string `json:"corrects,omitempty"`
	Stop         string   `json:"stop_reason"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	LatencyMS    int64    `json:"latency_ms"`
	// Cost is in US dollars; absent where the model's price is not known.
	Cost *exact.Decimal `json:"cost_usd,omitempty"`
	// Input is what the model passed to the tool.
	Input json.RawMessage `json:"tool_input,omitempty"`
}

const (
	draftSchema = "0.1.0"
	// maxKept bounds an answer that is kept; a larger one is no draft anyway.
	maxKept = 256 << 10
)

// maxCalls bounds the requests for one draft that may have to be paid for, where
// who asks sets no bound.
const maxCalls = 3

// DraftReport asks a model to word a day, at most once for the same input: the
// answer is kept under the digest of model, settings and prompt, and read back when
// the activity runs again. Requests that may have to be paid for and brought
// nothing are counted in the heartbeat, which outlives a worker, and bounded. A
// draft that fails its checks is a result with its violations, not an error.
func (w Writer) DraftReport(ctx context.Context, req workflows.DraftRequest) (workflows.DraftResult, error) {
	info := activity.GetInfo(ctx)
	limit := req.MaxCalls
	if limit <= 0 {
		limit = maxCalls
	}
	var before int
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &before) // none count nothing
	}
	// The request counts before it is sent: a worker that dies can't count it after.
	var calls atomic.Int64
	calls.Store(int64(min(before+1, limit)))
	defer beating(ctx, func() any { return calls.Load() })()
	sent := false
	result, err := w.draft(ctx, req, info.ScheduledTime, before < limit, &sent)
	if err != nil && !sent {
		calls.Store(int64(before))
		activity.RecordHeartbeat(ctx, calls.Load())
	}
	if failed, ok := errors.AsType[*bedrock.Error](err); sent && calls.Load() >= int64(limit) && ok {
		return workflows.DraftResult{Calls: limit, Unusable: fmt.Sprintf("%d requests brought no answer that can be used; last: %s", limit, failed.Error())}, nil
	}
	switch {
	case sent:
		result.Calls = before + 1
	case err == nil && !result.Cached: // kept by an attempt whose worker died
		result.Calls = max(before, 1)
	case err == nil:
		result.Calls = 0
	}
	return result, modelFailure(err, info.Attempt, int(calls.Load()))
}

// errNoCallLeft tells that the model may not be asked again.
var errNoCallLeft = &bedrock.Error{Code: "NoCallLeft", Message: "requests before this one were cut off", Retryable: false}

// draft is DraftReport for an activity that was first scheduled at since: with
// force, only an answer that was kept since then counts. Sent tells whether a
// request may have to be paid for.
func (w Writer) draft(ctx context.Context, req workflows.DraftRequest, since time.Time, mayAsk bool, sent *bool) (workflows.DraftResult, error) {
	day, err := readDay(ctx, w.Store, w.Settings, req.Target, req.Date, req.Timezone)
	if err != nil {
		return workflows.DraftResult{}, err
	}
	model := req.Model
	if model == "" {
		model = w.Settings.ModelID
	}
	prompt := report.NewPrompt(day.doc, day.context, req.Violations)
	digest := prompt.Digest(model, w.Settings.MaxTokens, w.Settings.Temperature)
	key := report.DraftKey(w.Store.Prefix, req.Date, req.Target, digest)
	record, found, taken, err := w.kept(ctx, key)
	if err != nil {
		return workflows.DraftResult{}, err
	}
	if found && (!req.Force || !record.CreatedAt.Before(since)) {
		return w.result(day, key, record, record.CreatedAt.Before(since)), nil
	}
	if !mayAsk {
		return workflows.DraftResult{}, errNoCallLeft
	}
	*sent = true
	answer, err := w.ask(ctx, model, prompt)
	if err != nil {
		if failed, ok := errors.AsType[*bedrock.Error](err); ok {
			*sent = failed.Sent
		}
		return workflows.DraftResult{}, err
	}
	record = w.recordOf(req, model, digest, answer)
	if record, err = w.keep(ctx, key, record, taken); err != nil {
		return workflows.DraftResult{}, err
	}
	return w.result(day, key, record, false), nil
}

// kept is the answer that is kept under a key, and whether there is one. A damaged
// one is none, and taken tells that its key is taken all the same.
func (w Writer) kept(ctx context.Context, key string) (record draftRecord, found, taken bool, err error) {
	err = w.Store.ReadJSON(ctx, key, &record)
	var damaged *objects.IntegrityError
	switch {
	case err == nil:
		return record, true, true, nil
	case errors.Is(err, objects.ErrNotFound):
		return draftRecord{}, false, false, nil
	case errors.As(err, &damaged), errors.Is(err, storage.ErrDamaged):
		w.Logger.WarnContext(ctx, "a kept draft is damaged, the model is asked again", "key", key)
		return draftRecord{}, false, true, nil
	}
	return draftRecord{}, false, false, err
}

func (w Writer) ask(ctx context.Context, model string, prompt report.Prompt) (bedrock.Answer, error) {
	temperature, err := strconv.ParseFloat(w.Settings.Temperature.String(), 32)
	if err != nil {
		return bedrock.Answer{}, fmt.Errorf("temperature: %w", err)
	}
	return w.Model.Ask(ctx, bedrock.Request{
		Model: model, System: prompt.System, User: prompt.User,
		Tool:      bedrock.Tool{Name: report.ToolName, Description: prompt.ToolDescription, Schema: prompt.ToolSchema},
		MaxTokens: int32(w.Settings.MaxTokens), Temperature: float32(temperature), //nolint:gosec // the settings are checked
	})
}

func (w Writer) recordOf(req workflows.DraftRequest, model, digest string, answer bedrock.Answer) draftRecord {
	record := draftRecord{
		SchemaVersion: draftSchema, Digest: digest, Target: req.Target, Date: req.Date, Model: model,
		StandIn: strings.HasPrefix(answer.Text, report.StandInMark), Attempt: req.Attempt, CreatedAt: w.Now().UTC(), Corrects: req.Violations,
		Stop: answer.Stop, InputTokens: answer.InputTokens, OutputTokens: answer.OutputTokens, LatencyMS: answer.Latency.Milliseconds(),
	}
	if len(answer.Input) <= maxKept {
		record.Input = answer.Input
	}
	if cost, known := w.Prices.Cost(model, answer.InputTokens, answer.OutputTokens); known {
		record.Cost = &cost
	}
	return record
}

// keep stores an answer. Where another attempt has kept one meanwhile, that one
// counts, so that all see the same draft.
func (w Writer) keep(ctx context.Context, key string, record draftRecord, replace bool) (draftRecord, error) {
	if replace {
		_, err := w.Store.PutJSON(ctx, key, record)
		return record, err
	}
	body, err := json.Marshal(record)
	if err != nil {
		return draftRecord{}, fmt.Errorf("encode %s: %w", key, err)
	}
	written, err := w.Store.Bucket.PutIfAbsent(ctx, key, objects.JSON, append(body, '\n'))
	if err != nil || written {
		return record, err
	}
	other, found, _, err := w.kept(ctx, key)
	if err == nil && !found {
		err = fmt.Errorf("object %s: %w", key, objects.ErrNotFound)
	}
	return other, err
}

// result judges an answer by today's checks. One that was paid for by an earlier
// run costs this one nothing.
func (w Writer) result(day writtenDay, key string, record draftRecord, cached bool) workflows.DraftResult {
	_, violations := day.judge(record)
	result := workflows.DraftResult{DraftKey: key, Valid: len(violations) == 0, Violations: violations, Cached: cached}
	if cached {
		return result
	}
	result.InputTokens, result.OutputTokens = record.InputTokens, record.OutputTokens
	if record.Cost != nil {
		result.Cost = record.Cost.String()
	}
	return result
}

// judge reads an answer and says what is wrong with it.
func (d writtenDay) judge(record draftRecord) (report.Draft, []string) {
	if record.Stop == bedrock.StopMaxTokens {
		return report.Draft{}, []string{"truncated: the answer was cut off at the greatest number of tokens; word the findings more briefly"}
	}
	draft, err := report.ParseDraft(d.doc, record.Input)
	if err != nil {
		return report.Draft{}, []string{"shape: " + err.Error()}
	}
	var lines []string
	for _, violation := range report.Verify(d.doc, d.context, draft, d.foreign) {
		lines = append(lines, violation.String())
	}
	return draft, lines
}

const (
	// maxModelWait bounds how long a model that throttles is left alone.
	maxModelWait = 2 * time.Minute
	// maxDoublings keeps the wait from overflowing.
	maxDoublings = 8
)

// modelFailure is an error of a model as Temporal sees it: what can't succeed is
// final, and what may is tried again after the time that the service asked for,
// twice as long with each attempt.
// The details are how many requests may have to be paid for.
func modelFailure(err error, attempt int32, calls int) error {
	failed, ok := errors.AsType[*bedrock.Error](err)
	if !ok {
		return failure(err)
	}
	if !failed.Retryable {
		return temporal.NewNonRetryableApplicationError(failed.Error(), failed.Code, failed, calls)
	}
	wait := failed.RetryAfter << min(max(attempt-1, 0), maxDoublings)
	return temporal.NewApplicationErrorWithOptions(failed.Error(), failed.Code, temporal.ApplicationErrorOptions{
		Cause: failed, Details: []any{calls}, NextRetryDelay: max(min(wait, maxModelWait), failed.RetryAfter), Category: temporal.ApplicationErrorCategoryBenign,
	})
}
