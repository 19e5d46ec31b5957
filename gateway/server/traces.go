package server

import (
	"context"
	"net/http"
	"time"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/domain/observability"
)

// TraceReader is what the read of traces needs of the governance table.
type TraceReader interface {
	Trace(ctx context.Context, requestID, cursor string, limit int32, now time.Time) ([]observability.Signal, string, error)
}

// TokenCounts are token buckets, disjoint, and the total told.
type TokenCounts struct {
	Input       int64 `json:"input_tokens"`
	CachedInput int64 `json:"cached_input_tokens"`
	Output      int64 `json:"output_tokens"`
	Reasoning   int64 `json:"reasoning_tokens"`
	Total       int64 `json:"total_tokens"`
}

// TraceSignal is one signal of a trace.
type TraceSignal struct {
	SignalID       string            `json:"signal_id"`
	AppID          string            `json:"app_id"`
	ParentSignalID string            `json:"parent_signal_id,omitempty"`
	Depth          int               `json:"depth" doc:"0 for roots. A signal is followed by its children, earlier ones first."`
	Orphan         bool              `json:"orphan,omitempty" doc:"The signal names a parent that is not in this page."`
	Timestamp      time.Time         `json:"timestamp"`
	ReceivedAt     time.Time         `json:"received_at"`
	Protocol       string            `json:"protocol"`
	Type           string            `json:"type"`
	Status         string            `json:"status"`
	Name           string            `json:"name,omitempty"`
	Model          string            `json:"model,omitempty"`
	DurationMS     *exact.Decimal    `json:"duration_ms,omitempty"`
	Tokens         TokenCounts       `json:"tokens"`
	TokenMismatch  bool              `json:"token_mismatch,omitempty"`
	CostUSD        *exact.Decimal    `json:"cost_usd,omitempty"`
	CostSource     string            `json:"cost_source,omitempty" enum:"client,price_table"`
	PriceVersion   string            `json:"price_version,omitempty"`
	Attributes     map[string]string `json:"attributes,omitempty"`
}

// TraceTotals are the sums of a page's signals.
type TraceTotals struct {
	Signals    int64         `json:"signals"`
	Errors     int64         `json:"errors"`
	Tokens     TokenCounts   `json:"tokens"`
	CostUSD    exact.Decimal `json:"cost_usd"`
	StartedAt  time.Time     `json:"started_at"`
	EndedAt    time.Time     `json:"ended_at"`
	DurationMS exact.Decimal `json:"duration_ms" doc:"From the first start to the last end."`
}

// Trace is the tree of a request's signals, of all applications.
type Trace struct {
	RequestID  string        `json:"request_id"`
	Totals     TraceTotals   `json:"totals" doc:"Of the signals of this page."`
	Signals    []TraceSignal `json:"signals" nullable:"false"`
	NextCursor string        `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end. Nearly all traces fit in one."`
}

type traceInput struct {
	RequestID string `path:"request_id" maxLength:"128" doc:"Id of the request; for OTLP the trace id."`
	Limit     int32  `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
	Cursor    string `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before."`
}

type traceOutput struct {
	Body Trace
}

// Traces adds the read of traces.
func Traces(reader TraceReader, now func() time.Time) Routes {
	return func(r *Router) {
		Handle(r, Operation{
			ID: "get-trace", Method: http.MethodGet, Path: "/v1/traces/{request_id}", Tag: "signals", Scope: monitoring.ScopeRead,
			Summary: "Read the trace of a request", Description: "Signals are seen as soon as they are received, and for 30 days after their timestamp.", Problems: []int{http.StatusNotFound},
		}, func(ctx context.Context, in *traceInput) (*traceOutput, error) {
			if err := observability.CheckRequestID(in.RequestID); err != nil {
				return nil, signalProblem("path", err)
			}
			signals, next, err := reader.Trace(ctx, in.RequestID, in.Cursor, in.Limit, now())
			if err != nil {
				return nil, err
			}
			if len(signals) == 0 && in.Cursor == "" && next == "" {
				return nil, NewProblem(http.StatusNotFound, "not-found", "no signal of this request is known")
			}
			return &traceOutput{Body: traceOf(in.RequestID, signals, next)}, nil
		})
	}
}

func traceOf(requestID string, signals []observability.Signal, next string) Trace {
	t := observability.Total(signals)
	out := Trace{RequestID: requestID, NextCursor: next, Signals: []TraceSignal{}, Totals: TraceTotals{
		Signals: t.Signals, Errors: t.Errors, Tokens: tokenCounts(t.Tokens, t.TotalTokens), CostUSD: t.CostUSD,
		StartedAt: t.StartedAt, EndedAt: t.EndedAt, DurationMS: t.DurationMS,
	}}
	for _, n := range observability.Tree(signals) {
		out.Signals = append(out.Signals, TraceSignal{
			SignalID: n.SignalID, AppID: n.AppID, ParentSignalID: n.ParentSignalID, Depth: n.Depth, Orphan: n.Orphan,
			Timestamp: n.Timestamp, ReceivedAt: n.ReceivedAt, Protocol: string(n.Protocol), Type: string(n.Type), Status: string(n.Status),
			Name: n.Name, Model: n.Model, DurationMS: n.DurationMS, Tokens: tokenCounts(n.Tokens, n.TotalTokens), TokenMismatch: n.TokenMismatch,
			CostUSD: n.CostUSD, CostSource: n.CostSource, PriceVersion: n.PriceVersion, Attributes: n.Attributes,
		})
	}
	return out
}

func tokenCounts(t observability.Tokens, total int64) TokenCounts {
	return TokenCounts{Input: t.Input, CachedInput: t.CachedInput, Output: t.Output, Reasoning: t.Reasoning, Total: total}
}
