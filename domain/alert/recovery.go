package alert

import "strings"

// levels end the reasons that say how bad a condition is, or how a collector
// failed. They are no part of the condition itself.
var levels = []string{"_" + statusWarning, "_" + statusCritical, "_" + statusUnknown, collectorError, collectorUnauthorized}

// How the reasons of failed collectors end.
const (
	collectorError        = "_error"
	collectorUnauthorized = "_unauthorized"
)

// Persists tells whether the condition of an alert that was sent goes on: the
// same condition is a candidate still, at any severity, raised or covered by
// another one. While a collector fails nothing else of its half counts as over,
// because what it did not see may go on.
func (d Decision) Persists(k Key) bool {
	blind := false
	for _, a := range d.candidates() {
		if a.condition() == k.condition() {
			return true
		}
		blind = blind || a.ofCollector()
	}
	return blind && !k.ofCollector()
}

// candidates are the keys of everything that a rule found.
func (d Decision) candidates() []Key {
	keys := make([]Key, 0, len(d.Alerts)+len(d.Suppressed))
	for _, a := range d.Alerts {
		keys = append(keys, a.Key())
	}
	for _, s := range d.Suppressed {
		keys = append(keys, s.Alert.Key())
	}
	return keys
}

// condition is the key without its severity, and its reason without its level: a
// warning that turned into a danger is not over.
func (k Key) condition() Key {
	reason, part := k.reason()
	for _, level := range levels {
		reason = strings.TrimSuffix(reason, level)
	}
	if part != partFast && part != partSlow {
		part = ""
	}
	return Key{PK: k.PK, SK: reason + "#" + part}
}

// ofCollector tells a collector's failure from what collectors see.
func (k Key) ofCollector() bool {
	reason, part := k.reason()
	return (part == partFast || part == partSlow) && (strings.HasSuffix(reason, collectorError) || strings.HasSuffix(reason, collectorUnauthorized))
}

// reason is the reason in a state key, and its third part.
func (k Key) reason() (reason, part string) {
	_, rest, _ := strings.Cut(k.SK, "#")
	reason, part, _ = strings.Cut(rest, "#")
	return reason, part
}
