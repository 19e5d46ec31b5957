package alert

import (
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/platform/secret"
	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
)

func TestATextGoesWhereItsScopesAlertsGo(t *testing.T) {
	server := slacktest.New(t)
	t.Setenv("HOOK", server.Hook("default"))
	t.Setenv("HOOK_REPORTS", server.Hook("{scope}"))
	s := Slack{Secrets: reader(), Webhook: "env:HOOK", Webhooks: map[string]secret.Reference{"reports": "env:HOOK_REPORTS"}}
	require.NoError(t, s.Say(t.Context(), "reports", "good morning"))
	require.NoError(t, s.Say(t.Context(), "other", "hello"))
	posted := server.Messages()
	require.Equal(t, []string{"reports", "good morning"}, []string{posted[0].Hook, posted[0].Text})
	require.Equal(t, []string{"default", "hello"}, []string{posted[1].Hook, posted[1].Text})

	t.Setenv("TOKEN", slacktest.Token)
	bot := Slack{Secrets: reader(), Client: slack.Client{API: server.API()}, Token: "env:TOKEN", Channel: "C1", Channels: map[string]string{"reports": "C2"}}
	require.NoError(t, bot.Say(t.Context(), "reports", "by the bot"))
	require.Equal(t, "C2", server.Messages()[2].Hook)
	server.Fail(slacktest.Fault{Status: 500})
	require.ErrorContains(t, bot.Say(t.Context(), "reports", "again"), "unavailable")
}
