package factory

import (
	"fmt"
	"strings"
	"time"
)

// Sort keys and prefixes of the factory table (pk, sk).
const (
	LatestSK      = "LATEST"
	HistoryPrefix = "HISTORY#STATE#"
	GraphPrefix   = "GRAPH#5M#"
	DirtyGraphPK  = "DIRTY#GRAPH"
)

// PK is the partition key of a factory's items.
func PK(factoryID string) string { return "FACTORY#" + factoryID }

// HistorySK is the sort key of the history item written at updatedAt.
func HistorySK(updatedAt Millis) string { return HistoryPrefix + updatedAt.String() }

// GraphSK is the sort key of the aggregate of the bucket that starts at start;
// it has no milliseconds.
func GraphSK(start time.Time) string { return GraphPrefix + bucketText(start) }

// DirtyGraphSK is the sort key of the mark that a bucket must be computed again.
func DirtyGraphSK(start time.Time, factoryID string) string {
	return bucketText(start) + "#" + factoryID
}

func bucketText(start time.Time) string { return start.UTC().Format("2006-01-02T15:04:05Z") }

// Datasets below processed/{factory}/ that are keyed by message.
const (
	DatasetRiskScore     = "risk_score"
	DatasetStateSnapshot = "state_snapshot"
)

// RawLeaf is the object leaf of a received body: its message_id where that is
// safe, else the rule engine's trace id. It is always one harmless key segment.
func RawLeaf(messageID, traceID string) string {
	if CheckMessageID(messageID) == nil {
		return messageID
	}
	return keySegment(traceID)
}

// RawPrefix is where the bodies of one factory, source type and UTC day of
// receipt lie. There is no hour partition (seed, "Source Type별 흐름").
func RawPrefix(factoryID, sourceType string, day time.Time) string {
	return fmt.Sprintf("raw/%s/%s/%s/", keySegment(factoryID), keySegment(sourceType), dayPath(day))
}

// RawKey is the key of a received body, stored unmodified. The partition is the
// UTC day of receipt, so that late arrivals are appended.
func RawKey(factoryID, sourceType string, receivedAt time.Time, leaf string) string {
	return RawPrefix(factoryID, sourceType, receivedAt) + leaf + ".json"
}

// QuarantineKey is where the reason lies why the body at rawKey was refused: the
// same path below quarantine/.
func QuarantineKey(rawKey string) string { return "quarantine/" + strings.TrimPrefix(rawKey, "raw/") }

// ProcessedPrefix is where the objects of one dataset and UTC hour lie.
func ProcessedPrefix(factoryID, dataset string, hour time.Time) string {
	return fmt.Sprintf("processed/%s/%s/%s/", factoryID, dataset, hourPath(hour))
}

// ProcessedKey is the key of a processed object, by source time.
func ProcessedKey(factoryID, dataset string, sourceTimestamp time.Time, messageID string) string {
	return ProcessedPrefix(factoryID, dataset, sourceTimestamp) + messageID + ".json"
}

// SnapshotKey is the key of a state snapshot; partition and leaf come from
// updatedAt, colons and milliseconds kept.
func SnapshotKey(factoryID string, updatedAt Millis) string {
	return ProcessedPrefix(factoryID, DatasetStateSnapshot, updatedAt.Time) + updatedAt.String() + ".json"
}

// AggregateKey is the key of a bucket's long-lived copy; the second mm= is the
// minute.
func AggregateKey(factoryID string, start time.Time) string {
	start = start.UTC()
	return fmt.Sprintf("processed_agg/%s/metrics_5m/%s/mm=%02d.json", factoryID, hourPath(start), start.Minute())
}

func dayPath(t time.Time) string { return t.UTC().Format("yyyy=2006/mm=01/dd=02") }

func hourPath(t time.Time) string { return t.UTC().Format("yyyy=2006/mm=01/dd=02/hh=15") }

const maxSegment = 128

// keySegment makes one harmless key segment of a topic level, whatever a client
// sent: the broker only promises that it has no slash.
func keySegment(level string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, level)
	safe = strings.ReplaceAll(safe, "..", "__")
	if len(safe) > maxSegment {
		safe = safe[:maxSegment]
	}
	if safe == "" || safe == "." {
		return "_"
	}
	return safe
}
