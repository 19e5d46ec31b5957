package observability

import (
	"time"

	"millrace/domain/exact"
)

// Protocol is the protocol that a signal tells of.
type Protocol string

// The protocols.
const (
	AIGP Protocol = "aigp"
	ACP  Protocol = "acp"
	ALP  Protocol = "alp"
	UOP  Protocol = "uop"
)

// Type is the kind of a signal.
type Type string

// The types.
const (
	Request  Type = "request"
	Response Type = "response"
	ToolCall Type = "tool_call"
	Decision Type = "decision"
	Failure  Type = "error"
	SpanType Type = "span"
)

// Status is how what a signal tells of ended.
type Status string

// The statuses.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
)

var (
	protocols = map[Protocol]bool{AIGP: true, ACP: true, ALP: true, UOP: true}
	types     = map[Type]bool{Request: true, Response: true, ToolCall: true, Decision: true, Failure: true, SpanType: true}
	statuses  = map[Status]bool{StatusOK: true, StatusError: true}
)

// Where a signal's cost comes from.
const (
	CostClient = "client"
	CostPrices = "price_table"
)

// Tokens are the token buckets of a signal. They are disjoint: cached input is
// not in Input, reasoning not in Output.
type Tokens struct {
	Input       int64 `json:"input_tokens,omitempty"`
	CachedInput int64 `json:"cached_input_tokens,omitempty"`
	Output      int64 `json:"output_tokens,omitempty"`
	Reasoning   int64 `json:"reasoning_tokens,omitempty"`
}

// Sum is the sum of the buckets.
func (t Tokens) Sum() int64 { return t.Input + t.CachedInput + t.Output + t.Reasoning }

// Signal is one thing that an application did. Times are UTC; Timestamp is the
// time of the event.
type Signal struct {
	SignalID       string    `json:"signal_id"`
	AppID          string    `json:"app_id"`
	RequestID      string    `json:"request_id,omitempty"`
	Timestamp      time.Time `json:"timestamp"`
	ReceivedAt     time.Time `json:"received_at"`
	Protocol       Protocol  `json:"protocol"`
	Type           Type      `json:"type"`
	Name           string    `json:"name,omitempty"`
	ParentSignalID string    `json:"parent_signal_id,omitempty"`
	// DurationMS is nil where the signal tells no duration.
	DurationMS *exact.Decimal `json:"duration_ms,omitempty"`
	Model      string         `json:"model,omitempty"`
	Tokens
	// TotalTokens is what the client says, the sum of the buckets where it does not.
	TotalTokens int64 `json:"total_tokens,omitempty"`
	// TotalTold tells a total of 0 from none; it is not kept.
	TotalTold bool `json:"-"`
	// TokenMismatch tells that the buckets do not add up to TotalTokens.
	TokenMismatch bool `json:"token_mismatch,omitempty"`
	// CostUSD is nil where neither the client nor the price table knows it.
	CostUSD      *exact.Decimal    `json:"cost_usd,omitempty"`
	CostSource   string            `json:"cost_source,omitempty"`
	PriceVersion string            `json:"price_version,omitempty"`
	Status       Status            `json:"status"`
	Attributes   map[string]string `json:"attributes,omitempty"`
}

// TimestampLayout is the fixed width of timestamps in keys: nine digits of the
// second, UTC, so that text order is time order.
const TimestampLayout = "2006-01-02T15:04:05.000000000Z"

// Stamp is a time in TimestampLayout.
func Stamp(t time.Time) string { return t.UTC().Format(TimestampLayout) }
