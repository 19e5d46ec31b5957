package alert

import (
	"strings"
	"time"
)

// Limits of an alert at the door.
const (
	maxReason  = 200
	maxText    = 3000
	maxDetails = 50
	maxKeyPart = 1024
	// maxCooldown keeps a mistyped cooldown from silencing an alert for ever.
	maxCooldown = 31 * 24 * time.Hour
)

// Check refuses an alert that the machinery can't carry. Its error is an
// *InvalidError.
func (a Alert) Check() error {
	if err := CheckScope(a.Scope); err != nil {
		return err
	}
	belongs, ok := scopesOf[a.SourceType]
	switch {
	case !ok:
		return invalid("source_type", "is not known")
	case !belongs(a.Scope):
		return invalid("source_type", "does not belong to the scope")
	case a.Severity != Warning && a.Severity != Danger:
		return invalid("severity", "must be warning or danger")
	case a.Reason == "" || len(a.Reason) > maxReason || a.Reason != Slug(a.Reason):
		return invalid("reason", "must be a slug of 1 to 200 characters")
	case a.SourceUpdatedAt.IsZero():
		return invalid("source_updated_at", "is required")
	case len(a.SourceKey) > maxKeyPart:
		return invalid("source_key", "must have at most 1024 characters")
	case a.CooldownSeconds < 0 || a.CooldownSeconds > int64(maxCooldown/time.Second):
		return invalid("cooldown_seconds", "must be between 0 and 31 days")
	}
	return a.checkTexts()
}

func (a Alert) checkTexts() error {
	_, app := AppOf(a.Scope)
	switch {
	case len(a.Status) > maxReason || len(a.FingerprintStatus) > maxReason || strings.Contains(a.FingerprintStatus, "#"):
		return invalid("status", "must have at most 200 characters, its fingerprint no #")
	case a.Status == "" && a.FingerprintStatus == "" && !app:
		return invalid("status", "is required where there is no fingerprint_status")
	case len(a.Title) > maxText || len(a.Summary) > maxText || len(a.Because) > maxText:
		return invalid("title", "title, summary and because must have at most 3000 characters each")
	case a.StateSK != "" && (!app || !strings.HasPrefix(a.StateSK, appStatePrefix) || len(a.StateSK) > maxKeyPart):
		return invalid("state_sk", "is for applications and begins with ALERTSTATE#")
	}
	d := a.Details
	if len(d.Causes) > maxDetails || len(d.Gates) > maxDetails || len(d.Errors) > maxDetails || len(d.Facts) > maxDetails {
		return invalid("details", "must have at most 50 entries of each kind")
	}
	return nil
}

// Trimmed is the alert with its details cut to what a signal carries and a
// message can show.
func (a Alert) Trimmed() Alert {
	d := &a.Details
	d.Causes, d.Gates = cut(d.Causes, maxListed), cut(d.Gates, maxListed)
	d.Errors, d.Facts = cut(d.Errors, maxCollectorErrors), cut(d.Facts, maxFacts)
	for i := range d.Errors {
		d.Errors[i].Message, d.Errors[i].Error = cutText(d.Errors[i].Message, maxValue), cutText(d.Errors[i].Error, maxValue)
	}
	return a
}

func cut[T any](list []T, n int) []T {
	if len(list) > n {
		list = list[:n]
	}
	return append([]T(nil), list...)
}

func cutText(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}
