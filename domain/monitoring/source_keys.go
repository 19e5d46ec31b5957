package monitoring

import "time"

// SourcePrefix starts the sort keys of an owner's sources.
const SourcePrefix = "SOURCE#"

// minuteLayout has no seconds, so that the text of a minute sorts as time does.
const minuteLayout = "2006-01-02T15:04Z"

// SourceSK is the sort key of a source's latest row in its owner's partition.
func SourceSK(id string) string { return SourcePrefix + Segmented(id) }

// MinutePK is the partition of a source's minute summaries.
func MinutePK(owner, id string) string { return OwnerPK(owner) + "#" + SourceSK(id) }

// MinuteSK is the sort key of the summary of the minute of t.
func MinuteSK(t time.Time) string { return "MINUTE#" + t.UTC().Format(minuteLayout) }

// ParseMinuteSK is the minute of a sort key that MinuteSK made.
func ParseMinuteSK(sortKey string) (time.Time, error) {
	t, err := time.Parse("MINUTE#"+minuteLayout, sortKey)
	if err != nil {
		return time.Time{}, invalid("cursor", "must be one that this list returned")
	}
	return t.UTC(), nil
}
