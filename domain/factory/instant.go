package factory

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// earliestSource is the oldest source_timestamp that is believed; older ones
// come from devices whose clock was never set.
var earliestSource = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// MaxClockAhead is how far a device's clock may run ahead of ours.
const MaxClockAhead = 5 * time.Minute

// instantShape is the grammar of RFC 3339: the time package would also take an
// hour of one digit, a comma before the fraction and a zone of +24:00.
var instantShape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseInstant reads an RFC 3339 instant with a zone and returns it in UTC with
// its fraction kept. RFC 3339 allows t and z in lower case (section 5.6); leap
// seconds are refused.
func ParseInstant(text string) (time.Time, error) {
	text = strings.ToUpper(text)
	if !instantShape.MatchString(text) {
		return time.Time{}, errors.New("parse instant: must look like 2006-01-02T15:04:05Z")
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse instant: %w", err)
	}
	return t.UTC(), nil
}

// parseSourceTimestamp reads the source_timestamp of a message received at now.
func parseSourceTimestamp(text string, now time.Time) (time.Time, error) {
	const field = "source_timestamp"
	t, err := ParseInstant(text)
	switch {
	case err != nil:
		return time.Time{}, invalid(field, "must be an RFC 3339 instant with a zone")
	case t.Before(earliestSource):
		return time.Time{}, invalid(field, "must not be before 2020-01-01")
	case t.After(now.Add(MaxClockAhead)):
		return time.Time{}, invalid(field, "must not be more than 5 minutes ahead")
	}
	return t, nil
}

// Millis is an instant that is written in UTC with exactly three decimals
// (2026-05-14T12:00:06.123Z), so that its text sorts as time does.
type Millis struct {
	time.Time
}

const millisLayout = "2006-01-02T15:04:05.000Z"

// MillisOf cuts t to whole milliseconds in UTC.
func MillisOf(t time.Time) Millis { return Millis{t.UTC().Truncate(time.Millisecond)} }

// String is the instant with exactly three decimals.
func (m Millis) String() string { return m.UTC().Format(millisLayout) }

// MarshalJSON writes the instant with exactly three decimals.
func (m Millis) MarshalJSON() ([]byte, error) { return []byte(`"` + m.String() + `"`), nil }

// UnmarshalJSON reads any RFC 3339 instant.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("read instant: %w", err)
	}
	*m = MillisOf(t)
	return nil
}
