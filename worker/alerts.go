package main

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/alert"
	"millrace/domain/alert"
	"millrace/platform/secret"
	"millrace/platform/slack"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
	"millrace/workflows/names"
)

// secretKeep is how long a webhook or token is remembered between sends.
const secretKeep = 5 * time.Minute

// alertSettings say where alerts go and how they read. Secrets are given by
// reference only.
type alertSettings struct {
	SlackWebhook  string            `help:"Where the Slack webhook URL is found: env:NAME, file:PATH or aws-secret:ID. Without it, and without a bot token, alerts are recorded and not sent. {scope} in the URL stands for the alert's scope." env:"MILLRACE_SLACK_WEBHOOK" placeholder:"REFERENCE"`
	SlackWebhooks map[string]string `help:"References of webhooks of single scopes (a factory id, cloud-infra, artifacts, observability, app.ID, app.*), separated by semicolons; the others use the one above." env:"MILLRACE_SLACK_WEBHOOKS" placeholder:"SCOPE=REFERENCE"`
	SlackToken    string            `help:"Where a Slack bot token is found; with it one message per incident is kept up to date and its history is in the thread." env:"MILLRACE_SLACK_TOKEN" placeholder:"REFERENCE"`
	SlackChannel  string            `help:"Channel id that the bot posts to." env:"MILLRACE_SLACK_CHANNEL" placeholder:"ID"`
	SlackChannels map[string]string `help:"Channel ids of single scopes, separated by semicolons." env:"MILLRACE_SLACK_CHANNELS" placeholder:"SCOPE=ID"`
	SlackTimeout  time.Duration     `help:"How long one attempt may take." default:"4s" env:"MILLRACE_SLACK_TIMEOUT"`
	Language      string            `name:"alert-language" help:"Language of the messages." enum:"ko,en" default:"ko" env:"MILLRACE_ALERT_LANGUAGE"`
	Recovery      bool              `name:"alert-recovery-notices" help:"Also tell when an alert is over." env:"MILLRACE_ALERT_RECOVERY_NOTICES"`
	Cooldowns     cooldowns         `embed:"" prefix:"alert-cooldown-"`
}

// cooldowns are how long the same alert stays quiet after it was sent.
type cooldowns struct {
	FactoryWarning time.Duration `help:"Quiet time after a factory's warning." default:"900s" env:"MILLRACE_ALERT_COOLDOWN_FACTORY_WARNING"`
	FactoryDanger  time.Duration `help:"Quiet time after a factory's danger." default:"300s" env:"MILLRACE_ALERT_COOLDOWN_FACTORY_DANGER"`
	FastWarning    time.Duration `help:"Quiet time after a warning of the fast collector." default:"900s" env:"MILLRACE_ALERT_COOLDOWN_FAST_WARNING"`
	FastDanger     time.Duration `help:"Quiet time after a danger of the fast collector." default:"300s" env:"MILLRACE_ALERT_COOLDOWN_FAST_DANGER"`
	SlowWarning    time.Duration `help:"Quiet time after a warning of the slow collector." default:"900s" env:"MILLRACE_ALERT_COOLDOWN_SLOW_WARNING"`
	SlowDanger     time.Duration `help:"Quiet time after a danger of the slow collector." default:"300s" env:"MILLRACE_ALERT_COOLDOWN_SLOW_DANGER"`
}

func (c cooldowns) bySource() alert.Cooldowns {
	return alert.Cooldowns{
		alert.SourceFactory: {Warning: c.FactoryWarning, Danger: c.FactoryDanger},
		alert.SourceFast:    {Warning: c.FastWarning, Danger: c.FastDanger},
		alert.SourceSlow:    {Warning: c.SlowWarning, Danger: c.SlowDanger},
	}
}

// Bounds of the settings. A cooldown counts in whole seconds; an attempt must
// end well within its activity.
const (
	minCooldown     = time.Second
	maxSlackTimeout = 8 * time.Second
)

// check refuses settings that can't work, all of them in one error. It never
// repeats a reference: a secret may have been given by mistake.
func (s alertSettings) check() error {
	var problems []error
	refer := func(variable, reference string) {
		if reference == "" {
			return
		}
		if err := secret.Reference(reference).Check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", variable, err))
		}
	}
	refer("MILLRACE_SLACK_WEBHOOK", s.SlackWebhook)
	refer("MILLRACE_SLACK_TOKEN", s.SlackToken)
	for scope, reference := range s.SlackWebhooks {
		problems = append(problems, checkSlackScope("MILLRACE_SLACK_WEBHOOKS", scope))
		refer("MILLRACE_SLACK_WEBHOOKS", reference)
	}
	for scope := range s.SlackChannels {
		problems = append(problems, checkSlackScope("MILLRACE_SLACK_CHANNELS", scope))
	}
	if len(s.SlackWebhooks) > 0 && s.SlackWebhook == "" {
		problems = append(problems, errors.New("MILLRACE_SLACK_WEBHOOK: is required with MILLRACE_SLACK_WEBHOOKS, so that no scope is without one"))
	}
	if s.SlackToken != "" && s.SlackChannel == "" {
		problems = append(problems, errors.New("MILLRACE_SLACK_CHANNEL: is required with MILLRACE_SLACK_TOKEN"))
	}
	if s.SlackTimeout <= 0 || s.SlackTimeout > maxSlackTimeout {
		problems = append(problems, fmt.Errorf("MILLRACE_SLACK_TIMEOUT: must be positive and at most %s", maxSlackTimeout))
	}
	for source, cooldown := range s.Cooldowns.bySource() {
		if cooldown.Warning < minCooldown || cooldown.Danger < minCooldown {
			problems = append(problems, fmt.Errorf("MILLRACE_ALERT_COOLDOWN_*: those of %s must be at least %s", source, minCooldown))
		}
	}
	return errors.Join(problems...)
}

func checkSlackScope(variable, scope string) error {
	if scope == alert.AppScope("*") {
		return nil
	}
	if err := alert.CheckScope(scope); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return nil
}

// sender is how alerts are delivered; secrets reads AWS Secrets Manager.
func (s alertSettings) sender(secrets secret.SecretsManager) activities.Slack {
	webhooks := make(map[string]secret.Reference, len(s.SlackWebhooks))
	for scope, reference := range s.SlackWebhooks {
		webhooks[scope] = secret.Reference(reference)
	}
	return activities.Slack{
		Client:  slack.Client{Timeout: s.SlackTimeout},
		Secrets: &secret.Reader{AWS: secrets, Keep: secretKeep, Now: time.Now},
		Webhook: secret.Reference(s.SlackWebhook), Webhooks: webhooks,
		Token: secret.Reference(s.SlackToken), Channel: s.SlackChannel, Channels: s.SlackChannels,
		Language: alert.Language(s.Language),
	}
}

// alerting is the alert capability of a worker: the observer that other
// capabilities hand their snapshots to, and the activities.
type alerting struct {
	observer   activities.Observer
	activities activities.Activities
}

func newAlerting(d dependencies) alerting {
	s := d.settings.Alerts
	metrics := activities.NewMetrics(d.registry)
	store := storage.New(d.clients.dynamodb, d.settings.FactoryStatusTable, d.settings.GovernanceTable)
	return alerting{
		observer: activities.Observer{Raiser: &activities.Raiser{Temporal: d.temporal, Now: time.Now, Metrics: metrics}},
		activities: activities.Activities{
			Store: store, Sender: s.sender(d.clients.secrets), Current: &activities.Current{Store: store, Now: time.Now},
			Cooldowns: s.Cooldowns.bySource(), Recovery: s.Recovery, Metrics: metrics, Logger: d.logger,
		},
	}
}

// registerAlerts hosts the alert capability.
func registerAlerts(h *host, d dependencies) {
	a := d.alerting
	h.on(names.QueueAlerts, func(r worker.Registry) {
		// An entity lives for ever: pinned to the build that started it, it would
		// keep that build's workers alive for ever too.
		r.RegisterWorkflowWithOptions(workflows.RiskAlert, workflow.RegisterOptions{
			Name: names.RiskAlert, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		})
		for name, run := range map[string]any{
			workflows.ConfirmAlertActivity: a.activities.ConfirmAlert, workflows.ReserveAlertActivity: a.activities.ReserveAlert,
			workflows.SendAlertActivity: a.activities.SendAlert, workflows.SettleAlertActivity: a.activities.SettleAlert,
			workflows.LogAlertsActivity: a.activities.LogAlerts, workflows.CheckOpenAlertsActivity: a.activities.CheckOpenAlerts,
			workflows.SendRecoveryActivity: a.activities.SendRecovery,
		} {
			r.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
		}
	})
}
