package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Outcome is what became of an alert.
type Outcome string

// The outcomes of an alert. Ambiguous means that Slack may have it twice or not
// at all: a request was sent whose answer never came.
const (
	Sent       Outcome = "sent"
	Failed     Outcome = "failed"
	Ambiguous  Outcome = "ambiguous"
	Suppressed Outcome = "suppressed"
	Recovered  Outcome = "recovered"
)

// Why the machinery suppresses an alert that the rules raised.
const (
	WhyNotConfigured        = "slack_not_configured"
	WhyStaleSnapshot        = "stale_snapshot"
	WhyAwaitingConfirmation = "awaiting_confirmation"
	WhySilenced             = "silenced"
	WhyDuplicate            = "duplicate"
	WhyCooldown             = "cooldown_or_stale_snapshot"
	WhyInFlight             = "in_flight"
)

// Record is one line of the alert log: what became of an alert, when and why.
type Record struct {
	ID    string         `json:"id"`
	Scope string         `json:"scope"`
	At    factory.Millis `json:"at"`
	// LastAt and Count tell of repetitions: the same suppression again within
	// RepeatWindow counts on this line.
	LastAt     factory.Millis `json:"last_at"`
	Count      int64          `json:"count"`
	AlertPK    string         `json:"alert_pk"`
	AlertSK    string         `json:"alert_sk"`
	SourceType SourceType     `json:"source_type"`
	Severity   Severity       `json:"severity"`
	Reason     string         `json:"reason"`
	Status     string         `json:"status"`
	Outcome    Outcome        `json:"outcome"`
	// Why is a token, Detail a sentence.
	Why             string         `json:"why"`
	Detail          string         `json:"detail,omitempty"`
	Because         string         `json:"because,omitempty"`
	Score           *exact.Decimal `json:"score,omitempty"`
	SourceKey       string         `json:"source_key,omitempty"`
	SourceUpdatedAt factory.Millis `json:"source_updated_at"`
}

// NewRecord is the line of an alert's outcome at a time.
func NewRecord(a Alert, outcome Outcome, why, detail string, at factory.Millis) Record {
	k := a.Key()
	return Record{
		ID: recordID(k, outcome, why, a.SourceUpdatedAt), Scope: a.Scope, At: at, LastAt: at, Count: 1,
		AlertPK: k.PK, AlertSK: k.SK, SourceType: a.SourceType, Severity: a.Severity, Reason: Slug(a.Reason), Status: a.Status,
		Outcome: outcome, Why: why, Detail: cutText(detail, maxText), Because: a.Because, Score: a.Score,
		SourceKey: a.SourceKey, SourceUpdatedAt: a.SourceUpdatedAt,
	}
}

func recordID(k Key, outcome Outcome, why string, source factory.Millis) string {
	return hash(k.PK, k.SK, string(outcome), why, source.String())[:16]
}

// ReservationID is the same for every attempt at one alert of one snapshot.
func (a Alert) ReservationID() string {
	k := a.Key()
	return hash(k.PK, k.SK, a.SourceUpdatedAt.String())[:32]
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// WhyToken is the reason without what follows a colon: one of a small, fixed
// set.
func (r Record) WhyToken() string {
	token, _, _ := strings.Cut(r.Why, ":")
	return token
}
