package factory

import (
	"regexp"
	"strconv"
	"time"
)

// ReadModel names the rows that answer a history query.
type ReadModel string

// The read models: raw rows for short windows, buckets for long ones, so that
// the number of items read stays bounded (seed, "Dashboard Read Model").
const (
	ReadHistory ReadModel = "HISTORY#STATE"
	ReadGraph   ReadModel = "GRAPH#5M"
)

const (
	defaultWindow = time.Hour
	// MaxRawWindow is the longest window that raw rows answer.
	MaxRawWindow = time.Hour
	// MaxWindow is the longest window there is: buckets live no longer.
	MaxWindow = 48 * time.Hour
	// MaxHistoryLimit is the greatest limit a caller may ask for.
	MaxHistoryLimit = 2000
)

// ReadPlan says what to read for a history query: items of one prefix between
// two inclusive sort keys. Limit bounds the elements returned, the newest ones,
// 0 for all; raw rows are read newest first until it is reached. Merge is the
// number of buckets in an element.
type ReadPlan struct {
	Model  ReadModel
	FromSK string
	ToSK   string
	Limit  int
	Merge  int

	since time.Time
}

// PlanHistory reads the parameters of a history query made at now: window
// ([0-9]+[hmd], at most 48h, default 1h), since (an RFC 3339 instant; only newer
// items are wanted) and limit (1 to 2000); empty ones take their default. Its
// error is an *InvalidError.
func PlanHistory(window, since, limit string, now time.Time) (ReadPlan, error) {
	length, err := ParseWindow(window)
	if err != nil {
		return ReadPlan{}, err
	}
	sinceAt, err := parseSince(since)
	if err != nil {
		return ReadPlan{}, err
	}
	plan := ReadPlan{Model: ReadHistory, Merge: 1, since: sinceAt}
	if length > MaxRawWindow {
		plan.Model, plan.Merge = ReadGraph, mergeOf(length)
		plan.FromSK, plan.ToSK = graphRange(now.Add(-length), sinceAt, plan.Merge)
	} else {
		plan.Limit = rawLimit(length)
		plan.FromSK, plan.ToSK = rawRange(now.Add(-length), sinceAt)
	}
	if limit != "" {
		plan.Limit, err = parseLimit(limit)
	}
	return plan, err
}

var windowPattern = regexp.MustCompile(`^([0-9]{1,6})([hmd])$`)

var windowUnits = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// ParseWindow reads the length of a window, such as 10m, 6h or 2d; an empty text
// is one hour. Its error is an *InvalidError.
func ParseWindow(text string) (time.Duration, error) {
	if text == "" {
		return defaultWindow, nil
	}
	parts := windowPattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, invalid("window", "must match [0-9]+[hmd]")
	}
	count, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, invalid("window", "must match [0-9]+[hmd]")
	}
	length := time.Duration(count) * windowUnits[parts[2]]
	if length <= 0 || length > MaxWindow {
		return 0, invalid("window", "must be more than 0 and at most 48h")
	}
	return length, nil
}

func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	since, err := ParseInstant(text)
	if err != nil {
		return time.Time{}, invalid("since", "must be an RFC 3339 instant with a zone")
	}
	return since, nil
}

func parseLimit(text string) (int, error) {
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > MaxHistoryLimit {
		return 0, invalid("limit", "must be a whole number from 1 to 2000")
	}
	return limit, nil
}

func rawLimit(length time.Duration) int {
	switch length {
	case 10 * time.Minute:
		return 250
	case time.Hour:
		return MaxHistoryLimit
	}
	return 500
}

// mergeOf is how many buckets make one element, so that a chart has 72 of them.
func mergeOf(length time.Duration) int {
	switch length {
	case 12 * time.Hour:
		return 2
	case 24 * time.Hour:
		return 4
	}
	return 1
}

// afterKeys sorts behind every time that can follow a prefix.
const afterKeys = "~"

// rawRange starts at the window or, if that is later, just after since. Rows
// have whole milliseconds.
func rawRange(from, since time.Time) (fromSK, toSK string) {
	lower := ceilTo(from, time.Millisecond)
	if next := since.Truncate(time.Millisecond).Add(time.Millisecond); next.After(lower) {
		lower = next
	}
	return HistorySK(MillisOf(lower)), HistoryPrefix + afterKeys
}

// graphRange has whole elements only: it starts at the first element that begins
// in the window or, if that is later, at the one with the first bucket after
// since.
func graphRange(from, since time.Time, merge int) (fromSK, toSK string) {
	element := time.Duration(merge) * BucketLength
	lower := ceilTo(from, element)
	if next := BucketStart(since).Add(BucketLength).Truncate(element); next.After(lower) {
		lower = next
	}
	return GraphSK(lower), GraphPrefix + afterKeys
}

func ceilTo(t time.Time, unit time.Duration) time.Time {
	if floor := t.UTC().Truncate(unit); !floor.Equal(t) {
		return floor.Add(unit)
	}
	return t.UTC()
}
