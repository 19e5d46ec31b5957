// Package alert sequences alerts: one RiskAlert entity for each scope confirms,
// reserves, sends and records. It decides nothing itself: domain/alert decides
// what is an alert, storage/alert whether it may be sent now. This file declares
// the activities that do the work.
package alert

import (
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
)

// Activity names. All but the sending ones are local activities: each is one or
// two requests to DynamoDB.
const (
	ConfirmAlertActivity    = "ConfirmAlert"
	ReserveAlertActivity    = "ReserveAlert"
	SendAlertActivity       = "SendAlert"
	SettleAlertActivity     = "SettleAlert"
	LogAlertsActivity       = "LogAlerts"
	CheckOpenAlertsActivity = "CheckOpenAlerts"
	SendRecoveryActivity    = "SendRecovery"
)

// Error types of the sending activities.
const (
	// ErrAmbiguous marks a sent request whose answer never came.
	ErrAmbiguous = "SlackAmbiguous"
	// ErrRejected marks a request that Slack refuses for good.
	ErrRejected = "SlackRejected"
)

// ConfirmRequest asks whether an alert was observed often enough. Token names
// this delivery of the snapshot, so that a retry counts once.
type ConfirmRequest struct {
	Alert alert.Alert `json:"alert"`
	Token string      `json:"token"`
	At    time.Time   `json:"at"`
}

// Verdict is whether an alert goes on. Why and Detail tell why not.
type Verdict struct {
	Go     bool   `json:"go"`
	Why    string `json:"why,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// ReserveRequest claims the right to send an alert.
type ReserveRequest struct {
	Alert alert.Alert `json:"alert"`
	At    time.Time   `json:"at"`
}

// ReserveResult is whether an alert is sent now, and the message of its
// incident when there is one already.
type ReserveResult struct {
	Verdict
	Incident Incident `json:"incident,omitzero"`
}

// Incident is a Slack message that can be edited in place.
type Incident struct {
	Channel string `json:"channel,omitempty"`
	TS      string `json:"ts,omitempty"`
}

// SendRequest sends an alert, or edits its incident's message.
type SendRequest struct {
	Alert    alert.Alert `json:"alert"`
	Incident Incident    `json:"incident,omitzero"`
}

// SendResult is the message that shows the alert now; zero for webhooks, which
// name none.
type SendResult struct {
	Incident Incident `json:"incident,omitzero"`
}

// SettleRequest records how a reserved alert's sending ended.
type SettleRequest struct {
	Alert    alert.Alert  `json:"alert"`
	Record   alert.Record `json:"record"`
	Error    string       `json:"error,omitempty"`
	At       time.Time    `json:"at"`
	Incident Incident     `json:"incident,omitzero"`
}

// SettleResult tells whether the entity shall watch for the alert's end.
type SettleResult struct {
	Watch bool `json:"watch"`
}

// LogRequest writes lines of the alert log.
type LogRequest struct {
	Records []alert.Record `json:"records"`
}

// CheckRequest asks which alerts of a scope are still raised.
type CheckRequest struct {
	Scope string      `json:"scope"`
	Keys  []alert.Key `json:"keys"`
}

// CheckResult are those of the keys whose condition goes on in the newest read
// model.
// Readable is false when there is none, or only a stale one: then nothing is
// known.
type CheckResult struct {
	Raised   []alert.Key `json:"raised"`
	Readable bool        `json:"readable"`
}

// RecoveryRequest sends the notice that an alert's condition is over.
type RecoveryRequest struct {
	Alert    alert.Alert    `json:"alert"`
	At       factory.Millis `json:"at"`
	Incident Incident       `json:"incident,omitzero"`
}
