package cloudinfra

import (
	"time"

	"millrace/domain/factory"
)

// How old a half may be before its collector is taken for dead.
const (
	FastStaleAfter = 180 * time.Second
	SlowStaleAfter = 900 * time.Second
)

// View is the state as a reader sees it: a dead collector can't say that it is
// dead, so that the age decides when it is read. A stale half is all unknown.
type View struct {
	Available     bool            `json:"available" doc:"Whether any collector ever ran."`
	SchemaVersion string          `json:"schema_version,omitempty"`
	UpdatedAt     *factory.Millis `json:"updated_at,omitempty"`
	FastUpdatedAt *factory.Millis `json:"fast_updated_at,omitempty"`
	SlowUpdatedAt *factory.Millis `json:"slow_updated_at,omitempty"`
	FastAge       *int64          `json:"fast_age_seconds,omitempty"`
	SlowAge       *int64          `json:"slow_age_seconds,omitempty"`
	FastStale     bool            `json:"fast_stale"`
	SlowStale     bool            `json:"slow_stale"`
	StaleAfter    StaleThresholds `json:"stale_threshold_seconds"`
	OverallStatus Status          `json:"overall_status"`
	Fast          *Fast           `json:"fast,omitempty"`
	Slow          *Slow           `json:"slow,omitempty"`
}

// StaleThresholds are the ages in seconds beyond which halves are stale.
type StaleThresholds struct {
	Fast int64 `json:"fast"`
	Slow int64 `json:"slow"`
}

// ViewOf is what a reader sees at now; latest is nil when nothing was ever
// stored.
func ViewOf(latest *Latest, now time.Time) View {
	v := View{
		FastStale: true, SlowStale: true, OverallStatus: Unknown,
		StaleAfter: StaleThresholds{Fast: int64(FastStaleAfter / time.Second), Slow: int64(SlowStaleAfter / time.Second)},
	}
	if latest == nil {
		return v
	}
	v.Available, v.SchemaVersion, v.UpdatedAt = true, latest.SchemaVersion, &latest.UpdatedAt
	v.FastUpdatedAt, v.SlowUpdatedAt = latest.FastUpdatedAt, latest.SlowUpdatedAt
	v.Fast, v.Slow, v.OverallStatus = latest.Fast, latest.Slow, Worst(latest.OverallStatus)
	v.FastAge, v.FastStale = age(latest.FastUpdatedAt, FastStaleAfter, now)
	v.SlowAge, v.SlowStale = age(latest.SlowUpdatedAt, SlowStaleAfter, now)
	if v.FastStale {
		v.Fast = v.Fast.unknown()
	}
	if v.SlowStale {
		v.Slow = v.Slow.unknown()
	}
	if (v.FastStale || v.SlowStale) && v.OverallStatus == Normal {
		v.OverallStatus = Warning
	}
	return v
}

// age is in whole seconds and whether that is stale, as is a time that was never
// or that lies far ahead: a wrong clock must not look fresh for ever.
func age(at *factory.Millis, limit time.Duration, now time.Time) (*int64, bool) {
	if at == nil || at.IsZero() {
		return nil, true
	}
	old := now.Sub(at.Time)
	seconds := max(0, int64(old/time.Second))
	return &seconds, seconds > int64(limit/time.Second) || old < -maxAhead
}
