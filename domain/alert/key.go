package alert

import (
	"strings"
	"unicode"
)

// Key is the identity of an alert: the key of its state item.
type Key struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// String is the whole key as one text.
func (k Key) String() string { return k.PK + "/" + k.SK }

const observationPrefix = "OBSERVATION#"

// appStatePrefix begins the sort key of an application's alert state.
const appStatePrefix = "ALERTSTATE#"

// Key is the key of the alert's state item: ALERT#{scope} and
// {severity}#{reason}#{status}, for applications APP#{app_id} and
// ALERTSTATE#{rule_id}#{severity}.
func (a Alert) Key() Key {
	if app, ok := AppOf(a.Scope); ok {
		sk := a.StateSK
		if sk == "" {
			sk = appStatePrefix + Slug(a.Reason) + "#" + string(a.Severity)
		}
		return Key{PK: "APP#" + app, SK: sk}
	}
	part := a.FingerprintStatus
	if part == "" {
		part = a.Status
	}
	return Key{PK: "ALERT#" + a.Scope, SK: string(a.Severity) + "#" + Slug(a.Reason) + "#" + part}
}

// ObservationKey is the key of the item that counts consecutive observations.
func (a Alert) ObservationKey() Key {
	k := a.Key()
	return Key{PK: k.PK, SK: observationPrefix + k.SK}
}

// Slug is the reason as it stands in a key: trimmed, lower case, every
// character that is no letter or digit one underscore; "unknown" when empty.
func Slug(reason string) string {
	slug := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, strings.ToLower(strings.TrimSpace(reason)))
	if slug == "" {
		return "unknown"
	}
	return slug
}

// Owns tells whether a key is one of the cloud alerts of this source: they end
// in the name of its half.
func (s SourceType) Owns(k Key) bool {
	switch s {
	case SourceFast:
		return strings.HasSuffix(k.SK, "#"+partFast)
	case SourceSlow:
		return strings.HasSuffix(k.SK, "#"+partSlow)
	}
	return false
}
