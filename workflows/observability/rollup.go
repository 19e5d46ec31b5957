package observability

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
	"millrace/workflows/schedule"
)

// StatusQuery answers with what a rollup did so far: its Carry.
const StatusQuery = "status"

const (
	// lanes is how many shards are drained side by side, each by one activity.
	lanes = 4
	// ruleLateness is how old a run's time may be for rules to be judged as of it:
	// they speak of now, and a run that makes up for an outage must not.
	ruleLateness = 15 * time.Minute
	// RollupCatchUp is how late a run may start. Any run counts all that is pending,
	// so that one that is missed costs nothing.
	RollupCatchUp = time.Hour
)

// findOptions: one small read of each shard. An outage is waited for as long as by
// a drain.
var findOptions = workflow.ActivityOptions{
	Summary:                "look for pending signals",
	StartToCloseTimeout:    30 * time.Second,
	ScheduleToCloseTimeout: 30 * time.Minute,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
}

// drainOptions: a stretch ends itself after three minutes and beats with every
// page. An outage of the table is waited for half an hour; then the next run has
// what is left.
var drainOptions = workflow.ActivityOptions{
	StartToCloseTimeout:    5 * time.Minute,
	ScheduleToCloseTimeout: 30 * time.Minute,
	HeartbeatTimeout:       45 * time.Second,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
}

// evaluateOptions: a few reads per application with rules. The next run judges
// again, so that a failing one is not tried for long.
var evaluateOptions = workflow.ActivityOptions{
	Summary:                "judge alert rules",
	StartToCloseTimeout:    2 * time.Minute,
	ScheduleToCloseTimeout: 4 * time.Minute,
	HeartbeatTimeout:       45 * time.Second,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 20 * time.Second},
}

// RollupInput bounds what a rollup counts, by the time of receipt: from From on
// and before To. The schedule gives neither: then it is all that was received
// before the run's nominal time.
type RollupInput struct {
	From  *time.Time `json:"from,omitempty"`
	To    *time.Time `json:"to,omitempty"`
	Carry *Carry     `json:"carry,omitempty"`
}

// Carry is what a rollup carries from run to run, and its result.
type Carry struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// At is the run's nominal time.
	At time.Time `json:"at"`
	// Shards are those that are not drained yet, Next where to go on in them.
	Shards []int             `json:"shards"`
	Next   map[int]time.Time `json:"next,omitempty"`
	Counts Counts            `json:"counts"`
	Rules  *EvaluateResult   `json:"rules,omitempty"`
}

// SignalRollup counts pending signals into the aggregates of their hours, days
// and months, then judges the alert rules. Any number of rollups may run at once:
// a signal counts once.
func SignalRollup(ctx workflow.Context, in RollupInput) (Carry, error) {
	r, err := newRollup(ctx, in)
	if err != nil {
		return Carry{}, err
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (Carry, error) { return r.state, nil }); err != nil {
		return Carry{}, err
	}
	return r.run(ctx)
}

type rollup struct {
	state     Carry
	continued bool
	failed    error
}

func newRollup(ctx workflow.Context, in RollupInput) (*rollup, error) {
	if in.Carry != nil {
		if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
			return nil, refusal("carry is only for a continued run")
		}
		return &rollup{state: *in.Carry, continued: true}, nil
	}
	at := schedule.Time(ctx)
	r := &rollup{state: Carry{To: at, At: at}}
	if in.From != nil {
		r.state.From = in.From.UTC()
	}
	if in.To != nil {
		r.state.To = in.To.UTC()
	}
	if !r.state.From.Before(r.state.To) {
		return nil, refusal("from: must be before to")
	}
	return r, nil
}

func (r *rollup) run(ctx workflow.Context) (Carry, error) {
	if err := r.find(ctx); err != nil {
		return r.state, err
	}
	if err := r.drain(ctx); err != nil {
		return r.state, err
	}
	if len(r.state.Shards) > 0 {
		return r.state, workflow.NewContinueAsNewError(ctx, names.SignalRollup, RollupInput{Carry: &r.state})
	}
	err := r.evaluate(ctx)
	r.describe(ctx)
	return r.state, err
}

// find asks which shards have anything to drain: mostly none or a few, and each
// drain is an activity. A continued run knows them.
func (r *rollup) find(ctx workflow.Context) error {
	if r.continued {
		return nil
	}
	var found FindResult
	req := FindRequest{From: r.state.From, To: r.state.To}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, findOptions), FindPendingActivity, req).Get(ctx, &found)
	if err != nil {
		return fmt.Errorf("look for pending signals: %w", err)
	}
	r.state.Shards = found.Shards
	return nil
}

// drain drains the shards in a few lanes until none is left or the history is
// long enough. A shard that fails does not keep the others from it.
func (r *rollup) drain(ctx workflow.Context) error {
	queue := r.state.Shards
	var left []int
	group := workflow.NewWaitGroup(ctx)
	for lane := range lanes {
		group.Add(1)
		workflow.GoNamed(ctx, fmt.Sprint("lane ", lane), func(ctx workflow.Context) {
			defer group.Done()
			for len(queue) > 0 {
				shard := queue[0]
				queue = queue[1:]
				if !r.shard(ctx, shard) {
					left = append(left, shard)
				}
			}
		})
	}
	group.Wait(ctx)
	r.state.Shards = left
	return r.failed
}

// shard drains one shard and tells whether it is done with: drained, or failed.
func (r *rollup) shard(ctx workflow.Context, shard int) bool {
	for !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		req := DrainRequest{Shard: shard, From: r.state.From, To: r.state.To}
		if next, begun := r.state.Next[shard]; begun {
			req.From = next
		}
		options := drainOptions
		options.Summary = fmt.Sprintf("count shard %d", shard)
		var result DrainResult
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), DrainSignalsActivity, req).Get(ctx, &result)
		if err != nil {
			if r.failed == nil {
				r.failed = fmt.Errorf("count shard %d: %w", shard, err)
			}
			return true
		}
		r.state.Counts.Add(result.Counts)
		r.describe(ctx)
		if result.Done {
			delete(r.state.Next, shard)
			return true
		}
		if r.state.Next == nil {
			r.state.Next = map[int]time.Time{}
		}
		r.state.Next[shard] = result.Next
	}
	return false
}

// evaluate judges the rules as of the run's nominal time, unless that is past.
func (r *rollup) evaluate(ctx workflow.Context) error {
	if workflow.Now(ctx).Sub(r.state.At) > ruleLateness {
		return nil
	}
	var result EvaluateResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, evaluateOptions), EvaluateRulesActivity, EvaluateRequest{At: r.state.At}).Get(ctx, &result)
	if err != nil {
		return fmt.Errorf("judge alert rules: %w", err)
	}
	r.state.Rules = &result
	return nil
}

// describe shows the rollup in the Temporal UI.
func (r *rollup) describe(ctx workflow.Context) {
	c := r.state.Counts
	text := fmt.Sprintf("| received before | counted | dropped | stuck | transactions | trace rows |\n|---|---|---|---|---|---|\n| %s | %d | %d | %d | %d | %d |",
		r.state.To.Format(time.RFC3339), c.Signals, c.Dropped, c.Stuck, c.Transactions, c.TraceRows)
	if rules := r.state.Rules; rules != nil {
		text += fmt.Sprintf("\n\nRules: %d judged, %d firing, %d new, %d resolved", rules.Rules, rules.Firing, rules.New, rules.Resolved)
	}
	workflow.SetCurrentDetails(ctx, text)
}
