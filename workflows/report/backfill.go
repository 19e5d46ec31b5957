package report

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

const (
	// backfillAtOnce is how many reports a backfill makes side by side: few, so that
	// the night's own reports find room.
	backfillAtOnce = 2
	// MaxBackfill bounds the reports of one backfill.
	MaxBackfill = 1000
)

// BackfillInput says which reports a backfill makes, in this order.
type BackfillInput struct {
	Items    []TargetDate `json:"items"`
	Timezone string       `json:"timezone,omitempty"`
	Model    string       `json:"model_id,omitempty"`
	// Force asks the model even where a draft of the same input is kept.
	Force bool `json:"force,omitempty"`
	// MaxModelCalls bounds the requests to a model that may have to be paid for, in
	// all; nil does not.
	MaxModelCalls *int           `json:"max_model_calls,omitempty"`
	Carry         *BackfillState `json:"carry,omitempty"`
}

func (in BackfillInput) check(continued bool) error {
	switch {
	case len(in.Items) == 0:
		return refusal("items", "must not be empty")
	case len(in.Items) > MaxBackfill:
		return refusal("items", fmt.Sprintf("must be at most %d", MaxBackfill))
	case in.MaxModelCalls != nil && *in.MaxModelCalls < 0:
		return refusal("max_model_calls", "must not be negative")
	case in.Carry != nil && !continued:
		return refusal("carry", "is only for a continued run")
	}
	for _, item := range in.Items {
		if err := (TargetInput{Target: item.Target, Date: item.Date}).check(); err != nil {
			return err
		}
	}
	return nil
}

// TargetNotGenerated is the status of a report that a backfill did not make
// because no model call was left.
const TargetNotGenerated = "not_generated"

// BackfillState is what a backfill did so far, its result, and the answer to the
// query.
type BackfillState struct {
	// Next is the index of the first item that is not begun.
	Next    int              `json:"next"`
	Results []BackfillResult `json:"results"`
	// ModelCalls is how many requests to a model may have to be paid for.
	ModelCalls int `json:"model_calls"`
}

// BackfillResult is how one report ended.
type BackfillResult struct {
	Target     string `json:"target"`
	Date       string `json:"report_date"`
	Status     string `json:"status"`
	Stage      string `json:"stage,omitempty"`
	Error      string `json:"error,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Generator  string `json:"generator,omitempty"`
	Verdict    string `json:"verdict,omitempty"`
	ReportKey  string `json:"report_key,omitempty"`
	ModelCalls int    `json:"model_calls"`
	Cost       string `json:"cost_usd,omitempty"`
	Awaited    bool   `json:"awaited,omitempty"`
}

// ReportBackfill makes reports on days in the past, a few side by side. It tells
// nobody. The bound of model calls holds whatever crashes: each report is given
// what it may use at most before it starts, and gives back what it did not.
func ReportBackfill(ctx workflow.Context, in BackfillInput) (BackfillState, error) {
	if err := in.check(workflow.GetInfo(ctx).ContinuedExecutionRunID != ""); err != nil {
		return BackfillState{}, err
	}
	b := &backfill{in: in, state: BackfillState{Results: []BackfillResult{}}}
	if in.Carry != nil {
		b.state = *in.Carry
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (BackfillState, error) { return b.state, nil }); err != nil {
		return BackfillState{}, err
	}
	return b.run(ctx)
}

type backfill struct {
	in    BackfillInput
	state BackfillState
	// reserved are model calls that running reports may still make.
	reserved int
	running  int
}

func (b *backfill) run(ctx workflow.Context) (BackfillState, error) {
	for b.state.Next < len(b.in.Items) && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		// With calls given out and none left, one that ends may give some back.
		err := workflow.Await(ctx, func() bool { return b.running < backfillAtOnce && (b.calls() != 0 || b.running == 0) })
		if err != nil {
			break
		}
		item := b.in.Items[b.state.Next]
		b.state.Next++
		b.begin(ctx, item)
	}
	ending, _ := workflow.NewDisconnectedContext(ctx) // a cancelled run waits for the end of its children too
	_ = workflow.Await(ending, func() bool { return b.running == 0 })
	if err := ctx.Err(); err != nil {
		return b.state, err
	}
	if b.state.Next < len(b.in.Items) {
		next := b.in
		next.Carry = &b.state
		return b.state, workflow.NewContinueAsNewError(ctx, names.ReportBackfill, next)
	}
	b.settle()
	return b.state, nil
}

// calls is how many model calls the next report may make.
func (b *backfill) calls() int {
	if b.in.MaxModelCalls == nil {
		return maxDrafts
	}
	return min(maxDrafts, *b.in.MaxModelCalls-b.state.ModelCalls-b.reserved)
}

func (b *backfill) begin(ctx workflow.Context, item TargetDate) {
	calls := b.calls()
	if calls <= 0 {
		b.add(ctx, BackfillResult{
			Target: item.Target, Date: item.Date, Status: TargetNotGenerated,
			Reason: fmt.Sprintf("the bound of %d model calls was reached", *b.in.MaxModelCalls),
		})
		return
	}
	b.running++
	b.reserved += calls
	workflow.GoNamed(ctx, item.Target+" "+item.Date, func(ctx workflow.Context) {
		in := TargetInput{Target: item.Target, Date: item.Date, Timezone: b.in.Timezone, Model: b.in.Model, Force: b.in.Force}
		if b.in.MaxModelCalls != nil {
			in.MaxModelCalls = &calls
		}
		result, err := makeReport(ctx, in)
		b.running--
		b.reserved -= calls
		if err != nil {
			return
		}
		short := shortOf(item, result)
		if result.Stage == StageRun {
			short.ModelCalls = calls // nobody knows how many it made
		}
		b.add(ctx, short)
	})
}

func shortOf(item TargetDate, r TargetResult) BackfillResult {
	short := BackfillResult{
		Target: item.Target, Date: item.Date, Status: r.Status, Stage: r.Stage, Error: r.Error, Reason: r.Reason, Generator: r.Generator,
		Verdict: r.Verdict, ReportKey: r.ReportKey, ModelCalls: r.ModelCalls, Cost: r.Cost, Awaited: r.Awaited,
	}
	if r.Awaited {
		short.ModelCalls, short.Cost = 0, "" // the run that made them counts them
	}
	return short
}

func (b *backfill) add(ctx workflow.Context, r BackfillResult) {
	b.state.ModelCalls += r.ModelCalls
	b.state.Results = append(b.state.Results, r)
	counts := map[string]int{}
	for _, result := range b.state.Results {
		counts[result.Status]++
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("| reports | success | insufficient data | failed | not generated | model calls |\n|---|---|---|---|---|---|\n| %d of %d | %d | %d | %d | %d | %d |\n",
		len(b.state.Results), len(b.in.Items), counts[TargetSuccess], counts[TargetInsufficientData], counts[TargetFailed], counts[TargetNotGenerated], b.state.ModelCalls))
}

// settle puts the results in the order that was asked for.
func (b *backfill) settle() {
	place := make(map[TargetDate]int, len(b.in.Items))
	for i, item := range b.in.Items {
		place[item] = i
	}
	slices.SortStableFunc(b.state.Results, func(x, y BackfillResult) int {
		return place[TargetDate{Target: x.Target, Date: x.Date}] - place[TargetDate{Target: y.Target, Date: y.Date}]
	})
}
