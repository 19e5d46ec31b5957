package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/historytest"
	"millrace/workflows/names"
	"millrace/workflows/schedule"
)

const seoul = "Asia/Seoul"

// night is half past midnight of 2 January 2026 in Seoul.
var night = time.Date(2026, 1, 1, 15, 30, 0, 0, time.UTC)

var hoursOfDay = func() []string {
	var labels []string
	for hour := range 24 {
		labels = append(labels, fmt.Sprintf("%02d", hour))
	}
	return labels
}()

// stage runs workflows with activities that a test gives, in virtual time.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	answers *answers
}

// answers are activities that do what a test says and remember what they were
// asked.
type answers struct {
	lock sync.Mutex
	now  func() time.Time

	planned   []PlanRequest
	hours     map[string][]string
	atOnce    int
	most      int
	merged    []DayRequest
	drafts    []DraftRequest
	published []PublishRequest
	told      []DeliverRequest

	plan    func(PlanRequest) (Plan, error)
	hour    func(HourRequest) (HourResult, error)
	merge   func(DayRequest) (DayResult, error)
	draft   func(req DraftRequest, nth int) (DraftResult, error)
	publish func(PublishRequest) (PublishResult, error)
	deliver func(DeliverRequest) (DeliverResult, error)
}

func newAnswers(now func() time.Time) *answers {
	a := &answers{now: now, hours: map[string][]string{}}
	a.plan = func(req PlanRequest) (Plan, error) {
		plan := Plan{Date: req.Date, Timezone: req.Timezone, Hours: hoursOfDay, Targets: []string{}, WritingSeconds: 45 * 60}
		if plan.Timezone == "" {
			plan.Timezone = seoul
		}
		if plan.Date == "" {
			plan.Date = req.At.Add(9*time.Hour).AddDate(0, 0, -1).Format(time.DateOnly)
		}
		day, err := time.Parse(time.DateOnly, plan.Date)
		if err != nil {
			return plan, err
		}
		plan.Previous = day.AddDate(0, 0, -1).Format(time.DateOnly)
		known := []string{"factory-a", "factory-b", "factory-c", CloudInfraTarget}
		asked := req.Targets
		if len(asked) == 0 {
			asked = known
		}
		for _, target := range asked {
			if slices.Contains(known, target) {
				plan.Targets = append(plan.Targets, target)
			} else {
				plan.Unknown = append(plan.Unknown, target)
			}
		}
		return plan, nil
	}
	a.hour = func(req HourRequest) (HourResult, error) {
		return HourResult{Hour: req.Hour, Status: HourSuccess, EventCount: 1, InputCounts: map[string]int{"factory_state": 1200, "infra_state": 180}}, nil
	}
	a.merge = func(req DayRequest) (DayResult, error) {
		key := "reports/daily/" + req.Date + "/" + req.Target
		return DayResult{DailyKey: key + "/daily.json", ContextKey: key + "/report-context.json", StoredAt: a.now()}, nil
	}
	a.draft = func(DraftRequest, int) (DraftResult, error) {
		return DraftResult{DraftKey: "drafts/1.json", Valid: true, InputTokens: 1000, OutputTokens: 300, Cost: "0.0075"}, nil
	}
	a.publish = func(req PublishRequest) (PublishResult, error) {
		result := PublishResult{Generator: GeneratorModel, ReportKey: "reports/daily/" + req.Date + "/" + req.Target + "/report.md", Verdict: "warning", Summary: []string{"score 84.5"}}
		if req.DraftKey == "" {
			result.Generator, result.Reason = GeneratorTemplate, req.Reason
		}
		return result, nil
	}
	a.deliver = func(DeliverRequest) (DeliverResult, error) { return DeliverResult{Outcome: DeliverySent}, nil }
	return a
}

// activities are the answers by their activity types.
func (a *answers) activities() map[string]any {
	return map[string]any{
		PlanActivity: func(_ context.Context, req PlanRequest) (Plan, error) {
			return note(a, &a.planned, req, func(int) (Plan, error) { return a.plan(req) })
		},
		SummariseHourActivity: a.summarise,
		MergeDayActivity: func(_ context.Context, req DayRequest) (DayResult, error) {
			return note(a, &a.merged, req, func(int) (DayResult, error) { return a.merge(req) })
		},
		DraftActivity: func(_ context.Context, req DraftRequest) (DraftResult, error) {
			return note(a, &a.drafts, req, func(nth int) (DraftResult, error) { return a.draft(req, nth) })
		},
		PublishActivity: func(_ context.Context, req PublishRequest) (PublishResult, error) {
			return note(a, &a.published, req, func(int) (PublishResult, error) { return a.publish(req) })
		},
		DeliverActivity: func(_ context.Context, req DeliverRequest) (DeliverResult, error) {
			return note(a, &a.told, req, func(int) (DeliverResult, error) { return a.deliver(req) })
		},
	}
}

func note[Q, R any](a *answers, into *[]Q, req Q, answer func(nth int) (R, error)) (R, error) {
	a.lock.Lock()
	*into = append(*into, req)
	nth := len(*into)
	a.lock.Unlock()
	return answer(nth)
}

func (a *answers) summarise(ctx context.Context, req HourRequest) (HourResult, error) {
	a.lock.Lock()
	a.atOnce++
	a.most = max(a.most, a.atOnce)
	a.hours[req.Target] = append(a.hours[req.Target], req.Hour)
	a.lock.Unlock()
	defer func() {
		a.lock.Lock()
		a.atOnce--
		a.lock.Unlock()
	}()
	activity.RecordHeartbeat(ctx)
	return a.hour(req)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(historytest.Silent)
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	s.answers = newAnswers(func() time.Time { return s.Now() })
	s.SetStartTime(night)
	s.SetTestTimeout(30 * time.Second)
	for name, run := range registered {
		s.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
	for name, run := range s.answers.activities() {
		s.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
	}
	return s
}

func (s *stage) scheduledAt(at time.Time) {
	s.t.Helper()
	require.NoError(s.t, s.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(schedule.Start.ValueSet(at))))
}

// target runs one target's report and gives its result, or that of its failure.
func (s *stage) target(in TargetInput) TargetResult {
	s.t.Helper()
	s.ExecuteWorkflow(names.TargetReport, in)
	require.True(s.t, s.IsWorkflowCompleted())
	var result TargetResult
	err := s.GetWorkflowError()
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		require.Equal(s.t, ErrorTargetFailed, failed.Type())
		require.NoError(s.t, failed.Details(&result))
		return result
	}
	require.NoError(s.t, err)
	require.NoError(s.t, s.GetWorkflowResult(&result))
	return result
}

func (s *stage) day(in DailyInput) DailyResult {
	s.t.Helper()
	s.ExecuteWorkflow(names.DailyReport, in)
	require.True(s.t, s.IsWorkflowCompleted())
	require.NoError(s.t, s.GetWorkflowError())
	var result DailyResult
	require.NoError(s.t, s.GetWorkflowResult(&result))
	return result
}

func query[T any](s *stage) T {
	s.t.Helper()
	value, err := s.QueryWorkflow(StatusQuery)
	require.NoError(s.t, err)
	return decoded[T](s.t, value)
}

func decoded[T any](t *testing.T, value converter.EncodedValue) T {
	t.Helper()
	var status T
	require.NoError(t, value.Get(&status))
	return status
}

func final(kind string) error {
	return temporal.NewNonRetryableApplicationError("told to fail", kind, nil)
}
