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

var oneDay = TargetInput{Target: "factory-a", Date: "2026-01-01", Timezone: seoul}

func TestAReportGoesThroughItsStages(t *testing.T) {
	s := newStage(t)
	result := s.target(oneDay)
	require.Equal(t, TargetResult{
		Target: "factory-a", Date: "2026-01-01", Status: TargetSuccess, ContextKey: "reports/daily/2026-01-01/factory-a/report-context.json",
		ReportKey: "reports/daily/2026-01-01/factory-a/report.md", Generator: GeneratorModel, Verdict: "warning", Summary: []string{"score 84.5"},
		ModelCalls: 1, InputTokens: 1000, OutputTokens: 300, Cost: "0.0075",
	}, result)
	a := s.answers
	slices.Sort(a.hours["factory-a"])
	require.Equal(t, hoursOfDay, a.hours["factory-a"])
	require.LessOrEqual(t, a.most, hoursAtOnce)
	require.Len(t, a.merged, 1)
	require.Equal(t, []DraftRequest{{
		Target: "factory-a", Date: "2026-01-01", Timezone: seoul, ContextKey: result.ContextKey, DailyKey: "reports/daily/2026-01-01/factory-a/daily.json", Attempt: 1, MaxCalls: 3,
	}}, a.drafts)
	require.Equal(t, "drafts/1.json", a.published[0].DraftKey)
	require.Empty(t, a.published[0].Reason)
	status := query[TargetStatus](s)
	require.Equal(t, StageDone, status.Stage)
	require.Equal(t, map[string]int{"factory_state": 24 * 1200, "infra_state": 24 * 180}, status.Objects)
	require.Equal(t, 24, status.Events)
	require.Equal(t, 24, status.Done)
}

func TestAnInvalidDraftIsCorrectedOnce(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(req DraftRequest, nth int) (DraftResult, error) {
		if nth == 1 {
			return DraftResult{DraftKey: "drafts/bad.json", Violations: []string{"summary: 97.3 is no number of the context"}, InputTokens: 10, OutputTokens: 5, Cost: "0.1"}, nil
		}
		return DraftResult{DraftKey: "drafts/good.json", Valid: true, InputTokens: 20, OutputTokens: 5, Cost: "0.2"}, nil
	}
	result := s.target(oneDay)
	require.Equal(t, GeneratorModel, result.Generator)
	require.Equal(t, []any{2, int64(30), int64(10), "0.3"}, []any{result.ModelCalls, result.InputTokens, result.OutputTokens, result.Cost})
	require.Empty(t, result.Reason)
	require.Equal(t, 2, s.answers.drafts[1].Attempt)
	require.Equal(t, []string{"summary: 97.3 is no number of the context"}, s.answers.drafts[1].Violations)
	require.Equal(t, "drafts/good.json", s.answers.published[0].DraftKey)
	require.Equal(t, "0.3", s.answers.published[0].Cost)
	require.Empty(t, s.answers.published[0].Violations)
}

func TestTwoInvalidDraftsGiveTheTemplate(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) {
		return DraftResult{DraftKey: "drafts/bad.json", Violations: []string{"a foreign factory"}, Cost: "0.1"}, nil
	}
	result := s.target(oneDay)
	require.Len(t, s.answers.drafts, maxDrafts)
	require.Equal(t, TargetSuccess, result.Status)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Contains(t, result.Reason, "a foreign factory")
	require.Empty(t, s.answers.published[0].DraftKey)
	require.Equal(t, result.Reason, s.answers.published[0].Reason)
	require.Equal(t, []string{"a foreign factory", "a foreign factory"}, s.answers.published[0].Violations)
}

func TestAModelThatIsDownIsAskedUntilTheWritingDeadline(t *testing.T) {
	s := newStage(t)
	var first, last time.Time
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) {
		last = s.Now()
		if first.IsZero() {
			first = last
		}
		return DraftResult{}, errors.New("the model does not answer")
	}
	result := s.target(oneDay)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Equal(t, TargetSuccess, result.Status)
	require.Contains(t, result.Reason, "the model does not answer")
	require.Greater(t, len(s.answers.drafts), 20, "it was asked again and again")
	require.Less(t, last.Sub(first), 45*time.Minute)
	require.Greater(t, last.Sub(first), 40*time.Minute)
	require.Less(t, s.Now().Sub(night), 46*time.Minute, "and the report came at the deadline")
}

func TestAModelThatComesBackBeforeTheDeadlineWrites(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) {
		if s.Now().Sub(night) < 30*time.Minute {
			return DraftResult{}, temporal.NewApplicationErrorWithOptions("throttled", "Throttled", temporal.ApplicationErrorOptions{NextRetryDelay: time.Minute})
		}
		return DraftResult{DraftKey: "drafts/late.json", Valid: true}, nil
	}
	result := s.target(oneDay)
	require.Equal(t, GeneratorModel, result.Generator)
	require.Equal(t, 1, result.ModelCalls, "refused calls cost nothing")
}

func TestACorrectionKeepsToTheSameDeadline(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(req DraftRequest, nth int) (DraftResult, error) {
		if req.Attempt == 1 {
			return DraftResult{DraftKey: "drafts/bad.json", Violations: []string{"wrong date"}}, nil
		}
		return DraftResult{}, errors.New("down")
	}
	result := s.target(oneDay)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Less(t, s.Now().Sub(night), 46*time.Minute)
}

func TestAModelThatRefusesForGoodIsNotAskedAgain(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) { return DraftResult{}, final("AccessDenied") }
	result := s.target(oneDay)
	require.Len(t, s.answers.drafts, 1)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Contains(t, result.Reason, "told to fail")
}

func TestAContextOfLongAgoLeavesTheModelNoTime(t *testing.T) {
	s := newStage(t)
	s.answers.merge = func(DayRequest) (DayResult, error) {
		return DayResult{DailyKey: "d", ContextKey: "c", StoredAt: night.Add(-45 * time.Minute)}, nil
	}
	result := s.target(oneDay)
	require.Empty(t, s.answers.drafts)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Equal(t, "the writing deadline had passed", result.Reason)
}

func TestAnEmptyDayAsksNoModel(t *testing.T) {
	s := newStage(t)
	s.answers.hour = func(req HourRequest) (HourResult, error) { return HourResult{Hour: req.Hour, Status: HourEmpty}, nil }
	s.answers.merge = func(DayRequest) (DayResult, error) {
		return DayResult{Empty: true, DailyKey: "d", ContextKey: "c", StoredAt: s.Now()}, nil
	}
	result := s.target(oneDay)
	require.Empty(t, s.answers.drafts)
	require.Equal(t, TargetInsufficientData, result.Status)
	require.Equal(t, GeneratorTemplate, result.Generator)
	require.Equal(t, "nothing was collected that day", result.Reason)
	require.Equal(t, 24, query[TargetStatus](s).Empty)
}

func TestEachStageFailsWithItsName(t *testing.T) {
	for stage, set := range map[string]func(*answers){
		StagePlan: func(a *answers) { a.plan = func(PlanRequest) (Plan, error) { return Plan{}, final("InvalidInput") } },
		StageAggregate: func(a *answers) {
			a.hour = func(HourRequest) (HourResult, error) { return HourResult{}, final("Forbidden") }
		},
		StageMerge: func(a *answers) {
			a.merge = func(DayRequest) (DayResult, error) { return DayResult{}, final("ContentIntegrity") }
		},
		StagePublish: func(a *answers) {
			a.publish = func(PublishRequest) (PublishResult, error) { return PublishResult{}, final("Forbidden") }
		},
	} {
		t.Run(stage, func(t *testing.T) {
			s := newStage(t)
			set(s.answers)
			result := s.target(oneDay)
			require.Equal(t, TargetFailed, result.Status)
			require.Equal(t, stage, result.Stage)
			require.Equal(t, "told to fail", result.Error)
			if stage == StagePublish {
				require.NotEmpty(t, result.ContextKey, "the context stays")
			}
		})
	}
}

func TestAStoreThatIsDownForHoursIsWaitedFor(t *testing.T) {
	for _, stage := range []string{StagePlan, StageAggregate, StageMerge, StagePublish} {
		t.Run(stage, func(t *testing.T) {
			s := newStage(t)
			down := func(at string) error {
				if at == stage && s.Now().Sub(night) < 5*time.Hour {
					return errors.New("no answer")
				}
				return nil
			}
			a := s.answers
			plan, hour, merge, publish := a.plan, a.hour, a.merge, a.publish
			a.plan = func(r PlanRequest) (Plan, error) { p, err := plan(r); return p, errors.Join(err, down(StagePlan)) }
			a.hour = func(r HourRequest) (HourResult, error) {
				h, err := hour(r)
				return h, errors.Join(err, down(StageAggregate))
			}
			a.merge = func(r DayRequest) (DayResult, error) {
				d, err := merge(r)
				return d, errors.Join(err, down(StageMerge))
			}
			a.publish = func(r PublishRequest) (PublishResult, error) {
				p, err := publish(r)
				return p, errors.Join(err, down(StagePublish))
			}
			require.Equal(t, TargetSuccess, s.target(oneDay).Status)
		})
	}
}

func TestAStoreThatIsDownForGoodFailsTheReport(t *testing.T) {
	s := newStage(t)
	s.answers.hour = func(HourRequest) (HourResult, error) { return HourResult{}, errors.New("no answer") }
	result := s.target(oneDay)
	require.Equal(t, StageAggregate, result.Stage)
	require.Contains(t, result.Error, "no answer")
	require.InDelta(t, outage.Hours(), s.Now().Sub(night).Hours(), 0.5)
}

func TestAnUnknownTargetIsATypedFailure(t *testing.T) {
	s := newStage(t)
	s.ExecuteWorkflow(names.TargetReport, TargetInput{Target: "factory-z", Date: "2026-01-01"})
	refused, ok := errors.AsType[*temporal.ApplicationError](s.GetWorkflowError())
	require.True(t, ok)
	require.Equal(t, ErrorUnsupportedTarget, refused.Type())
	require.True(t, refused.NonRetryable())
	require.Empty(t, s.answers.hours)
}

func TestInputThatCannotBeMeantIsRefused(t *testing.T) {
	negative := -1
	for _, in := range []TargetInput{
		{Date: "2026-01-01"},
		{Target: "factory-a"},
		{Target: "factory-a", Date: "2026-02-30"},
		{Target: "factory-a", Date: "20260101"},
		{Target: "factory-a", Date: "2026-01-01", MaxModelCalls: &negative},
	} {
		s := newStage(t)
		s.ExecuteWorkflow(names.TargetReport, in)
		refused, ok := errors.AsType[*temporal.ApplicationError](s.GetWorkflowError())
		require.True(t, ok, "%+v", in)
		require.Equal(t, ErrorInvalidInput, refused.Type())
		require.Empty(t, s.answers.planned)
	}
}

func TestABoundOfModelCallsHolds(t *testing.T) {
	for calls, want := range map[int]struct {
		drafts int
		reason string
	}{
		0: {0, "no model call was left"},
		1: {1, "the draft failed its checks: wrong date; no model call was left"},
	} {
		s := newStage(t)
		s.answers.draft = func(DraftRequest, int) (DraftResult, error) {
			return DraftResult{DraftKey: "bad", Violations: []string{"wrong date"}}, nil
		}
		in := oneDay
		in.MaxModelCalls = &calls
		result := s.target(in)
		require.Len(t, s.answers.drafts, want.drafts)
		require.Equal(t, want.reason, result.Reason)
		require.Equal(t, GeneratorTemplate, result.Generator)
	}
}

func TestAKeptDraftCostsNoCall(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) {
		return DraftResult{DraftKey: "kept", Valid: true, Cached: true}, nil
	}
	result := s.target(oneDay)
	require.Zero(t, result.ModelCalls)
	require.Equal(t, GeneratorModel, result.Generator)
}

func TestAShortDayHasFewerHours(t *testing.T) {
	s := newStage(t)
	plan := s.answers.plan
	s.answers.plan = func(r PlanRequest) (Plan, error) {
		p, err := plan(r)
		p.Hours = slices.Delete(slices.Clone(p.Hours), 2, 3)
		return p, err
	}
	require.Equal(t, TargetSuccess, s.target(oneDay).Status)
	require.Len(t, s.answers.hours["factory-a"], 23)
	require.NotContains(t, s.answers.hours["factory-a"], "02")
}

func TestACancelledReportPublishesNothing(t *testing.T) {
	s := newStage(t)
	s.answers.draft = func(DraftRequest, int) (DraftResult, error) { return DraftResult{}, errors.New("down") }
	s.RegisterDelayedCallback(s.CancelWorkflow, 10*time.Minute)
	s.ExecuteWorkflow(names.TargetReport, oneDay)
	require.True(t, temporal.IsCanceledError(s.GetWorkflowError()))
	require.Empty(t, s.answers.published)
	require.Less(t, s.Now().Sub(night), 12*time.Minute)
}

func TestRequestsThatBroughtNothingCount(t *testing.T) {
	for _, c := range []struct {
		name          string
		draft         func() (DraftResult, error)
		calls, bound  int
		given, drafts int
	}{
		{"none could be used", func() (DraftResult, error) { return DraftResult{Unusable: "cut off", Calls: 2}, nil }, 2, 2, 2, 1},
		{"refused after some", func() (DraftResult, error) {
			return DraftResult{}, temporal.NewNonRetryableApplicationError("denied", "AccessDeniedException", nil, 1)
		}, 1, 5, 3, 1},
		{"one was lost before", func() (DraftResult, error) { return DraftResult{Calls: 2, Violations: []string{"wrong"}}, nil }, 2, 2, 2, 1},
		{"answered", func() (DraftResult, error) { return DraftResult{Calls: 1, Valid: true, DraftKey: "d"}, nil }, 1, 2, 2, 1},
	} {
		s := newStage(t)
		s.answers.draft = func(DraftRequest, int) (DraftResult, error) { return c.draft() }
		in := oneDay
		in.MaxModelCalls = &c.bound
		result := s.target(in)
		require.Equal(t, c.calls, result.ModelCalls, c.name)
		require.Len(t, s.answers.drafts, c.drafts, c.name)
		require.Equal(t, c.given, s.answers.drafts[0].MaxCalls, c.name)
		require.Equal(t, c.calls, s.answers.published[0].ModelCalls, c.name)
	}
}
