package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/mocks"

	"millrace/domain/alert"
	"millrace/platform/secret"
	"millrace/workflows/names"
)

func parseAlerts(t *testing.T, args ...string) alertSettings {
	t.Helper()
	var s alertSettings
	parser, err := kong.New(&s)
	require.NoError(t, err)
	_, err = parser.Parse(args)
	require.NoError(t, err)
	return s
}

func TestAlertsNeedNoSettings(t *testing.T) {
	s := parseAlerts(t)
	require.NoError(t, s.check())
	require.False(t, s.sender(nil).Configured("factory-a"))
	require.Equal(t, 900*time.Second, s.Cooldowns.bySource()[alert.SourceSlow].Warning)
	require.Equal(t, 300*time.Second, s.Cooldowns.bySource()[alert.SourceFactory].Danger)
	require.Equal(t, "ko", s.Language)
	require.False(t, s.Recovery)
	require.Equal(t, 4*time.Second, s.SlackTimeout)
}

func TestSlackIsSetByScope(t *testing.T) {
	t.Setenv("MILLRACE_SLACK_WEBHOOKS", "factory-a=env:HOOK_A;app.*=aws-secret:apps")
	s := parseAlerts(t, "--slack-webhook=file:/etc/hook", "--slack-token=env:T", "--slack-channel=C1")
	require.NoError(t, s.check())
	sender := s.sender(nil)
	require.Equal(t, secret.Reference("env:HOOK_A"), sender.Webhooks["factory-a"])
	require.Equal(t, secret.Reference("aws-secret:apps"), sender.Webhooks["app.*"])
	require.True(t, sender.Configured("factory-b"))
}

func TestWrongAlertSettingsAreNamedTogetherAndShowNoSecret(t *testing.T) {
	s := parseAlerts(t, "--slack-webhook=https://hooks.slack.com/services/T/B/SECRETKEY", "--slack-webhooks=Factory/A=xoxb-SECRETKEY",
		"--slack-token=env:T", "--slack-timeout=1m", "--alert-cooldown-fast-danger=0s", "--slack-channels=nowhere/x=C")
	err := s.check()
	for _, variable := range []string{
		"MILLRACE_SLACK_WEBHOOK:", "MILLRACE_SLACK_WEBHOOKS:", "MILLRACE_SLACK_CHANNEL:", "MILLRACE_SLACK_CHANNELS:", "MILLRACE_SLACK_TIMEOUT:", "MILLRACE_ALERT_COOLDOWN_",
	} {
		require.ErrorContains(t, err, variable)
	}
	require.NotContains(t, err.Error(), "SECRETKEY")
	require.ErrorContains(t, parseAlerts(t, "--slack-webhooks=factory-a=env:A").check(), "MILLRACE_SLACK_WEBHOOK: is required")
}

func TestAlertsAreHostedOnTheirQueue(t *testing.T) {
	d := dependencies{
		clients: clients{dynamodb: dynamodb.New(dynamodb.Options{})}, temporal: &mocks.Client{},
		registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler),
	}
	d.settings.Alerts = parseAlerts(t)
	d.alerting = newAlerting(d)
	require.NotNil(t, d.alerting.observer.Raiser)
	var s settings
	s.TaskQueues.Names = []string{names.QueueScheduled}
	h := newHost(&mocks.Client{}, s)
	registerAlerts(h, d)
	require.Empty(t, h.workers, "a worker of other queues hosts no alerts")
}
