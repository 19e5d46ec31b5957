package alert

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
	storage "millrace/storage/alert"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/alert"
	"millrace/workflows/names"
)

// began is far ahead, because the test environment compares some deadlines of
// local activities with the real clock.
var began = time.Date(2100, 6, 2, 2, 0, 0, 0, time.UTC)

// story is an entity with the real activities, the real store and a Slack that
// speaks the real protocol, in virtual time.
type story struct {
	*testsuite.TestWorkflowEnvironment
	t     *testing.T
	slack *slacktest.Server
	store storage.Store
	acts  Activities
	calls *storagetest.Calls
	last  time.Duration
}

func newStore(t testing.TB) (storage.Store, *storagetest.Calls) {
	calls := new(storagetest.Calls)
	client := dynamodb.NewFromConfig(calls.Watch(storagetest.Config(t)))
	status := storagetest.Table(t, storagetest.Factory)
	governance := storagetest.Table(t, storagetest.Schema{PartitionKey: "PK", SortKey: "SK"})
	return storage.New(client, status.Name, governance.Name), calls
}

func newStory(t *testing.T) *story {
	var suite testsuite.WorkflowTestSuite
	silent := slog.New(slog.DiscardHandler)
	suite.SetLogger(log.NewStructuredLogger(silent))
	s := &story{t: t, TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), slack: slacktest.New(t)}
	s.store, s.calls = newStore(t)
	t.Setenv("STORY_HOOK", s.slack.Hook("hook"))
	s.acts = Activities{
		Store: s.store, Logger: silent,
		Sender: Slack{Client: slack.Client{Timeout: 300 * time.Millisecond}, Secrets: reader(), Webhook: "env:STORY_HOOK", Language: alert.Korean},
	}
	s.SetStartTime(began)
	s.SetTestTimeout(time.Minute)
	return s
}

// register adds the entity and its activities to a worker.
func register(r worker.Registry, a Activities) {
	r.RegisterWorkflowWithOptions(workflows.RiskAlert, workflow.RegisterOptions{Name: names.RiskAlert})
	for name, f := range map[string]any{
		workflows.ConfirmAlertActivity: a.ConfirmAlert, workflows.ReserveAlertActivity: a.ReserveAlert, workflows.SendAlertActivity: a.SendAlert,
		workflows.SettleAlertActivity: a.SettleAlert, workflows.LogAlertsActivity: a.LogAlerts,
		workflows.CheckOpenAlertsActivity: a.CheckOpenAlerts, workflows.SendRecoveryActivity: a.SendRecovery,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// at signals what a snapshot raises at an offset, as the observer would.
func (s *story) at(offset time.Duration, decide func(now time.Time) alert.Decision) {
	s.last = max(s.last, offset)
	s.RegisterDelayedCallback(func() {
		d := decide(s.Now())
		if len(d.Alerts) > 0 {
			s.SignalWorkflow(workflows.RaiseSignal, workflows.Raise{Alerts: d.Alerts, Suppressed: d.Suppressed})
		}
	}, offset)
}

func (s *story) red(offset time.Duration) {
	s.at(offset, func(now time.Time) alert.Decision { return alert.Factory(red(now, 0)) })
}

// run plays the story until some time after its last snapshot.
func (s *story) run(scope string, more time.Duration) {
	s.t.Helper()
	register(s, s.acts)
	s.RegisterDelayedCallback(s.CancelWorkflow, s.last+more)
	s.ExecuteWorkflow(names.RiskAlert, workflows.Input{Request: workflows.Request{Scope: scope}})
	var cancelled *temporal.CanceledError
	require.True(s.t, errors.As(s.GetWorkflowError(), &cancelled), "%v", s.GetWorkflowError())
}

func (s *story) records(scope string) []alert.Record {
	s.t.Helper()
	records, _, err := s.store.Records(s.t.Context(), storage.Query{Scopes: []string{scope}, From: began, To: began.Add(24 * time.Hour), Limit: 500, Now: began})
	require.NoError(s.t, err)
	return records
}

// told counts records by outcome and reason.
func told(records []alert.Record) map[string]int64 {
	counts := map[string]int64{}
	for _, r := range records {
		counts[string(r.Outcome)+" "+r.WhyToken()] += r.Count
	}
	return counts
}

func (s *story) texts(part string) int {
	n := 0
	for _, m := range s.slack.Messages() {
		if strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

func TestATotalOutageIsTwoMessages(t *testing.T) {
	s := newStory(t)
	s.red(0)
	s.run("factory-a", time.Minute)
	require.Len(t, s.slack.Messages(), 2)
	require.Equal(t, 1, s.texts("- 원인: nodes_all_not_ready\n"))
	require.Equal(t, 1, s.texts("- 원인: pods_all_unready\n"))
	counts := told(s.records("factory-a"))
	require.EqualValues(t, 2, counts["sent raised"])
	require.EqualValues(t, 3, counts["suppressed same_key"])
	require.EqualValues(t, 1, counts["suppressed gate_covers"])
}

// Red every other minute for an hour: a danger is sent at most every five
// minutes, so at most twelve times an hour.
func TestFlappingEachMinuteForAnHourSendsABoundedNumber(t *testing.T) {
	s := newStory(t)
	for minute := range 60 {
		if minute%2 == 0 {
			s.red(time.Duration(minute) * time.Minute)
		}
	}
	s.run("factory-a", time.Minute)
	require.Equal(t, 2*10, len(s.slack.Messages()), "two alerts, at the minutes 0, 6, 12 ... 54")
	counts := told(s.records("factory-a"))
	require.EqualValues(t, 20, counts["sent raised"])
	require.EqualValues(t, 2*20, counts["suppressed "+alert.WhyCooldown], "what was not sent is recorded")
}

func TestSteadilyRedForAnHourSendsTwelveOfEach(t *testing.T) {
	s := newStory(t)
	for i := range 120 {
		s.red(time.Duration(i) * 30 * time.Second)
	}
	s.run("factory-a", time.Minute)
	require.Equal(t, 12, s.texts("- 원인: nodes_all_not_ready\n"))
	require.Equal(t, 12, s.texts("- 원인: pods_all_unready\n"))
}

func TestSlackDownForTenMinutesLosesAndDoublesNothing(t *testing.T) {
	s := newStory(t)
	s.slack.Break(slacktest.Fault{Status: 503})
	s.RegisterDelayedCallback(s.slack.Mend, 10*time.Minute)
	for i := range 22 {
		s.red(time.Duration(i) * 30 * time.Second)
	}
	s.run("factory-a", 2*time.Minute)
	require.Equal(t, 1, s.texts("- 원인: nodes_all_not_ready\n"), "the cooldown counts from the sending")
	require.Equal(t, 1, s.texts("- 원인: pods_all_unready\n"))
	counts := told(s.records("factory-a"))
	require.EqualValues(t, 2, counts["sent raised"])
	require.Zero(t, counts["failed not_sent"])
	require.NotZero(t, counts["suppressed "+alert.WhyInFlight])
}

func TestSlackSilentOnceIsRecordedAsAmbiguous(t *testing.T) {
	s := newStory(t)
	s.slack.Fail(slacktest.Fault{Swallow: true})
	s.at(0, func(now time.Time) alert.Decision { return alert.Decision{Alerts: []alert.Alert{danger(now)}} })
	s.run("factory-a", time.Minute)
	require.Len(t, s.slack.Messages(), 2, "a double")
	require.EqualValues(t, 1, told(s.records("factory-a"))["ambiguous sent_twice_perhaps"], "and recorded as one")
}

func TestARejectedAlertIsTriedWithTheNextSnapshot(t *testing.T) {
	s := newStory(t)
	s.slack.Fail(slacktest.Fault{Status: 404, Code: "no_service"})
	raise := func(now time.Time) alert.Decision { return alert.Decision{Alerts: []alert.Alert{danger(now)}} }
	s.at(0, raise)
	s.at(time.Minute, raise)
	s.run("factory-a", time.Minute)
	require.Len(t, s.slack.Messages(), 1)
	records := s.records("factory-a")
	require.Equal(t, map[string]int64{"sent raised": 1, "failed not_sent": 1}, told(records))
	require.Contains(t, records[1].Detail, "no_service")
	require.NotContains(t, records[1].Detail, "SECRETKEY")
}

func TestSnapshotsTwiceAndOutOfOrderSendOnce(t *testing.T) {
	s := newStory(t)
	snapshot := func(age time.Duration) func(time.Time) alert.Decision {
		return func(time.Time) alert.Decision {
			return alert.Decision{Alerts: []alert.Alert{danger(began.Add(-age))}}
		}
	}
	s.at(time.Second, snapshot(0))
	s.at(2*time.Second, snapshot(0))
	s.at(time.Hour, snapshot(0))
	s.at(2*time.Hour, snapshot(time.Minute))
	s.run("factory-a", time.Minute)
	require.Len(t, s.slack.Messages(), 1)
	require.Equal(t, map[string]int64{"sent raised": 1, "suppressed duplicate": 2, "suppressed " + alert.WhyCooldown: 1}, told(s.records("factory-a")))
}

func lambdaErrors(now time.Time) alert.Decision {
	at := factory.MillisOf(now)
	d, err := alert.Fast([]byte(`{"fast_updated_at":"`+at.String()+`","fast":{"backend_runtime":{"status":"normal"},"data_pipeline":{"status":"warning","lambdas":[{"name":"f","errors_5m":1}]}}}`), "")
	if err != nil {
		panic(err)
	}
	return d
}

func TestLambdaErrorsNeedTwoObservationsWithinNinetySeconds(t *testing.T) {
	for name, test := range map[string]struct {
		offsets []time.Duration
		sent    int
	}{
		"once":              {[]time.Duration{0}, 0},
		"twice in a row":    {[]time.Duration{0, time.Minute}, 1},
		"91 s apart":        {[]time.Duration{0, 91 * time.Second}, 0},
		"a gap, then two":   {[]time.Duration{0, 5 * time.Minute, 6 * time.Minute}, 1},
		"three in a row":    {[]time.Duration{0, time.Minute, 2 * time.Minute}, 1},
		"every two minutes": {[]time.Duration{0, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			for _, offset := range test.offsets {
				s.at(offset, lambdaErrors)
			}
			s.run(alert.ScopeCloud, time.Minute)
			require.Len(t, s.slack.Messages(), test.sent)
			require.NotZero(t, told(s.records(alert.ScopeCloud))["suppressed "+alert.WhyAwaitingConfirmation])
		})
	}
}

func TestASilenceHoldsAlertsBackUntilItEnds(t *testing.T) {
	s := newStory(t)
	require.NoError(t, s.store.CreateSilence(t.Context(), alert.Silence{
		ID: "abcdefgh", Scope: "factory-a", Reason: "pods_all_unready", Until: factory.MillisOf(began.Add(10 * time.Minute)), CreatedBy: "kim", Why: "maintenance",
	}))
	s.red(0)
	s.red(11 * time.Minute)
	s.run("factory-a", time.Minute)
	require.Equal(t, 2, s.texts("- 원인: nodes_all_not_ready\n"))
	require.Equal(t, 1, s.texts("- 원인: pods_all_unready\n"))
	for _, r := range s.records("factory-a") {
		if r.Why == alert.WhySilenced {
			require.Equal(t, "until 2100-06-02T02:10:00.000Z by kim: maintenance", r.Detail)
			return
		}
	}
	t.Error("the silence is not recorded")
}

func TestWithoutSlackAlertsAreRecordedAndNothingIsReserved(t *testing.T) {
	s := newStory(t)
	s.acts.Sender = Slack{}
	s.red(0)
	s.at(time.Second, lambdaErrors)
	s.run("factory-a", time.Minute)
	require.Empty(t, s.slack.Messages())
	require.EqualValues(t, 2, told(s.records("factory-a"))["suppressed "+alert.WhyNotConfigured])
	reserved, err := s.store.Reserve(t.Context(), danger(began), began, time.Minute)
	require.NoError(t, err)
	require.True(t, reserved.Reserved)
}

// What an alert costs: a look for silences, the reservation, its settlement and
// a line of the log. One that is held back is not settled.
func TestDynamoDBCallsPerSnapshot(t *testing.T) {
	one := func(now time.Time) alert.Decision { return alert.Decision{Alerts: []alert.Alert{danger(now)}} }
	for name, test := range map[string]struct {
		decisions []func(time.Time) alert.Decision
		scope     string
		want      map[string]int
	}{
		"normal":         {[]func(time.Time) alert.Decision{func(now time.Time) alert.Decision { return alert.Factory(green(now)) }}, "factory-a", nil},
		"an alert":       {[]func(time.Time) alert.Decision{one}, "factory-a", map[string]int{"Query": 1, "UpdateItem": 2, "PutItem": 1}},
		"held back":      {[]func(time.Time) alert.Decision{one, one}, "factory-a", map[string]int{"Query": 2, "UpdateItem": 3, "PutItem": 2}},
		"a total outage": {[]func(time.Time) alert.Decision{func(now time.Time) alert.Decision { return alert.Factory(red(now, 0)) }}, "factory-a", map[string]int{"Query": 2, "UpdateItem": 4, "PutItem": 2, "TransactWriteItems": 1}},
		"awaiting a second look": {[]func(time.Time) alert.Decision{func(now time.Time) alert.Decision {
			d := lambdaErrors(now)
			d.Suppressed = nil
			return d
		}}, alert.ScopeCloud, map[string]int{"UpdateItem": 2, "PutItem": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			for i, decide := range test.decisions {
				s.at(time.Duration(i)*time.Minute, decide)
			}
			s.run(test.scope, time.Minute)
			require.Equal(t, test.want, s.calls.Take())
		})
	}
}

func TestTheEndOfAnOutageIsAnnouncedWhenAskedFor(t *testing.T) {
	s := newStory(t)
	s.acts.Recovery = true
	s.acts.Current = &Current{Store: s.store, Now: s.Now}
	put := func(offset time.Duration, state func(time.Time) factory.Latest) {
		s.RegisterDelayedCallback(func() {
			latest := state(s.Now())
			latest.PK, latest.SK = factory.PK("factory-a"), factory.LatestSK
			require.NoError(t, s.store.Status.Put(t.Context(), latest, nil))
		}, offset)
	}
	outage := func(now time.Time) factory.Latest { return red(now, 0) }
	for minute := range 4 {
		put(time.Duration(minute)*time.Minute+time.Second, outage)
	}
	for minute := 4; minute < 12; minute++ {
		put(time.Duration(minute)*time.Minute+time.Second, green)
	}
	s.red(0)
	s.run("factory-a", 15*time.Minute)
	require.Equal(t, 2, s.texts("위험 알림"))
	require.Equal(t, 2, s.texts("복구 알림"))
	require.EqualValues(t, 2, told(s.records("factory-a"))["recovered condition_over"])
}
