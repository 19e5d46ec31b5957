package report

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/workflows/names"
)

func targetsOf(results []TargetResult) []string {
	var all []string
	for _, r := range results {
		all = append(all, r.Target+" "+r.Status)
	}
	return all
}

func TestADayHasAReportOnEveryTarget(t *testing.T) {
	s := newStage(t)
	s.scheduledAt(night)
	day := s.day(DailyInput{})
	require.Equal(t, "2026-01-01", day.Date, "the local day before the run's nominal time")
	require.Equal(t, seoul, day.Timezone)
	require.Equal(t, DayCompleted, day.Status)
	require.Equal(t, []string{"factory-a success", "factory-b success", "factory-c success", "cloud-infra success"}, targetsOf(day.Results))
	require.Len(t, s.answers.told, 1)
	require.Equal(t, day.Results, s.answers.told[0].Results)
	require.False(t, s.answers.told[0].Notify)
	require.Equal(t, []Delivery{{Date: "2026-01-01", DeliverResult: DeliverResult{Outcome: DeliverySent}}}, day.Deliveries)
	require.LessOrEqual(t, s.answers.most, targetsAtOnce*hoursAtOnce)
	require.Equal(t, day, query[DailyResult](s))
}

func TestTheDayFollowsTheNominalTimeAndNotTheClock(t *testing.T) {
	s := newStage(t)
	s.SetStartTime(night.AddDate(0, 4, 0))
	s.scheduledAt(night)
	day := s.day(DailyInput{})
	require.Equal(t, "2026-01-01", day.Date)
	require.False(t, s.answers.planned[0].MakeUp, "a backfill names its days itself")
}

func TestOneTargetThatFailsCostsTheOthersNothing(t *testing.T) {
	s := newStage(t)
	publish := s.answers.publish
	s.answers.publish = func(req PublishRequest) (PublishResult, error) {
		if req.Target == "factory-b" {
			return PublishResult{}, final("Forbidden")
		}
		return publish(req)
	}
	merge := s.answers.merge
	s.answers.merge = func(req DayRequest) (DayResult, error) {
		day, err := merge(req)
		day.Empty = req.Target == "factory-c"
		return day, err
	}
	day := s.day(DailyInput{Date: "2026-01-01"})
	require.Equal(t, DayPartialSuccess, day.Status)
	require.Equal(t, []string{"factory-a success", "factory-b failed", "factory-c insufficient_data", "cloud-infra success"}, targetsOf(day.Results))
	failed := day.Results[1]
	require.Equal(t, TargetResult{
		Target: "factory-b", Date: "2026-01-01", Status: TargetFailed, Stage: StagePublish, Error: "told to fail",
		ContextKey: "reports/daily/2026-01-01/factory-b/report-context.json", ModelCalls: 1, InputTokens: 1000, OutputTokens: 300, Cost: "0.0075",
	}, failed)
	require.Equal(t, DayPartialSuccess, s.answers.told[0].Status)
}

func TestAnUnknownTargetFailsAloneAndUnread(t *testing.T) {
	s := newStage(t)
	day := s.day(DailyInput{Date: "2026-01-01", Targets: []string{"factory-z", "factory-a"}})
	require.Equal(t, DayPartialSuccess, day.Status)
	require.Equal(t, []string{"factory-z failed", "factory-a success"}, targetsOf(day.Results))
	require.Equal(t, StagePlan, day.Results[0].Stage)
	require.Contains(t, day.Results[0].Error, ErrorUnsupportedTarget)
	require.NotContains(t, s.answers.hours, "factory-z")
}

func TestTheOriginalsInputIsUnderstood(t *testing.T) {
	s := newStage(t)
	day := s.day(DailyInput{Date: "2026-01-01", Timezone: seoul, Factories: []string{"factory-b"}, ReportType: ReportType})
	require.Equal(t, []string{"factory-b success", "cloud-infra success"}, targetsOf(day.Results))
}

func TestDaysThatAnOutageDroppedAreMadeUpFor(t *testing.T) {
	s := newStage(t)
	s.scheduledAt(night)
	plan := s.answers.plan
	s.answers.plan = func(req PlanRequest) (Plan, error) {
		p, err := plan(req)
		if req.MakeUp {
			p.Missed = []TargetDate{{Target: "factory-a", Date: p.Previous}, {Target: "cloud-infra", Date: p.Previous}}
		}
		return p, err
	}
	day := s.day(DailyInput{})
	require.Len(t, day.Results, 4)
	require.Equal(t, []string{"factory-a success", "cloud-infra success"}, targetsOf(day.MadeUp))
	require.Equal(t, "2025-12-31", day.MadeUp[0].Date)
	require.Len(t, s.answers.told, 2)
	require.Equal(t, "2025-12-31", s.answers.told[0].Date)
	require.Equal(t, "2026-01-01", s.answers.told[1].Date)
}

func TestARunByHandMakesUpForNothing(t *testing.T) {
	s := newStage(t)
	s.day(DailyInput{})
	require.False(t, s.answers.planned[0].MakeUp)
}

func TestAMessageThatFailsFailsNothing(t *testing.T) {
	s := newStage(t)
	s.answers.deliver = func(DeliverRequest) (DeliverResult, error) { return DeliverResult{}, final("Rejected") }
	day := s.day(DailyInput{Date: "2026-01-01", Notify: true})
	require.Equal(t, DayCompleted, day.Status)
	require.Equal(t, DeliverResult{Outcome: DeliveryFailed, Reason: "told to fail"}, day.Deliveries[0].DeliverResult)
	require.True(t, s.answers.told[0].Notify)
}

func TestAQuietRunTellsNobody(t *testing.T) {
	s := newStage(t)
	require.Empty(t, s.day(DailyInput{Date: "2026-01-01", Quiet: true}).Deliveries)
	require.Empty(t, s.answers.told)
}

func TestWhatTheModelIsAskedGoesDownToTheTargets(t *testing.T) {
	s := newStage(t)
	s.day(DailyInput{Date: "2026-01-01", Targets: []string{"factory-a"}, Model: "other", Force: true})
	require.Equal(t, []any{"other", true}, []any{s.answers.drafts[0].Model, s.answers.drafts[0].Force})
}

func TestADayThatCannotBeMeantIsRefused(t *testing.T) {
	for _, in := range []DailyInput{
		{Date: "2026-13-01"}, {Date: "yesterday"}, {ReportType: "weekly"}, {Factories: []string{"factory-a"}, Targets: []string{"factory-b"}}, {Notify: true, Quiet: true},
	} {
		s := newStage(t)
		s.ExecuteWorkflow(names.DailyReport, in)
		refused, ok := errors.AsType[*temporal.ApplicationError](s.GetWorkflowError())
		require.True(t, ok, "%+v", in)
		require.Equal(t, ErrorInvalidInput, refused.Type())
	}
}

func TestACancelledDayEndsItsTargetsAndTellsNobody(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) { return DraftResult{}, errors.New("down") }
	s.RegisterDelayedCallback(s.CancelWorkflow, 10*time.Minute)
	s.ExecuteWorkflow(names.DailyReport, DailyInput{Date: "2026-01-01"})
	require.True(t, temporal.IsCanceledError(s.GetWorkflowError()))
	require.Empty(t, s.answers.published)
	require.Empty(t, s.answers.told)
	require.Less(t, s.Now().Sub(night), 12*time.Minute)
}

func items(targets ...string) []TargetDate {
	var all []TargetDate
	for _, date := range []string{"2026-01-01", "2026-01-02"} {
		for _, target := range targets {
			all = append(all, TargetDate{Target: target, Date: date})
		}
	}
	return all
}

func (s *stage) backfill(in BackfillInput) BackfillState {
	s.t.Helper()
	s.ExecuteWorkflow(names.ReportBackfill, in)
	require.True(s.t, s.IsWorkflowCompleted())
	require.NoError(s.t, s.GetWorkflowError())
	var state BackfillState
	require.NoError(s.t, s.GetWorkflowResult(&state))
	return state
}

func TestABackfillMakesEveryReportAFewAtATime(t *testing.T) {
	s := newStage(t)
	state := s.backfill(BackfillInput{Items: items("factory-a", "factory-b", "cloud-infra"), Timezone: seoul, Model: "own"})
	require.Len(t, state.Results, 6)
	for i, item := range items("factory-a", "factory-b", "cloud-infra") {
		require.Equal(t, item, TargetDate{Target: state.Results[i].Target, Date: state.Results[i].Date})
		require.Equal(t, TargetSuccess, state.Results[i].Status)
	}
	require.Equal(t, 6, state.ModelCalls)
	require.LessOrEqual(t, s.answers.most, backfillAtOnce*hoursAtOnce)
	require.Equal(t, "own", s.answers.drafts[0].Model)
	require.Empty(t, s.answers.told)
}

func TestABackfillNeverAsksTheModelMoreThanItMay(t *testing.T) {
	for bound := range 8 {
		s := newStage(t)
		s.answers.draft = func(req DraftRequest, _ int) (DraftResult, error) {
			if req.Target == "factory-a" {
				return DraftResult{DraftKey: "bad", Violations: []string{"wrong"}}, nil
			}
			return DraftResult{DraftKey: "good", Valid: true}, nil
		}
		state := s.backfill(BackfillInput{Items: items("factory-a", "factory-b"), MaxModelCalls: &bound})
		require.LessOrEqual(t, len(s.answers.drafts), bound)
		require.Len(t, s.answers.drafts, state.ModelCalls)
		require.Equal(t, min(bound, 6), state.ModelCalls, "what a report gives back, the next one uses")
		require.Len(t, state.Results, 4)
		for _, r := range state.Results {
			if r.Status == TargetNotGenerated {
				require.Contains(t, r.Reason, "model calls was reached")
				require.NotContains(t, s.publishedDays(r.Target), r.Date)
			}
		}
	}
}

func (s *stage) publishedDays(target string) []string {
	var days []string
	for _, p := range s.answers.published {
		if p.Target == target {
			days = append(days, p.Date)
		}
	}
	return days
}

func TestABackfillGoesOnAfterAFailure(t *testing.T) {
	s := newStage(t)
	s.answers.hour = func(req HourRequest) (HourResult, error) {
		if req.Target == "factory-a" && req.Date == "2026-01-01" {
			return HourResult{}, final("Forbidden")
		}
		return HourResult{Hour: req.Hour, Status: HourSuccess}, nil
	}
	state := s.backfill(BackfillInput{Items: items("factory-a")})
	require.Equal(t, []string{TargetFailed, TargetSuccess}, []string{state.Results[0].Status, state.Results[1].Status})
	require.Equal(t, StageAggregate, state.Results[0].Stage)
}

func TestABackfillContinuesAsNewWithWhatIsLeft(t *testing.T) {
	s := newStage(t)
	s.SetContinueAsNewSuggested(true)
	bound := 9
	s.ExecuteWorkflow(names.ReportBackfill, BackfillInput{Items: items("factory-a"), MaxModelCalls: &bound})
	require.True(t, s.IsWorkflowCompleted())
	require.ErrorContains(t, s.GetWorkflowError(), "continue as new")
}

func TestACarryIsOnlyForAContinuedRun(t *testing.T) {
	negative := -1
	for _, in := range []BackfillInput{
		{Items: items("factory-a"), Carry: &BackfillState{Next: 1}},
		{},
		{Items: slices.Repeat(items("factory-a"), MaxBackfill)},
		{Items: items("factory-a"), MaxModelCalls: &negative},
		{Items: []TargetDate{{Target: "factory-a", Date: "x"}}},
	} {
		s := newStage(t)
		s.ExecuteWorkflow(names.ReportBackfill, in)
		refused, ok := errors.AsType[*temporal.ApplicationError](s.GetWorkflowError())
		require.True(t, ok)
		require.Equal(t, ErrorInvalidInput, refused.Type())
	}
}

func TestAContinuedBackfillGoesOnWhereItWas(t *testing.T) {
	s := newStage(t)
	s.SetContinuedExecutionRunID("run-before")
	bound := 3
	before := BackfillState{Next: 1, ModelCalls: 2, Results: []BackfillResult{{Target: "factory-a", Date: "2026-01-01", Status: TargetSuccess, ModelCalls: 2}}}
	state := s.backfill(BackfillInput{Items: items("factory-a", "factory-b"), MaxModelCalls: &bound, Carry: &before})
	require.Equal(t, 3, state.ModelCalls)
	require.Equal(t, []string{TargetSuccess, TargetSuccess, TargetNotGenerated, TargetNotGenerated}, []string{
		state.Results[0].Status, state.Results[1].Status, state.Results[2].Status, state.Results[3].Status,
	})
}

func TestACancelledBackfillEndsItsReports(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) { return DraftResult{}, errors.New("down") }
	s.RegisterDelayedCallback(s.CancelWorkflow, 5*time.Minute)
	s.ExecuteWorkflow(names.ReportBackfill, BackfillInput{Items: items("factory-a", "factory-b", "factory-c")})
	require.True(t, temporal.IsCanceledError(s.GetWorkflowError()))
	require.Empty(t, s.answers.published)
	require.Len(t, s.answers.merged, backfillAtOnce)
}

func TestAMistypedFieldIsRefused(t *testing.T) {
	s := newStage(t)
	s.ExecuteWorkflow(names.DailyReport, map[string]any{"report_dat": "2026-01-01", "target": []string{"factory-a"}})
	require.True(t, s.IsWorkflowCompleted())
	require.ErrorContains(t, s.GetWorkflowError(), "report_dat")
	require.Empty(t, s.answers.planned)
}
