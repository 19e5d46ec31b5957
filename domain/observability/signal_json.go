package observability

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"millrace/domain/exact"
)

// MaxBatch is the greatest number of signals in one request.
const MaxBatch = 500

// wire is a signal as clients send it. Numbers are read as text, so that a bad
// one is named by its field and a good one keeps every digit.
type wire struct {
	SignalID       string            `json:"signal_id"`
	AppID          string            `json:"app_id"`
	RequestID      string            `json:"request_id"`
	Timestamp      string            `json:"timestamp"`
	Protocol       Protocol          `json:"protocol"`
	Type           Type              `json:"type"`
	Name           string            `json:"name"`
	ParentSignalID string            `json:"parent_signal_id"`
	DurationMS     number            `json:"duration_ms"`
	Model          string            `json:"model"`
	Input          number            `json:"input_tokens"`
	CachedInput    number            `json:"cached_input_tokens"`
	Output         number            `json:"output_tokens"`
	Reasoning      number            `json:"reasoning_tokens"`
	Total          number            `json:"total_tokens"`
	CostUSD        number            `json:"cost_usd"`
	Status         Status            `json:"status"`
	Attributes     map[string]string `json:"attributes"`
}

// number is the text of a JSON number, or of a string with one: decimals often
// travel as strings, to escape binary floats.
type number string

// UnmarshalJSON takes the text as it is; it is parsed with its field's name.
func (n *number) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*n = number("s" + text)
		return nil
	}
	*n = number(data)
	return nil
}

// decimal is the number, nil when there is none.
func (n number) decimal(field string) (*exact.Decimal, error) {
	if n == "" {
		return nil, nil
	}
	text := strings.TrimPrefix(string(n), "s")
	d, err := exact.Parse(text)
	if err != nil {
		return nil, invalid(field, "must be a decimal number")
	}
	return &d, nil
}

func (n number) count(field string) (int64, error) {
	d, err := n.decimal(field)
	if err != nil || d == nil {
		return 0, err
	}
	whole, fits := d.Int64()
	if !fits || !exact.FromInt(whole).Equal(*d) {
		return 0, invalid(field, "must be a whole number from 0 to 1000000000")
	}
	return whole, nil
}

// ParseSignal reads one signal. Its error is an *InvalidError that names the
// field, an unknown one too.
func ParseSignal(body []byte) (Signal, error) {
	var w wire
	if err := strict(body, &w); err != nil {
		return Signal{}, err
	}
	s := Signal{
		SignalID: w.SignalID, AppID: w.AppID, RequestID: w.RequestID, Protocol: w.Protocol, Type: w.Type, Name: w.Name,
		ParentSignalID: w.ParentSignalID, Model: w.Model, Status: w.Status, Attributes: w.Attributes,
	}
	if w.Timestamp != "" {
		at, err := time.Parse(time.RFC3339Nano, w.Timestamp)
		if err != nil {
			return Signal{}, invalid("timestamp", "must be an RFC 3339 instant with a zone")
		}
		s.Timestamp = at.UTC()
	}
	return s, w.numbers(&s)
}

func (w wire) numbers(s *Signal) error {
	for _, bucket := range []struct {
		field string
		text  number
		into  *int64
	}{
		{"input_tokens", w.Input, &s.Input},
		{"cached_input_tokens", w.CachedInput, &s.CachedInput},
		{"output_tokens", w.Output, &s.Output},
		{"reasoning_tokens", w.Reasoning, &s.Reasoning},
		{"total_tokens", w.Total, &s.TotalTokens},
	} {
		count, err := bucket.text.count(bucket.field)
		if err != nil {
			return err
		}
		*bucket.into = count
	}
	s.TotalTold = w.Total != ""
	var err error
	if s.DurationMS, err = w.DurationMS.decimal("duration_ms"); err != nil {
		return err
	}
	s.CostUSD, err = w.CostUSD.decimal("cost_usd")
	return err
}

// strict reads one JSON object without unknown fields.
func strict(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var wrong *json.UnmarshalTypeError
	var named *InvalidError
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return invalid("signal", "must be one JSON object")
		}
		return nil
	case errors.As(err, &named):
		return named
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalid(wrong.Field, "must be of another JSON type")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return invalid(unknownField(err.Error()), "is not a known field")
	}
	return invalid("signal", "must be one JSON object")
}

const maxShownField = 64

func unknownField(message string) string {
	name := strings.Trim(strings.TrimPrefix(message, "json: unknown field "), `"`)
	if len(name) > maxShownField {
		name = name[:maxShownField]
	}
	return strings.ToValidUTF8(name, "")
}

// ParseBatch reads a request: one signal, a list of signals or an object whose
// only field signals is a list. The elements are not looked into.
func ParseBatch(body []byte) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	switch {
	case len(body) == 0:
		return nil, invalid("body", "must be a signal or a list of signals")
	case body[0] == '[':
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, invalid("body", "must be JSON")
		}
	default:
		var err error
		if list, err = parseObject(body); err != nil {
			return nil, err
		}
	}
	if len(list) < 1 || len(list) > MaxBatch {
		return nil, invalid("signals", "must be 1 to 500 signals")
	}
	return list, nil
}

func parseObject(body []byte) ([]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, invalid("body", "must be a signal or a list of signals in JSON")
	}
	signals, batch := fields["signals"]
	switch {
	case !batch:
		return []json.RawMessage{body}, nil
	case len(fields) > 1:
		return nil, invalid("body", "must have no field besides signals")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(signals, &list); err != nil {
		return nil, invalid("signals", "must be a list")
	}
	return list, nil
}
