package observability

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func span(attributes map[string]string) Span {
	return Span{
		TraceID: "5b8efff798038103d269b633813fc60c", SpanID: "eee19b7ec3c1b174", Name: "chat", Start: noon, End: noon.Add(1500 * time.Microsecond),
		Attributes: attributes, Resource: map[string]string{"service.name": "shop"},
	}
}

func TestUsageBecomesDisjointBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		attributes map[string]string
		want       Tokens
		total      int64
		mismatch   bool
	}{
		"by the conventions": {map[string]string{attrInput: "1000", attrCacheRead: "400", attrOutput: "50", attrReasoning: "20"}, Tokens{600, 400, 30, 20}, 1050, false},
		"older names":        {map[string]string{attrPrompt: "10", attrCompletion: "5"}, Tokens{Input: 10, Output: 5}, 15, false},
		"apart already":      {map[string]string{attrInput: "100", attrCacheRead: "400", attrOutput: "5"}, Tokens{Input: 100, CachedInput: 400, Output: 5}, 105, true},
		"another total":      {map[string]string{attrInput: "10", attrOutput: "5", attrTotal: "16"}, Tokens{Input: 10, Output: 5}, 16, true},
		"a total of zero":    {map[string]string{attrInput: "10", attrTotal: "0"}, Tokens{Input: 10}, 0, true},
		"nothing told":       {map[string]string{}, Tokens{}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.attributes[attrOperation] = "chat"
			s, err := span(c.attributes).Signal("")
			require.NoError(t, err)
			require.Equal(t, c.want, s.Tokens)
			require.Equal(t, c.total, s.TotalTokens)
			require.Equal(t, c.mismatch, s.TokenMismatch)
			received, err := s.Receive(noon, Prices{})
			require.NoError(t, err)
			require.Equal(t, c.mismatch, received.TokenMismatch)
		})
	}
}

func TestSpansBecomeSignals(t *testing.T) {
	s := span(map[string]string{attrOperation: "execute_tool", "gen_ai.tool.name": "search", "http.method": "GET", "gen_ai.tool.call.arguments": "secret"})
	s.ParentID, s.Failed = "eee19b7ec3c1b173", true
	signal, err := s.Signal("")
	require.NoError(t, err)
	require.Equal(t, "1.5", signal.DurationMS.String())
	signal.DurationMS = nil
	require.Equal(t, Signal{
		SignalID: SpanSignalID(s.TraceID, s.SpanID), ParentSignalID: SpanSignalID(s.TraceID, s.ParentID), RequestID: s.TraceID, AppID: "shop",
		Timestamp: noon, Protocol: UOP, Type: ToolCall, Status: StatusError, Name: "chat",
		Attributes: map[string]string{attrOperation: "execute_tool", "gen_ai.tool.name": "search"},
	}, signal)
}

func TestTheApplicationIsTheNearestThatIsNamed(t *testing.T) {
	s := span(map[string]string{})
	require.Equal(t, "shop", s.App(""))
	require.Equal(t, "token", s.App("token"))
	s.Resource[attrAppID] = "resource"
	require.Equal(t, "resource", s.App("token"))
	s.Attributes[attrAppID] = "span"
	require.Equal(t, "span", s.App("token"))
}

func TestSpansThatBreakARuleNameTheField(t *testing.T) {
	for field, change := range map[string]func(*Span){
		"span_id":                   func(s *Span) { s.SpanID = "" },
		"end_time_unix_nano":        func(s *Span) { s.End = s.Start.Add(-1) },
		attrInput:                   func(s *Span) { s.Attributes[attrInput] = "-3" },
		attrOutput:                  func(s *Span) { s.Attributes[attrOutput] = "many" },
		attrCost:                    func(s *Span) { s.Attributes[attrCost] = "NaN" },
		"gen_ai.usage.total_tokens": func(s *Span) { s.Attributes[attrTotal] = "1.5" },
	} {
		s := span(map[string]string{attrOperation: "chat"})
		change(&s)
		_, err := s.Signal("")
		var broken *InvalidError
		require.ErrorAs(t, err, &broken, field)
		require.Equal(t, field, broken.Field)
	}
}

func TestAttributesThatDontFitAreLeftOut(t *testing.T) {
	attributes := map[string]string{"gen_ai.huge": strings.Repeat("x", 2000), attrOperation: "chat"}
	for name := range strings.SplitSeq("abcdefghijkl", "") {
		attributes["gen_ai."+name] = strings.Repeat(name, 1000)
	}
	s, err := span(attributes).Signal("")
	require.NoError(t, err)
	require.NotContains(t, s.Attributes, "gen_ai.huge")
	require.Contains(t, s.Attributes, attrOperation)
	require.LessOrEqual(t, s.AttributesSize(), MaxAttributes)
	require.NoError(t, s.Check(noon))
}

func TestValuesOfAttributesAreText(t *testing.T) {
	for want, value := range map[string]any{"x": "x", "7": int64(7), "0.1": 0.1, "true": true, `["a",1]`: []any{"a", int64(1)}} {
		require.Equal(t, want, AttributeText(value))
	}
}
