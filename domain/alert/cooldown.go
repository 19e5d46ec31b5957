package alert

import "time"

// Cooldown is how long the same alert stays quiet after it was sent.
type Cooldown struct {
	Warning time.Duration
	Danger  time.Duration
}

// Default cooldowns of every source.
const (
	DefaultWarningCooldown = 900 * time.Second
	DefaultDangerCooldown  = 300 * time.Second
)

// Cooldowns are the cooldowns by source; a source that is not listed has the
// defaults.
type Cooldowns map[SourceType]Cooldown

// Of is the cooldown of an alert; its own wins over the configured one.
func (c Cooldowns) Of(a Alert) time.Duration {
	if a.CooldownSeconds > 0 {
		return time.Duration(a.CooldownSeconds) * time.Second
	}
	cooldown, ok := c[a.SourceType]
	if !ok {
		cooldown = Cooldown{Warning: DefaultWarningCooldown, Danger: DefaultDangerCooldown}
	}
	if a.Severity == Danger {
		return cooldown.Danger
	}
	return cooldown.Warning
}
