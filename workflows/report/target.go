package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/exact"
)

// Stages of a target's report, as results name them.
const (
	StagePlan      = "plan"
	StageAggregate = "aggregate"
	StageMerge     = "merge"
	StageDraft     = "draft"
	StagePublish   = "publish"
	StageDone      = "done"
	// StageRun is for a run that ended from outside, in whatever stage.
	StageRun = "run"
)

// TargetStatus is the answer to the query of a TargetReport.
type TargetStatus struct {
	Target string `json:"target"`
	Date   string `json:"report_date"`
	Stage  string `json:"stage"`
	// Hours is how many hours there are, Done and Empty how many of them are
	// aggregated and had nothing.
	Hours int `json:"hours"`
	Done  int `json:"hours_done"`
	Empty int `json:"hours_empty"`
	// Objects counts what was read, by dataset; Events what was found in it.
	Objects map[string]int `json:"input_counts,omitempty"`
	Events  int            `json:"event_count"`
	// WriteBefore is the writing deadline.
	WriteBefore *time.Time   `json:"write_before,omitempty"`
	Violations  []string     `json:"violations,omitempty"`
	Result      TargetResult `json:"result"`
}

// TargetReport makes the report on one target of one local day: its hours, the
// day, a draft by a model, and the checked report. It never fails for want of a
// model: then code alone writes. It ends with an error of type
// ErrorTargetFailed where data or storage failed for good.
func TargetReport(ctx workflow.Context, in TargetInput) (TargetResult, error) {
	if err := in.check(); err != nil {
		return TargetResult{}, err
	}
	t := &targetRun{in: in, status: TargetStatus{
		Target: in.Target, Date: in.Date, Stage: StagePlan, Objects: map[string]int{},
		Result: TargetResult{Target: in.Target, Date: in.Date},
	}}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (TargetStatus, error) { return t.status, nil }); err != nil {
		return TargetResult{}, err
	}
	return t.run(ctx)
}

type targetRun struct {
	in       TargetInput
	plan     Plan
	day      DayResult
	draftKey string
	// reason says why there is no draft, refused what was wrong with those that there
	// were.
	reason  string
	refused []string
	cost    exact.Decimal
	status  TargetStatus
}

func (t *targetRun) run(ctx workflow.Context) (TargetResult, error) {
	for _, stage := range []struct {
		name string
		do   func(workflow.Context) error
	}{
		{StagePlan, t.planDay},
		{StageAggregate, t.summariseHours},
		{StageMerge, t.mergeDay},
		{StageDraft, t.draft},
		{StagePublish, t.publish},
	} {
		t.status.Stage = stage.name
		t.describe(ctx)
		if err := stage.do(ctx); err != nil {
			return t.status.Result, t.fail(ctx, stage.name, err)
		}
	}
	t.status.Stage = StageDone
	t.describe(ctx)
	return t.status.Result, nil
}

// fail ends the run with a result that its error carries. A run that was
// cancelled is no failure.
func (t *targetRun) fail(ctx workflow.Context, stage string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.Type() == ErrorUnsupportedTarget {
		return err
	}
	r := &t.status.Result
	r.Status, r.Stage, r.Error = TargetFailed, stage, causeOf(err)
	t.describe(ctx)
	return temporal.NewApplicationErrorWithOptions(stage+": "+r.Error, ErrorTargetFailed,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{*r}})
}

// planDay asks a worker for the day's hours: time zones change, and a replay must
// not.
func (t *targetRun) planDay(ctx workflow.Context) error {
	request := PlanRequest{At: workflow.Now(ctx), Date: t.in.Date, Timezone: t.in.Timezone, Targets: []string{t.in.Target}}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, planOptions), PlanActivity, request).Get(ctx, &t.plan)
	if err != nil {
		return err
	}
	if len(t.plan.Unknown) > 0 {
		return unsupported(t.in.Target)
	}
	t.status.Hours = len(t.plan.Hours)
	return nil
}

func unsupported(target string) error {
	return temporal.NewNonRetryableApplicationError(unsupportedRule(target), ErrorUnsupportedTarget, nil)
}

func unsupportedRule(target string) string {
	return fmt.Sprintf("target: %q is neither a factory of the settings nor %s", target, CloudInfraTarget)
}

// summariseHours aggregates the day's hours, some at a time. Where one fails for
// good the others end first.
func (t *targetRun) summariseHours(ctx workflow.Context) error {
	slots := workflow.NewSemaphore(ctx, hoursAtOnce)
	group := workflow.NewWaitGroup(ctx)
	var failed error
	for _, hour := range t.plan.Hours {
		if err := slots.Acquire(ctx, 1); err != nil {
			return err
		}
		if failed != nil {
			break
		}
		group.Add(1)
		workflow.GoNamed(ctx, "hour "+hour, func(ctx workflow.Context) {
			defer group.Done()
			defer slots.Release(1)
			if err := t.summariseHour(ctx, hour); err != nil && failed == nil {
				failed = fmt.Errorf("hour %s: %w", hour, err)
			}
		})
	}
	group.Wait(ctx)
	return failed
}

func (t *targetRun) summariseHour(ctx workflow.Context, hour string) error {
	options := hourOptions
	options.Summary = "hour " + hour
	var result HourResult
	request := HourRequest{Target: t.in.Target, Date: t.in.Date, Timezone: t.plan.Timezone, Hour: hour}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), SummariseHourActivity, request).Get(ctx, &result)
	if err != nil {
		return err
	}
	s := &t.status
	s.Done++
	s.Events += result.EventCount
	if result.Status == HourEmpty {
		s.Empty++
	}
	for _, dataset := range workflow.DeterministicKeys(result.InputCounts) {
		s.Objects[dataset] += result.InputCounts[dataset]
	}
	t.describe(ctx)
	return nil
}

func (t *targetRun) mergeDay(ctx workflow.Context) error {
	request := DayRequest{Target: t.in.Target, Date: t.in.Date, Timezone: t.plan.Timezone}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, mergeOptions), MergeDayActivity, request).Get(ctx, &t.day)
	if err != nil {
		return err
	}
	t.status.Result.ContextKey = t.day.ContextKey
	return nil
}

// draft asks a model, twice at most, until the writing deadline. Only a cancelled
// run is an error here: without a draft code writes the report.
func (t *targetRun) draft(ctx workflow.Context) error {
	if t.day.Empty {
		t.reason = "nothing was collected that day"
		return nil
	}
	deadline := t.day.StoredAt.Add(time.Duration(t.plan.WritingSeconds) * time.Second)
	t.status.WriteBefore = &deadline
	for attempt := 1; attempt <= maxDrafts && t.draftKey == ""; attempt++ {
		left := deadline.Sub(workflow.Now(ctx))
		switch {
		case t.in.callsLeft(t.status.Result.ModelCalls) <= 0:
			t.because("no model call was left")
			return nil
		case left < leastWriting:
			t.because("the writing deadline had passed")
			return nil
		}
		if err := t.ask(ctx, attempt, left); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.lose(callsOf(err))
			t.reason = "no draft by the model: " + causeOf(err)
			return nil
		}
		t.describe(ctx)
	}
	return nil
}

// because says why there is no draft, after what was wrong with the last one.
func (t *targetRun) because(reason string) {
	if t.reason != "" {
		reason = t.reason + "; " + reason
	}
	t.reason = reason
}

func (t *targetRun) ask(ctx workflow.Context, attempt int, left time.Duration) error {
	options := draftOptions
	options.Summary = fmt.Sprintf("draft %d", attempt)
	options.ScheduleToCloseTimeout = left
	options.StartToCloseTimeout = left
	request := DraftRequest{
		Target: t.in.Target, Date: t.in.Date, Timezone: t.plan.Timezone, ContextKey: t.day.ContextKey, DailyKey: t.day.DailyKey,
		Model: t.in.Model, Violations: t.status.Violations, Attempt: attempt, Force: t.in.Force,
		MaxCalls: t.in.callsLeft(t.status.Result.ModelCalls),
	}
	var draft DraftResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), DraftActivity, request).Get(ctx, &draft)
	if err != nil {
		return err
	}
	return t.take(draft)
}

// take counts what a draft cost and keeps it where it is valid.
func (t *targetRun) take(draft DraftResult) error {
	r := &t.status.Result
	r.InputTokens += draft.InputTokens
	r.OutputTokens += draft.OutputTokens
	switch {
	case draft.Unusable != "":
		t.lose(draft.Calls)
		return temporal.NewNonRetryableApplicationError(draft.Unusable, ErrorNoDraft, nil)
	case draft.Calls > 0:
		t.lose(draft.Calls - 1)
		r.ModelCalls++
	case !draft.Cached:
		r.ModelCalls++
	}
	if draft.Cost != "" {
		cost, err := exact.Parse(draft.Cost)
		if err != nil {
			return temporal.NewNonRetryableApplicationError("cost of a draft: "+err.Error(), ErrorInvalidInput, err)
		}
		t.cost = t.cost.Add(cost)
		r.Cost = t.cost.String()
	}
	if draft.Valid {
		t.draftKey, t.reason, t.status.Violations = draft.DraftKey, "", nil
		return nil
	}
	t.status.Violations = slices.Clone(draft.Violations)
	t.refused = append(t.refused, draft.Violations...)
	t.reason = shortened("the draft failed its checks: " + strings.Join(draft.Violations, "; "))
	return nil
}

// lose counts requests to the model that may have to be paid for and brought
// nothing.
func (t *targetRun) lose(calls int) {
	t.status.Result.ModelCalls += calls
	t.status.Result.LostCalls += calls
}

// callsOf is how many requests that may have to be paid for an activity made that
// ended with an error: it beats with their number.
func callsOf(err error) int {
	var calls int
	var timeout *temporal.TimeoutError
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &timeout) && timeout.HasLastHeartbeatDetails():
		_ = timeout.LastHeartbeatDetails(&calls) // other details count nothing
	case errors.As(err, &application) && application.Type() != ErrorNoDraft && application.HasDetails():
		_ = application.Details(&calls)
	}
	return max(calls, 0)
}

func (t *targetRun) publish(ctx workflow.Context) error {
	options := publishOptions
	options.Summary = "publish " + t.in.Target
	r := &t.status.Result
	request := PublishRequest{
		Target: t.in.Target, Date: t.in.Date, Timezone: t.plan.Timezone, DailyKey: t.day.DailyKey, ContextKey: t.day.ContextKey,
		DraftKey: t.draftKey, Reason: t.reason, Model: t.in.Model, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Cost: r.Cost,
		ModelCalls: r.ModelCalls, LostCalls: r.LostCalls,
	}
	if t.draftKey == "" {
		request.Violations = t.refused // a draft that is published tells what it corrects
	}
	var published PublishResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), PublishActivity, request).Get(ctx, &published)
	if err != nil {
		return err
	}
	r.Status = TargetSuccess
	if t.day.Empty {
		r.Status = TargetInsufficientData
	}
	r.Generator, r.Verdict, r.Summary = published.Generator, published.Verdict, published.Summary
	r.ReportKey, r.HTMLKey, r.MetadataKey = published.ReportKey, published.HTMLKey, published.MetadataKey
	r.Reason = t.reason
	if published.Reason != "" {
		r.Reason = published.Reason
	}
	return nil
}
