package alert

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/platform/secret"
	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
)

var start = time.Date(2026, 6, 2, 2, 0, 0, 0, time.UTC)

func danger(at time.Time) alert.Alert {
	return alert.Alert{
		Scope: "factory-a", SourceType: alert.SourceFactory, Severity: alert.Danger, Reason: "nodes_all_not_ready", Status: "normal",
		FingerprintStatus: "state_snapshot", SourceUpdatedAt: factory.MillisOf(at), SourceKey: "processed/x.json", Because: "F1",
	}
}

func reader() *secret.Reader { return &secret.Reader{Now: time.Now, Keep: time.Minute} }

func TestEachScopeHasItsWebhook(t *testing.T) {
	server := slacktest.New(t)
	t.Setenv("HOOK_DEFAULT", server.Hook("default"))
	t.Setenv("HOOK_A", `{"url":"`+server.Hook("a")+`"}`)
	t.Setenv("HOOK_CLOUD", "{\n \"webhook_url\": \""+server.Hook("{scope}")+"\"}\n")
	t.Setenv("HOOK_APPS", server.Hook("apps"))
	s := Slack{Secrets: reader(), Webhook: "env:HOOK_DEFAULT", Language: alert.Korean, Webhooks: map[string]secret.Reference{
		"factory-a": "env:HOOK_A", "cloud-infra": "env:HOOK_CLOUD", "app.*": "env:HOOK_APPS",
	}}
	for scope, hook := range map[string]string{"factory-a": "a", "factory-b": "default", "cloud-infra": "cloud-infra", "app.shop": "apps", "artifacts": "default"} {
		a := danger(start)
		a.Scope = scope
		require.True(t, s.Configured(scope))
		before := len(server.Messages())
		_, err := s.Send(t.Context(), a, storage.Incident{})
		require.NoError(t, err)
		posted := server.Messages()[before]
		require.Equal(t, hook, posted.Hook, scope)
		require.Equal(t, alert.Text(a, alert.Korean), posted.Text)
	}
	require.NoError(t, s.Recover(t.Context(), workflows.RecoveryRequest{Alert: danger(start), At: factory.MillisOf(start)}))
	require.Contains(t, server.Messages()[5].Text, "복구 알림")
}

func TestWithoutAWebhookNothingIsConfigured(t *testing.T) {
	require.False(t, Slack{}.Configured("factory-a"))
	require.False(t, Slack{Token: "env:T"}.Configured("factory-a"), "a bot needs a channel")
	require.True(t, Slack{Token: "env:T", Channels: map[string]string{"factory-a": "C"}}.Configured("factory-a"))
	require.False(t, Slack{Channel: "C"}.Configured("factory-a"))
}

func TestABotEditsTheIncidentsMessage(t *testing.T) {
	server := slacktest.New(t)
	t.Setenv("TOKEN", slacktest.Token)
	s := Slack{Client: slack.Client{API: server.API()}, Secrets: reader(), Token: "env:TOKEN", Channel: "C1", Language: alert.English}
	first, err := s.Send(t.Context(), danger(start), storage.Incident{})
	require.NoError(t, err)
	again := danger(start.Add(time.Hour))
	second, err := s.Send(t.Context(), again, first)
	require.NoError(t, err)
	require.Equal(t, first, second, "the incident keeps its message")
	require.NoError(t, s.Recover(t.Context(), workflows.RecoveryRequest{Alert: again, At: factory.MillisOf(start), Incident: workflows.Incident(first)}))
	messages := server.Messages()
	require.Len(t, messages, 3)
	require.Equal(t, 2, messages[0].Edits)
	require.Contains(t, messages[0].Text, "Recovered")
	require.Equal(t, first.TS, messages[1].Thread)
	require.Contains(t, messages[1].Text, "observed again")
	require.Equal(t, first.TS, messages[2].Thread)
}

func TestAVanishedMessageIsPostedAnew(t *testing.T) {
	server := slacktest.New(t)
	t.Setenv("TOKEN", slacktest.Token)
	s := Slack{Client: slack.Client{API: server.API()}, Secrets: reader(), Token: "env:TOKEN", Channel: "C1"}
	got, err := s.Send(t.Context(), danger(start), storage.Incident{Channel: "C1", TS: "9.9"})
	require.NoError(t, err)
	require.Equal(t, server.Messages()[0].TS, got.TS)
	require.NoError(t, s.Recover(t.Context(), workflows.RecoveryRequest{Alert: danger(start), Incident: workflows.Incident{Channel: "C1", TS: "9.9"}}))
	require.Len(t, server.Messages(), 2)
}

func TestARotatedSecretIsReadAnew(t *testing.T) {
	server := slacktest.New(t)
	t.Setenv("TOKEN", "xoxb-old")
	s := Slack{Client: slack.Client{API: server.API()}, Secrets: reader(), Token: "env:TOKEN", Channel: "C1"}
	_, err := s.Send(t.Context(), danger(start), storage.Incident{})
	require.ErrorContains(t, err, "invalid_auth")
	require.Equal(t, 1, server.Requests(), "the same secret again is no use")
	t.Setenv("TOKEN", slacktest.Token)
	s.Secrets.Forget("env:TOKEN")
	t.Setenv("TOKEN", "xoxb-old")
	_, _ = s.Secrets.Read(t.Context(), "env:TOKEN")
	t.Setenv("TOKEN", slacktest.Token)
	_, err = s.Send(t.Context(), danger(start), storage.Incident{})
	require.NoError(t, err)
	require.Len(t, server.Messages(), 1)
}

func TestErrorsTellTemporalWhatToDoAndNoSecret(t *testing.T) {
	for name, test := range map[string]struct {
		fault     slacktest.Fault
		kind      string
		retryable bool
		delay     time.Duration
	}{
		"limited":  {slacktest.Fault{Status: http.StatusTooManyRequests, RetryAfter: "9"}, errLimited, true, 9 * time.Second},
		"down":     {slacktest.Fault{Status: http.StatusBadGateway}, errUnavailable, true, 0},
		"rejected": {slacktest.Fault{Status: http.StatusNotFound, Code: "no_service"}, workflows.ErrRejected, false, 0},
		"unknown":  {slacktest.Fault{Swallow: true}, workflows.ErrAmbiguous, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := slacktest.New(t)
			server.Break(test.fault)
			t.Setenv("HOOK", server.Hook("h"))
			a := Activities{Sender: Slack{Client: slack.Client{Timeout: 200 * time.Millisecond}, Secrets: reader(), Webhook: "env:HOOK"}}
			_, err := a.SendAlert(t.Context(), workflows.SendRequest{Alert: danger(start)})
			var application *temporal.ApplicationError
			require.ErrorAs(t, err, &application)
			require.Equal(t, test.kind, application.Type())
			require.Equal(t, !test.retryable, application.NonRetryable())
			require.Equal(t, test.delay, application.NextRetryDelay())
			require.NotContains(t, err.Error(), "SECRETKEY")
			require.NotContains(t, err.Error(), server.URL)
		})
	}
	a := Activities{Sender: Slack{Secrets: reader(), Webhook: "env:UNSET_HOOK"}}
	_, err := a.SendAlert(t.Context(), workflows.SendRequest{Alert: danger(start)})
	require.ErrorContains(t, err, "env:UNSET_HOOK")
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.Equal(t, errSecret, application.Type())
	require.False(t, application.NonRetryable(), "a secret may be set later")
}
