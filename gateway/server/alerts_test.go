package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	alerts "millrace/activities/alert"
	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/platform/secret"
	alertstore "millrace/storage/alert"
	"millrace/storage/storagetest"
)

// alarms is a gateway in front of an alert log.
type alarms struct {
	*fixture
	log   alertstore.Store
	clock *clock
	read  string
	admin string
}

func newAlarms(t *testing.T) *alarms {
	t.Helper()
	status := storagetest.Table(t, storagetest.Factory)
	a := &alarms{clock: &clock{}, log: alertstore.Store{Status: status}}
	store, calls := newTable(t)
	limits := monitoring.Limits{Read: 1 << 30, Write: 1 << 30, TokenCreate: 1}
	a.fixture = start(t, store, calls, newRing(t, "k1"), server.Config{Now: a.clock.Now, Limits: limits},
		server.Alerts(a.log, []string{"factory-a", "factory-b"}, a.clock.Now))
	_, a.read = a.issue("user:kim", monitoring.ScopeRead)
	_, a.admin = a.issue("user:root", monitoring.ScopeAdmin)
	return a
}

func (a *alarms) record(scope string, ago time.Duration, outcome alert.Outcome, why string) {
	a.t.Helper()
	at := factory.MillisOf(clockStart.Add(-ago))
	raised := alert.Alert{
		Scope: scope, SourceType: alert.SourceFactory, Severity: alert.Danger, Reason: "nodes_all_not_ready", Status: "normal",
		FingerprintStatus: "state_snapshot", SourceUpdatedAt: at,
	}
	require.NoError(a.t, a.log.Log(a.t.Context(), alert.NewRecord(raised, outcome, why, "detail", at)))
}

func (a *alarms) list(query string) server.AlertList {
	a.t.Helper()
	got := a.call(http.MethodGet, "/v1/alerts"+query, a.read, "")
	require.Equal(a.t, http.StatusOK, got.Status, string(got.Body))
	var list server.AlertList
	got.decode(&list)
	return list
}

func whysOf(list server.AlertList) []string {
	whys := []string{}
	for _, r := range list.Alerts {
		whys = append(whys, r.Why)
	}
	return whys
}

func TestAlertsAreListedWithTheirReasons(t *testing.T) {
	a := newAlarms(t)
	a.record("factory-a", time.Hour, alert.Sent, "raised")
	a.record("factory-b", 2*time.Hour, alert.Suppressed, "in_flight")
	a.record("cloud-infra", 3*time.Hour, alert.Ambiguous, "no_answer")
	a.record("factory-a", 25*time.Hour, alert.Failed, "not_sent")
	a.record("factory-c", time.Hour, alert.Sent, "of a factory that is not configured")

	require.Equal(t, []string{"raised", "in_flight", "no_answer"}, whysOf(a.list("")), "the last day of all scopes")
	require.Equal(t, []string{"raised"}, whysOf(a.list("?scope=factory-a")))
	day := func(d time.Duration) string { return clockStart.Add(d).Format(time.RFC3339) }
	require.Equal(t, []string{"raised", "not_sent"}, whysOf(a.list("?scope=factory-a&from="+day(-48*time.Hour))))
	require.Equal(t, []string{"not_sent"}, whysOf(a.list("?from="+day(-30*time.Hour)+"&to="+day(-20*time.Hour))))
	require.Empty(t, a.list("?scope=app.shop").Alerts)

	first := a.list("?limit=2")
	require.Equal(t, []string{"raised", "in_flight"}, whysOf(first))
	require.NotEmpty(t, first.NextCursor)
	last := a.list("?limit=2&cursor=" + first.NextCursor)
	require.Equal(t, []string{"no_answer"}, whysOf(last))
	require.Empty(t, last.NextCursor)

	var raw struct{ Alerts []map[string]any }
	require.NoError(t, json.Unmarshal(a.call(http.MethodGet, "/v1/alerts?limit=1", a.read, "").Body, &raw))
	require.Equal(t, "danger#nodes_all_not_ready#state_snapshot", raw.Alerts[0]["alert_sk"])
	require.Equal(t, "sent", raw.Alerts[0]["outcome"])
	require.Equal(t, "2026-11-30T11:00:20.000Z", raw.Alerts[0]["at"])
}

func TestWrongQuestionsAboutAlertsAreNamed(t *testing.T) {
	a := newAlarms(t)
	for query, field := range map[string]string{
		"?scope=Factory/A": "query.scope", "?from=yesterday": "query.from", "?to=2026-01-01": "query.to",
		"?from=2026-11-30T12:00:00Z&to=2026-11-30T12:00:00Z": "query.from", "?limit=0": "query.limit", "?cursor=x": "query.cursor",
	} {
		got := a.call(http.MethodGet, "/v1/alerts"+query, a.read, "")
		require.Equal(t, http.StatusBadRequest, got.Status, query)
		require.Contains(t, string(got.Body), field, query)
	}
	require.Equal(t, http.StatusUnauthorized, a.call(http.MethodGet, "/v1/alerts", "", "").Status)
}

func (a *alarms) silence(method, path, body string, status int) alert.Silence {
	a.t.Helper()
	got := a.call(method, path, a.admin, body)
	require.Equal(a.t, status, got.Status, string(got.Body))
	var s alert.Silence
	if status < http.StatusBadRequest && len(got.Body) > 0 {
		got.decode(&s)
	}
	return s
}

func TestASilenceIsMadeChangedAndEnded(t *testing.T) {
	a := newAlarms(t)
	const path = "/v1/alerts/silences"
	body := `{"scope":"factory-a","reason":"nodes_all_not_ready","until":"2026-11-30T14:00:00Z","why":"maintenance"}`
	made := a.silence(http.MethodPost, path, body, http.StatusCreated)
	require.Equal(t, "user:root", made.CreatedBy)
	require.Len(t, made.ID, 26)
	one := path + "/factory-a/" + made.ID
	require.Equal(t, made, a.silence(http.MethodGet, one, "", http.StatusOK))

	a.clock.Advance(time.Minute)
	changed := a.silence(http.MethodPut, one, `{"until":"2026-11-30T15:00:00Z","why":"takes longer"}`, http.StatusOK)
	require.Empty(t, changed.Reason, "a change replaces all that a silence says")
	require.Equal(t, made.CreatedAt, changed.CreatedAt)
	require.Equal(t, "takes longer", changed.Why)

	var list server.SilenceList
	a.call(http.MethodGet, path+"?scope=factory-a", a.admin, "").decode(&list)
	require.Equal(t, []alert.Silence{changed}, list.Silences)
	a.clock.Advance(4 * time.Hour)
	a.call(http.MethodGet, path+"?scope=factory-a", a.admin, "").decode(&list)
	require.Empty(t, list.Silences, "what is over is not listed")

	a.silence(http.MethodDelete, one, "", http.StatusNoContent)
	a.silence(http.MethodDelete, one, "", http.StatusNoContent)
	a.silence(http.MethodGet, one, "", http.StatusNotFound)
	a.silence(http.MethodPut, one, `{"until":"2026-11-30T20:00:00Z","why":"x"}`, http.StatusNotFound)
}

func TestASilenceWithItsOwnIDIsMadeOnce(t *testing.T) {
	a := newAlarms(t)
	body := `{"id":"deploy0042","scope":"cloud-infra","until":"2026-11-30T14:00:00Z","why":"deploy"}`
	first := a.silence(http.MethodPost, "/v1/alerts/silences", body, http.StatusCreated)
	a.clock.Advance(time.Second)
	require.Equal(t, first, a.silence(http.MethodPost, "/v1/alerts/silences", body, http.StatusCreated), "a retry changes nothing")
	a.silence(http.MethodPost, "/v1/alerts/silences", strings.Replace(body, "deploy\"}", "other\"}", 1), http.StatusConflict)
}

func TestSilencesAreForAdministratorsAndChecked(t *testing.T) {
	a := newAlarms(t)
	body := `{"scope":"factory-a","until":"2026-11-30T14:00:00Z","why":"x"}`
	require.Equal(t, http.StatusForbidden, a.call(http.MethodPost, "/v1/alerts/silences", a.read, body).Status)
	require.Equal(t, http.StatusForbidden, a.call(http.MethodGet, "/v1/alerts/silences?scope=factory-a", a.read, "").Status)
	for bad, field := range map[string]string{
		`{"scope":"A/B","until":"2026-11-30T14:00:00Z","why":"x"}`:                         "body.scope",
		`{"scope":"factory-a","until":"2026-11-30T11:00:00Z","why":"x"}`:                   "body.until",
		`{"scope":"factory-a","until":"2027-11-30T11:00:00Z","why":"x"}`:                   "body.until",
		`{"scope":"factory-a","until":"2026-11-30T14:00:00Z"}`:                             "why",
		`{"scope":"factory-a","reason":"A b","until":"2026-11-30T14:00:00Z","why":"x"}`:    "body.reason",
		`{"scope":"factory-a","id":"x","until":"2026-11-30T14:00:00Z","why":"x"}`:          "body.id",
		`{"scope":"factory-a","until":"2026-11-30T14:00:00Z","why":"x","unknown":"field"}`: "body",
	} {
		got := a.call(http.MethodPost, "/v1/alerts/silences", a.admin, bad)
		require.Equal(t, http.StatusBadRequest, got.Status, bad)
		require.Contains(t, string(got.Body), field, bad)
	}
	a.silence(http.MethodGet, "/v1/alerts/silences/A%2FB/abcdefgh", "", http.StatusBadRequest)
}

// sinkOf is a gateway with a sink of Slack messages.
func sinkOf(t *testing.T, file string) *fixture {
	t.Helper()
	sink, err := server.NewSlackSink(file, (&clock{}).Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
	return newFixture(t, sink.Routes)
}

func TestTheSinkAnswersAsSlackDoesAndShowsMessages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slack.jsonl")
	f := sinkOf(t, file)
	for _, step := range []struct {
		path, body string
		status     int
		answer     string
	}{
		{"/dev/slack/factory-a", `{"text":"위험 &lt;b&gt; &amp; <script>alert(1)</script>"}`, http.StatusOK, "ok"},
		{"/dev/slack/app.shop", `{"text":"second"}`, http.StatusOK, "ok"},
		{"/dev/slack/factory-a", `{`, http.StatusBadRequest, "invalid_payload"},
		{"/dev/slack/factory-a", `{"blocks":[]}`, http.StatusBadRequest, "no_text"},
		{"/dev/slack/a/b", `{"text":"x"}`, http.StatusNotFound, ""},
		{"/dev/slack/A%20B", `{"text":"x"}`, http.StatusNotFound, "no_service"},
		{"/dev/slack/factory-a", `{"text":"` + strings.Repeat("x", 600<<10) + `"}`, http.StatusBadRequest, "invalid_payload"},
	} {
		got := f.call(http.MethodPost, step.path, "", step.body)
		require.Equal(t, step.status, got.Status, step.path)
		require.Contains(t, string(got.Body), step.answer)
	}
	page := string(f.call(http.MethodGet, "/dev/slack", "", "").Body)
	require.Contains(t, page, "위험 &lt;b&gt; &amp; &lt;script&gt;", "the text as Slack shows it, and no markup")
	require.NotContains(t, page, "<script>")
	require.Less(t, strings.Index(page, "second"), strings.Index(page, "위험"), "newest first")
	require.Equal(t, http.StatusMethodNotAllowed, f.call(http.MethodGet, "/dev/slack/factory-a", "", "").Status)

	again := sinkOf(t, file)
	require.Contains(t, string(again.call(http.MethodGet, "/dev/slack", "", "").Body), "second", "messages survive a restart")
}

func TestTheSinkGivesItsMessagesAsJSON(t *testing.T) {
	f := sinkOf(t, "")
	for i := range 250 {
		f.call(http.MethodPost, "/dev/slack/factory-a", "", fmt.Sprintf(`{"text":"message %d"}`, i))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/dev/slack", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var body struct {
		Messages []struct{ Scope, Text string }
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	require.Len(t, body.Messages, 200, "the newest only")
	require.Equal(t, "message 249", body.Messages[0].Text)
	require.Equal(t, "factory-a", body.Messages[0].Scope)
}

func TestTheSinkServesItsOwnMachineOnly(t *testing.T) {
	f := sinkOf(t, "")
	for name, spoil := range map[string]func(*http.Request){
		"another machine":        func(r *http.Request) { r.RemoteAddr = "192.0.2.1:999" },
		"a proxied request":      func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") },
		"another name for us":    func(r *http.Request) { r.Host = "evil.example" },
		"a page of another site": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/dev/slack/factory-a", strings.NewReader(`{"text":"x"}`))
			r.RemoteAddr, r.Host = "127.0.0.1:999", "localhost:8080"
			spoil(r)
			w := httptest.NewRecorder()
			f.server.ServeHTTP(w, r)
			require.Equal(t, http.StatusForbidden, w.Code)
		})
	}
	require.NotContains(t, string(f.call(http.MethodGet, "/dev/slack", "", "").Body), "<pre>")
}

func TestWithoutASinkThereIsNone(t *testing.T) {
	require.Equal(t, http.StatusNotFound, newFixture(t).call(http.MethodGet, "/dev/slack", "", "").Status)
}

func TestAlertsReachTheSinkByWebhook(t *testing.T) {
	f := sinkOf(t, "")
	t.Setenv("SINK_HOOK", f.url+"/dev/slack/{scope}")
	sender := alerts.Slack{
		Secrets: &secret.Reader{Now: time.Now}, Webhook: "env:SINK_HOOK", Language: alert.Korean,
	}
	raised := alert.Alert{
		Scope: "app.shop", SourceType: alert.SourceApp, Severity: alert.Danger, Reason: "error_rate", Status: "firing",
		SourceUpdatedAt: factory.MillisOf(clockStart), Summary: "12 % > 5 % & rising",
	}
	_, err := sender.Send(t.Context(), raised, alertstore.Incident{})
	require.NoError(t, err)
	page := string(f.call(http.MethodGet, "/dev/slack", "", "").Body)
	require.Contains(t, page, "<strong>app.shop</strong>")
	require.Contains(t, page, "AEGIS Alert | 위험 알림")
	require.Contains(t, page, "12 % &gt; 5 % &amp; rising")
}
