// Package alert has the activities of alerts: they confirm, reserve, send and
// record, and they hand the alerts that a new snapshot raises to the scope's
// RiskAlert entity.
package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/alert"
	"millrace/platform/awsconf"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
)

// Activities are the activities that a RiskAlert entity calls.
type Activities struct {
	Store  storage.Store
	Sender Sender
	// Current tells what the newest read models raise, for recovery notices; nil
	// knows nothing.
	Current   *Current
	Cooldowns alert.Cooldowns
	// Recovery switches recovery notices on.
	Recovery bool
	Metrics  *Metrics
	Logger   *slog.Logger
}

// Sender delivers messages.
type Sender interface {
	// Configured tells whether alerts of a scope can be delivered at all.
	Configured(scope string) bool
	// Send delivers an alert, or brings its incident's message up to date.
	Send(ctx context.Context, a alert.Alert, incident storage.Incident) (storage.Incident, error)
	// Recover delivers the notice that an alert is over.
	Recover(ctx context.Context, req workflows.RecoveryRequest) error
}

// ConfirmAlert counts an observation of an alert that one blip must not raise.
func (a Activities) ConfirmAlert(ctx context.Context, req workflows.ConfirmRequest) (workflows.Verdict, error) {
	if !a.Sender.Configured(req.Alert.Scope) {
		return notConfigured(), nil
	}
	confirmation, needed := req.Alert.Confirmation()
	if !needed {
		return workflows.Verdict{Go: true}, nil
	}
	count, err := a.Store.Observe(ctx, req.Alert, req.Token, req.At, confirmation.Window)
	switch {
	case errors.Is(err, storage.ErrStale):
		return workflows.Verdict{Why: alert.WhyStaleSnapshot, Detail: err.Error()}, nil
	case err != nil:
		return workflows.Verdict{}, storeError(err)
	case count < confirmation.Required:
		detail := fmt.Sprintf("seen %d of %d times within %s", count, confirmation.Required, confirmation.Window)
		return workflows.Verdict{Why: alert.WhyAwaitingConfirmation, Detail: detail}, nil
	}
	return workflows.Verdict{Go: true}, nil
}

func notConfigured() workflows.Verdict {
	return workflows.Verdict{Why: alert.WhyNotConfigured, Detail: "no webhook and no bot token is set for the scope"}
}

// ReserveAlert claims the right to send an alert, unless it is silenced, cooling
// down or older than one sent before.
func (a Activities) ReserveAlert(ctx context.Context, req workflows.ReserveRequest) (workflows.ReserveResult, error) {
	if !a.Sender.Configured(req.Alert.Scope) {
		return workflows.ReserveResult{Verdict: notConfigured()}, nil
	}
	silence, err := a.Store.SilenceOf(ctx, req.Alert, req.At)
	if err != nil {
		return workflows.ReserveResult{}, storeError(err)
	}
	if silence != nil {
		detail := fmt.Sprintf("until %s by %s: %s", silence.Until, silence.CreatedBy, silence.Why)
		return workflows.ReserveResult{Verdict: workflows.Verdict{Why: alert.WhySilenced, Detail: detail}}, nil
	}
	r, err := a.Store.Reserve(ctx, req.Alert, req.At, a.Cooldowns.Of(req.Alert))
	if err != nil {
		return workflows.ReserveResult{}, storeError(err)
	}
	return workflows.ReserveResult{
		Verdict:  workflows.Verdict{Go: r.Reserved, Why: r.Why, Detail: r.Detail},
		Incident: workflows.Incident(r.Incident),
	}, nil
}

// SettleAlert records how an alert's sending ended, on its item and in the log.
func (a Activities) SettleAlert(ctx context.Context, req workflows.SettleRequest) (workflows.SettleResult, error) {
	err := a.Store.Settle(ctx, req.Alert, storage.Settlement{
		Outcome: req.Record.Outcome, Error: req.Error, At: req.At, Cooldown: a.Cooldowns.Of(req.Alert),
		Incident: storage.Incident(req.Incident), IncidentFor: incidentFor,
	})
	if err != nil {
		return workflows.SettleResult{}, storeError(err)
	}
	if err := a.Store.Log(ctx, req.Record); err != nil {
		return workflows.SettleResult{}, storeError(err)
	}
	a.count(req.Record)
	return workflows.SettleResult{Watch: a.Recovery && a.Current.watches(req.Alert)}, nil
}

// LogAlerts writes lines of the alert log.
func (a Activities) LogAlerts(ctx context.Context, req workflows.LogRequest) error {
	if err := a.Store.Log(ctx, req.Records...); err != nil {
		return storeError(err)
	}
	for _, r := range req.Records {
		a.count(r)
	}
	return nil
}

// CheckOpenAlerts tells which alerts the newest read model still raises.
func (a Activities) CheckOpenAlerts(ctx context.Context, req workflows.CheckRequest) (workflows.CheckResult, error) {
	result, err := a.Current.check(ctx, req)
	if err != nil {
		return workflows.CheckResult{}, storeError(err)
	}
	return result, nil
}

// SendAlert makes one attempt at delivering an alert.
func (a Activities) SendAlert(ctx context.Context, req workflows.SendRequest) (workflows.SendResult, error) {
	incident, err := a.Sender.Send(ctx, req.Alert, storage.Incident(req.Incident))
	if err != nil {
		return workflows.SendResult{}, sendError(err)
	}
	return workflows.SendResult{Incident: workflows.Incident(incident)}, nil
}

// SendRecovery makes one attempt at delivering the notice that an alert is over.
func (a Activities) SendRecovery(ctx context.Context, req workflows.RecoveryRequest) error {
	if err := a.Sender.Recover(ctx, req); err != nil {
		return sendError(err)
	}
	if req.Incident.TS == "" {
		return nil
	}
	if err := a.Store.Close(ctx, req.Alert); err != nil {
		a.Logger.WarnContext(ctx, "incident not closed, it ends by its age", "alert", req.Alert.Key().String(), "error", err)
	}
	return nil
}

func (a Activities) count(r alert.Record) {
	a.Metrics.count(r)
	a.Logger.Info("alert", "scope", r.Scope, "alert", r.AlertSK, "outcome", r.Outcome, "why", r.Why, "detail", r.Detail, "count", r.Count)
}

// storeError tells errors that no retry can mend.
func storeError(err error) error {
	if awsconf.IsRequestFault(err) {
		return temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
	}
	return err
}
