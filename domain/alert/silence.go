package alert

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/domain/factory"
)

// Silence keeps the alerts of a scope quiet for a time. They are recorded as
// suppressed all the same.
type Silence struct {
	ID    string `json:"id"`
	Scope string `json:"scope"`
	// Reason is the slug that is silenced; empty silences the whole scope.
	Reason    string         `json:"reason,omitempty"`
	Until     factory.Millis `json:"until"`
	CreatedBy string         `json:"created_by"`
	Why       string         `json:"why"`
	CreatedAt factory.Millis `json:"created_at"`
	UpdatedAt factory.Millis `json:"updated_at"`
}

// MaxSilence is the longest silence: what must be quiet for longer wants a
// change of the rules.
const MaxSilence = 30 * 24 * time.Hour

const (
	maxWhy = 500
	maxWho = 200
)

var silenceIDPattern = regexp.MustCompile(`^[a-z0-9]{8,64}$`)

// CheckSilenceID refuses what is no id of a silence: [a-z0-9]{8,64}.
func CheckSilenceID(id string) error {
	if !silenceIDPattern.MatchString(id) {
		return invalid("id", "must match [a-z0-9]{8,64}")
	}
	return nil
}

// Check refuses a silence that is incomplete, over or too long at now.
func (s Silence) Check(now time.Time) error {
	if err := CheckScope(s.Scope); err != nil {
		return err
	}
	if err := CheckSilenceID(s.ID); err != nil {
		return err
	}
	switch {
	case s.Reason != "" && (s.Reason != Slug(s.Reason) || len(s.Reason) > maxReason):
		return invalid("reason", "must be a slug of at most 200 characters, or empty for the whole scope")
	case !s.Until.After(now):
		return invalid("until", "must be in the future")
	case s.Until.After(now.Add(MaxSilence)):
		return invalid("until", "must be within 30 days")
	case s.CreatedBy == "" || len(s.CreatedBy) > maxWho:
		return invalid("created_by", "must have 1 to 200 characters")
	case strings.TrimSpace(s.Why) == "" || utf8.RuneCountInString(s.Why) > maxWhy:
		return invalid("why", "must have 1 to 500 characters")
	}
	return nil
}

// Covers tells whether the silence holds for an alert at now.
func (s Silence) Covers(a Alert, now time.Time) bool {
	return s.Scope == a.Scope && s.Until.After(now) && (s.Reason == "" || s.Reason == Slug(a.Reason))
}
