package report

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/activities/alert"
	"millrace/domain/report"
	"millrace/platform/secret"
	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// office is a courier with a fake Slack.
func office(t *testing.T) (*plant, Courier, *slacktest.Server) {
	t.Helper()
	p, server := newPlant(t), slacktest.New(t)
	t.Setenv("HOOK", server.Hook("reports"))
	messenger := alert.Slack{
		Client:  slack.Client{Timeout: 200 * time.Millisecond},
		Secrets: &secret.Reader{Now: time.Now, Keep: time.Minute}, Webhook: "env:HOOK",
	}
	return p, Courier{Store: p.Store, Messenger: messenger, Language: report.Korean, Now: time.Now, Logger: silent}, server
}

var someDay = workflows.DeliverRequest{
	Date: newYear, Timezone: seoul, Status: workflows.DayPartialSuccess,
	Results: []workflows.TargetResult{
		{
			Target: "factory-a", Status: workflows.TargetSuccess, Generator: workflows.GeneratorModel, Verdict: "danger",
			ReportKey: "reports/daily/yyyy=2026/mm=01/dd=01/factory-a/report.md", Summary: []string{"최저 점수 0", "수집률 99.9%", "이벤트 3건", "넷", "다섯"},
		},
		{Target: "factory-b", Status: workflows.TargetSuccess, Generator: workflows.GeneratorTemplate, Verdict: "warning", ReportKey: "k"},
		{Target: "factory-c", Status: workflows.TargetInsufficientData, Generator: workflows.GeneratorTemplate, Verdict: "normal", ReportKey: "k"},
		{Target: "cloud-infra", Status: workflows.TargetFailed, Stage: "publish", Error: "bucket <!channel> says no"},
	},
}

func TestAMessageTellsOfEveryTarget(t *testing.T) {
	_, c, _ := office(t)
	require.Equal(t, strings.Join([]string{
		"*일일 운영 리포트 2026-01-01* (Asia/Seoul) · 일부 실패",
		"🔴 *factory-a* 위험 · `reports/daily/yyyy=2026/mm=01/dd=01/factory-a/report.md`",
		"      최저 점수 0", "      수집률 99.9%", "      이벤트 3건", "      넷",
		"🟡 *factory-b* 주의 (템플릿 리포트) · `k`",
		"⚪ *factory-c* 데이터 없음 · `k`",
		"⚪ *Cloud Infra* 실패 (publish): bucket &lt;!channel&gt; says no",
	}, "\n"), c.text(someDay))
	c.Language, c.PublicURL = report.English, "https://millrace.example.org/"
	require.Contains(t, c.text(someDay), "*Daily operations report 2026-01-01* (Asia/Seoul) · incomplete\n"+
		"🔴 *factory-a* danger · <https://millrace.example.org/v1/reports/2026-01-01/factory-a?format=html|read>\n")
	many := someDay
	many.Status, many.Results = workflows.DayCompleted, make([]workflows.TargetResult, 70)
	require.Contains(t, c.text(many), "complete\n")
	require.Contains(t, c.text(many), "and 10 more")
}

func TestPeopleAreToldOnceADay(t *testing.T) {
	p, c, server := office(t)
	first, err := run(t, c.DeliverReports, someDay)
	require.NoError(t, err)
	require.Equal(t, workflows.DeliveryDuplicate, mustDeliver(t, c, someDay).Outcome, "the same run again")
	require.Equal(t, workflows.DeliverySent, first.Outcome)
	require.Len(t, server.Messages(), 1)
	require.Contains(t, p.bytes("reports/daily/yyyy=2026/mm=01/dd=01/delivery.json"), `"status":"sent"`)
}

func mustDeliver(t *testing.T, c Courier, req workflows.DeliverRequest) workflows.DeliverResult {
	t.Helper()
	result, err := run(t, c.DeliverReports, req)
	require.NoError(t, err)
	return result
}

func TestADayIsToldOfAgainOnlyWhenAsked(t *testing.T) {
	p, c, server := office(t)
	claim, _, err := p.Store.ClaimDelivery(t.Context(), newYear, "an earlier run", nil, time.Now(), false)
	require.NoError(t, err)
	require.EqualValues(t, "claimed", claim)
	_, err = run(t, c.DeliverReports, someDay)
	busy, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	require.Equal(t, kindBusy, busy.Type())
	require.False(t, busy.NonRetryable())

	c.Now = func() time.Time { return time.Now().Add(time.Hour) }
	require.Equal(t, workflows.DeliverySent, mustDeliver(t, c, someDay).Outcome, "that run died before it told anybody")
	again := someDay
	again.Notify = true
	require.Equal(t, workflows.DeliveryDuplicate, mustDeliver(t, c, again).Outcome, "and one run tells once")
	require.Len(t, server.Messages(), 1)
}

func TestSlackThatFailsIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  []slacktest.Fault
		retried bool
		outcome string
		posted  int
	}{
		{"down", []slacktest.Fault{{Status: http.StatusBadGateway}}, true, "", 0},
		{"limited", []slacktest.Fault{{Status: http.StatusTooManyRequests, RetryAfter: "7"}}, true, "", 0},
		{"refused", []slacktest.Fault{{Status: http.StatusForbidden, Code: "action_prohibited"}}, false, workflows.DeliveryFailed, 0},
		{"an answer is lost", []slacktest.Fault{{Swallow: true}}, false, workflows.DeliverySent, 2},
		{"both answers are lost", []slacktest.Fault{{Swallow: true, Lost: true}, {Swallow: true, Lost: true}}, false, workflows.DeliveryAmbiguous, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, courier, server := office(t)
			server.Fail(c.faults...)
			result, err := run(t, courier.DeliverReports, someDay)
			if c.retried {
				failed, ok := errors.AsType[*temporal.ApplicationError](err)
				require.True(t, ok)
				require.False(t, failed.NonRetryable())
				require.Equal(t, workflows.DeliverySent, mustDeliver(t, courier, someDay).Outcome, "the retry goes on")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.outcome, result.Outcome)
			require.Len(t, server.Messages(), c.posted)
		})
	}
}

func TestWithoutSlackNothingIsClaimed(t *testing.T) {
	p, c, _ := office(t)
	c.Messenger = alert.Slack{}
	p.calls.Take()
	require.Equal(t, workflows.DeliveryNotConfigured, mustDeliver(t, c, someDay).Outcome)
	require.Empty(t, p.calls.Take())
}

// TestTheNightTellsWhatARunByHandDidNot has one target reported on by hand first.
func TestTheNightTellsWhatARunByHandDidNot(t *testing.T) {
	_, c, server := office(t)
	byHand := someDay
	byHand.Results = someDay.Results[2:3]
	require.Equal(t, workflows.DeliverySent, mustDeliver(t, c, byHand).Outcome)
	require.Equal(t, workflows.DeliverySent, mustDeliverAs(t, c, someDay, "the night").Outcome)
	require.Equal(t, workflows.DeliveryDuplicate, mustDeliverAs(t, c, byHand, "by hand again").Outcome, "all of it is known")
	changed := someDay
	changed.Results = slices.Clone(someDay.Results)
	changed.Results[1].Verdict = "danger"
	require.Equal(t, workflows.DeliverySent, mustDeliverAs(t, c, changed, "found more").Outcome)
	require.Len(t, server.Messages(), 3)
}

// mustDeliverAs delivers for another run than the others: the activity's own ids
// are the same in each test environment.
func mustDeliverAs(t *testing.T, c Courier, req workflows.DeliverRequest, run string) workflows.DeliverResult {
	t.Helper()
	var delivery storage.Delivery
	key := report.DayPrefix(c.Store.Prefix, req.Date) + "/delivery.json"
	require.NoError(t, c.Store.ReadJSON(t.Context(), key, &delivery))
	delivery.ID = "before " + run
	require.NoError(t, c.Store.SettleDelivery(t.Context(), req.Date, delivery))
	return mustDeliver(t, c, req)
}

func TestNobodyIsToldOfADayThatIsNotOver(t *testing.T) {
	p, c, server := office(t)
	c.Now = func() time.Time { return time.Date(2026, 1, 1, 14, 59, 59, 0, time.UTC) }
	p.calls.Take()
	require.Equal(t, workflows.DeliveryNotOver, mustDeliver(t, c, someDay).Outcome)
	require.Empty(t, p.calls.Take())
	asked := someDay
	asked.Notify = true
	require.Equal(t, workflows.DeliverySent, mustDeliver(t, c, asked).Outcome)
	require.Len(t, server.Messages(), 1)
}
