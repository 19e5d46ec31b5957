package observability

import (
	"regexp"
	"time"
	"unicode/utf8"

	"millrace/domain/exact"
)

// Limits of signals at the door.
const (
	// MaxAhead and MaxAge bound how far a timestamp may be from the time of receipt.
	MaxAhead = 5 * time.Minute
	MaxAge   = 48 * time.Hour
	// MaxTokens bounds each token count.
	MaxTokens = 1_000_000_000
	// MaxAttributes bounds the attributes of a signal, names and values, in bytes.
	MaxAttributes = 8 << 10
	// LargeAttributes is the size above which attributes have an item of their own.
	LargeAttributes = 1 << 10

	maxAttributeCount = 128
	maxAttributeName  = 128
	maxText           = 256
	// maxCostPlaces, with maxCost, keeps the sum of 10^8 dollars in 38 digits.
	maxCostPlaces     = 30
	maxDurationPlaces = 6
)

var (
	// maxCost is far above the price of any one call.
	maxCost = exact.FromInt(100_000)
	// maxDuration is seven days.
	maxDuration = exact.FromInt(int64(7 * 24 * time.Hour / time.Millisecond))

	appPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	idPattern  = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)
)

// CheckAppID refuses what names no application: [A-Za-z0-9._-]{1,64}.
func CheckAppID(id string) error {
	if !appPattern.MatchString(id) {
		return invalid("app_id", "must be 1 to 64 characters of A-Z, a-z, 0-9, dot, underscore and dash")
	}
	return nil
}

// CheckRequestID refuses what names no request: [A-Za-z0-9._:-]{1,128}.
func CheckRequestID(id string) error { return checkID("request_id", id) }

func checkID(field, id string) error {
	if !idPattern.MatchString(id) {
		return invalid(field, "must be 1 to 128 characters of A-Z, a-z, 0-9, dot, underscore, colon and dash")
	}
	return nil
}

// Check refuses a signal that breaks a rule as of the time of its receipt. Its
// error is an *InvalidError.
func (s Signal) Check(now time.Time) error {
	for _, check := range []func() error{s.checkIDs, s.checkWords, func() error { return s.checkTime(now) }, s.checkNumbers, s.checkAttributes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s Signal) checkIDs() error {
	if err := CheckAppID(s.AppID); err != nil {
		return err
	}
	for field, id := range map[string]string{"signal_id": s.SignalID, "request_id": s.RequestID, "parent_signal_id": s.ParentSignalID} {
		if id == "" {
			continue
		}
		if err := checkID(field, id); err != nil {
			return err
		}
	}
	return nil
}

func (s Signal) checkWords() error {
	switch {
	case !protocols[s.Protocol]:
		return invalid("protocol", "must be aigp, acp, alp or uop")
	case !types[s.Type]:
		return invalid("type", "must be request, response, tool_call, decision, error or span")
	case !statuses[s.Status]:
		return invalid("status", "must be ok or error")
	case utf8.RuneCountInString(s.Name) > maxText || !utf8.ValidString(s.Name):
		return invalid("name", "must have at most 256 characters")
	case utf8.RuneCountInString(s.Model) > maxText || !utf8.ValidString(s.Model):
		return invalid("model", "must have at most 256 characters")
	}
	return nil
}

func (s Signal) checkTime(now time.Time) error {
	switch {
	case s.Timestamp.IsZero():
		return invalid("timestamp", "is required: an RFC 3339 instant with a zone")
	case s.Timestamp.After(now.Add(MaxAhead)):
		return invalid("timestamp", "must not be more than 5 minutes ahead")
	case s.Timestamp.Before(now.Add(-MaxAge)):
		return invalid("timestamp", "must not be older than 48 hours")
	}
	return nil
}

func (s Signal) checkNumbers() error {
	for _, bucket := range []struct {
		field string
		count int64
	}{
		{"input_tokens", s.Input},
		{"cached_input_tokens", s.CachedInput},
		{"output_tokens", s.Output},
		{"reasoning_tokens", s.Reasoning},
		{"total_tokens", s.TotalTokens},
	} {
		if bucket.count < 0 || bucket.count > MaxTokens {
			return invalid(bucket.field, "must be a whole number from 0 to 1000000000")
		}
	}
	if d := s.DurationMS; d != nil && !within(*d, maxDuration, maxDurationPlaces) {
		return invalid("duration_ms", "must be 0 to 604800000 with at most 6 decimal places")
	}
	if c := s.CostUSD; c != nil && !within(*c, maxCost, maxCostPlaces) {
		return invalid("cost_usd", "must be 0 to 100000 with at most 30 decimal places")
	}
	return nil
}

func within(d, limit exact.Decimal, places int32) bool {
	return d.Sign() >= 0 && !limit.Less(d) && d.Round(places).Equal(d)
}

func (s Signal) checkAttributes() error {
	if len(s.Attributes) > maxAttributeCount {
		return invalid("attributes", "must be at most 128")
	}
	for name, value := range s.Attributes {
		if name == "" || len(name) > maxAttributeName || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return invalid("attributes", "must have names of 1 to 128 bytes and be UTF-8 text")
		}
	}
	if s.AttributesSize() > MaxAttributes {
		return invalid("attributes", "must be at most 8192 bytes, names and values")
	}
	return nil
}

// AttributesSize is the size of the attributes, names and values, in bytes.
func (s Signal) AttributesSize() int {
	size := 0
	for name, value := range s.Attributes {
		size += len(name) + len(value)
	}
	return size
}
