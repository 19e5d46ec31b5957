package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"millrace/workflows/schedule"
)

// Statuses of a day.
const (
	DayRunning        = "running"
	DayCompleted      = "completed"
	DayPartialSuccess = "partial_success"
)

// DailyResult is how the reports on a day ended, and the answer to the query.
type DailyResult struct {
	Date     string `json:"report_date"`
	Timezone string `json:"timezone"`
	// Status is completed where every target has a report, else partial_success.
	Status  string         `json:"status"`
	Results []TargetResult `json:"results"`
	// MadeUp are reports on the day before that an earlier run owed.
	MadeUp []TargetResult `json:"made_up,omitempty"`
	// Deliveries say what became of the messages about the days.
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Delivery is what became of the message about a day.
type Delivery struct {
	Date string `json:"report_date"`
	DeliverResult
}

// DailyReport makes the reports on all targets of a local day, each as a child of
// its own, so that one that fails costs the others nothing, and tells people. A
// run of the schedule takes its day from its nominal time, and makes up for
// targets of the day before that have no report.
func DailyReport(ctx workflow.Context, in DailyInput) (DailyResult, error) {
	if err := in.check(); err != nil {
		return DailyResult{}, err
	}
	d := &daily{in: in, state: DailyResult{Date: in.Date, Timezone: in.Timezone, Status: DayRunning, Results: []TargetResult{}}}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (DailyResult, error) { return d.state, nil }); err != nil {
		return DailyResult{}, err
	}
	return d.run(ctx)
}

type daily struct {
	in    DailyInput
	plan  Plan
	state DailyResult
}

func (d *daily) run(ctx workflow.Context) (DailyResult, error) {
	if err := d.planDay(ctx); err != nil {
		return d.state, err
	}
	if err := d.report(ctx); err != nil {
		return d.state, err
	}
	d.settle(ctx)
	d.deliver(ctx)
	d.describe(ctx)
	return d.state, ctx.Err()
}

func (d *daily) planDay(ctx workflow.Context) error {
	at := schedule.Time(ctx)
	request := PlanRequest{At: at, Date: d.in.Date, Timezone: d.in.Timezone, Targets: d.in.targets(), MakeUp: d.makesUp(ctx, at)}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, planOptions), PlanActivity, request).Get(ctx, &d.plan)
	if err != nil {
		return fmt.Errorf("plan the day: %w", err)
	}
	d.state.Date, d.state.Timezone = d.plan.Date, d.plan.Timezone
	for _, target := range d.plan.Unknown {
		d.state.Results = append(d.state.Results, TargetResult{
			Target: target, Date: d.plan.Date, Status: TargetFailed, Stage: StagePlan, Error: ErrorUnsupportedTarget + ": " + unsupportedRule(target),
		})
	}
	d.describe(ctx)
	return nil
}

// makesUp tells whether the run looks at the day before its own: the schedule
// buffers one run only, so that a long outage drops days. A backfill of the past
// names its days itself.
func (d *daily) makesUp(ctx workflow.Context, at time.Time) bool {
	_, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(schedule.Start)
	return scheduled && d.in.Date == "" && len(d.in.targets()) == 0 && workflow.Now(ctx).Sub(at) <= CatchUp
}

// report makes all reports, some at a time.
func (d *daily) report(ctx workflow.Context) error {
	jobs := slices.Clone(d.plan.Missed)
	for _, target := range d.plan.Targets {
		jobs = append(jobs, TargetDate{Target: target, Date: d.plan.Date})
	}
	slots := workflow.NewSemaphore(ctx, targetsAtOnce)
	group := workflow.NewWaitGroup(ctx)
	for _, job := range jobs {
		if err := slots.Acquire(ctx, 1); err != nil {
			break
		}
		group.Add(1)
		workflow.GoNamed(ctx, job.Target+" "+job.Date, func(ctx workflow.Context) {
			defer group.Done()
			defer slots.Release(1)
			d.make(ctx, job)
		})
	}
	group.Wait(ctx)
	return ctx.Err()
}

func (d *daily) make(ctx workflow.Context, job TargetDate) {
	in := TargetInput{Target: job.Target, Date: job.Date, Timezone: d.plan.Timezone, Model: d.in.Model, Force: d.in.Force}
	result, err := makeReport(ctx, in)
	if err != nil {
		return
	}
	result.Date = job.Date
	if job.Date == d.plan.Date {
		d.state.Results = append(d.state.Results, result)
	} else {
		d.state.MadeUp = append(d.state.MadeUp, result)
	}
	d.describe(ctx)
}

// settle puts the results in the order of the targets and judges the day.
func (d *daily) settle(ctx workflow.Context) {
	order := func(a, b TargetResult) int {
		return slices.Index(d.plan.Targets, a.Target) - slices.Index(d.plan.Targets, b.Target)
	}
	slices.SortStableFunc(d.state.Results, order)
	slices.SortStableFunc(d.state.MadeUp, order)
	d.state.Status = judge(d.state.Results)
	d.describe(ctx)
}

func judge(results []TargetResult) string {
	if slices.ContainsFunc(results, func(r TargetResult) bool { return r.Status == TargetFailed }) {
		return DayPartialSuccess
	}
	return DayCompleted
}

// deliver tells people of the days. A message that can't be delivered is part of
// the result and fails nothing: the reports are there.
func (d *daily) deliver(ctx workflow.Context) {
	if d.in.Quiet {
		return
	}
	if len(d.state.MadeUp) > 0 {
		d.tell(ctx, d.plan.Previous, d.state.MadeUp)
	}
	d.tell(ctx, d.plan.Date, d.state.Results)
}

func (d *daily) tell(ctx workflow.Context, date string, results []TargetResult) {
	options := deliverOptions
	options.Summary = "tell people of " + date
	request := DeliverRequest{Date: date, Timezone: d.plan.Timezone, Status: judge(results), Results: results, Notify: d.in.Notify}
	var told DeliverResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), DeliverActivity, request).Get(ctx, &told)
	if err != nil {
		told = DeliverResult{Outcome: DeliveryFailed, Reason: causeOf(err)}
	}
	d.state.Deliveries = append(d.state.Deliveries, Delivery{Date: date, DeliverResult: told})
}

// describe shows the day in the Temporal UI.
func (d *daily) describe(ctx workflow.Context) {
	s := d.state
	lines := []string{
		fmt.Sprintf("### Reports on %s (%s): %s\n", s.Date, s.Timezone, s.Status),
		fmt.Sprintf("%d of %d targets\n", len(s.Results), len(d.plan.Targets)+len(d.plan.Unknown)),
		table(slices.Concat(s.Results, s.MadeUp)),
	}
	for _, told := range s.Deliveries {
		lines = append(lines, fmt.Sprintf("Message about %s: %s %s\n", told.Date, told.Outcome, cell.Replace(told.Reason)))
	}
	workflow.SetCurrentDetails(ctx, strings.Join(lines, "\n"))
}
