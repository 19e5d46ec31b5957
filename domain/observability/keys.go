package observability

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// Shards is the number of partitions of the index of pending signals.
const Shards = 16

// Prefixes of sort keys under APP#{app_id}.
const (
	SignalPrefix    = "SIG#"
	AttributePrefix = "SIGATTR#"
	AlertPrefix     = "ALERT#"
	RulePrefix      = "RULE#"
	FiredPrefix     = "FIRED#"
)

// RulesPK is the partition of GSI1 that has all alert rules, so that they are
// found without a scan.
const RulesPK = "RULES"

// AppPK is the partition of an application.
func AppPK(appID string) string { return "APP#" + appID }

// AppOfPK is the application of a partition.
func AppOfPK(pk string) string { return strings.TrimPrefix(pk, "APP#") }

// SignalSK is the sort key of a raw signal, in its own partition, in GSI1 under
// RequestPK, and of its trace row.
func SignalSK(at time.Time, signalID string) string { return SignalPrefix + Stamp(at) + "#" + signalID }

// AttributesSK is the sort key of the item with a signal's large attributes.
func AttributesSK(at time.Time, signalID string) string {
	return AttributePrefix + Stamp(at) + "#" + signalID
}

// ParseSignalSK reads the event time and the id of a raw signal's sort key.
func ParseSignalSK(sk string) (time.Time, string, error) {
	stamp, id, found := strings.Cut(strings.TrimPrefix(sk, SignalPrefix), "#")
	at, err := time.Parse(TimestampLayout, stamp)
	if err != nil || !found {
		return time.Time{}, "", fmt.Errorf("read key of a signal: %w", invalid("SK", "must be SIG#{timestamp}#{signal_id}"))
	}
	return at, id, nil
}

// RequestPK is the partition in GSI1 of all signals of a request.
func RequestPK(requestID string) string { return "REQ#" + requestID }

// TracePK is the partition of a request's trace rows.
func TracePK(requestID string) string { return "TRACE#" + requestID }

// PendingPK is the partition in GSI2 of the signals of a shard that no rollup
// counted yet.
func PendingPK(shard int) string { return fmt.Sprintf("PENDING#%d", shard) }

// PendingSK is the sort key in GSI2: signals are counted in the order of their
// receipt.
func PendingSK(receivedAt time.Time, signalID string) string {
	return Stamp(receivedAt) + "#" + signalID
}

// ShardOf is the shard of an application: FNV-1a (32 bits) of its id mod 16.
func ShardOf(appID string) int {
	h := fnv.New32a()
	h.Write([]byte(appID))
	return int(h.Sum32() % Shards)
}

// AlertSK is the sort key of an alert.
func AlertSK(at time.Time, alertID string) string { return AlertPrefix + Stamp(at) + "#" + alertID }

// AlertsPK is the partition in GSI1 of all alerts of a day.
func AlertsPK(at time.Time) string { return "ALERTS#" + at.UTC().Format(time.DateOnly) }

// AlertGSI1SK is the sort key of an alert in GSI1 (UOP seed, 7.1).
func AlertGSI1SK(at time.Time, alertID string) string { return "#" + Stamp(at) + "#" + alertID }

// RuleSK is the sort key of an alert rule.
func RuleSK(ruleID string) string { return RulePrefix + ruleID }
