package observability

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/domain/exact"
)

// Span is a span of OpenTelemetry, as far as signals are concerned. Ids are
// lower-case hexadecimal. Attributes are those of the span; numbers keep their
// text.
type Span struct {
	TraceID, SpanID, ParentID string
	Name                      string
	Start, End                time.Time
	Failed                    bool
	Attributes                map[string]string
	// Resource are the attributes of what made the span.
	Resource map[string]string
}

// Attributes of spans, from the semantic conventions of generative AI (1.41) and,
// for the application, our own.
const (
	attrPrefix        = "gen_ai."
	attrOperation     = "gen_ai.operation.name"
	attrRequestModel  = "gen_ai.request.model"
	attrResponseModel = "gen_ai.response.model"
	attrInput         = "gen_ai.usage.input_tokens"
	attrOutput        = "gen_ai.usage.output_tokens"
	attrCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	attrReasoning     = "gen_ai.usage.reasoning.output_tokens"
	attrTotal         = "gen_ai.usage.total_tokens"
	attrCost          = "gen_ai.usage.cost"
	attrPrompt        = "gen_ai.usage.prompt_tokens"
	attrCompletion    = "gen_ai.usage.completion_tokens"
	attrAppID         = "millrace.app_id"
	attrService       = "service.name"
)

var (
	traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)
	spanID  = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// inference are the operations that use a model themselves. The spans of agents
// and workflows around them often repeat the sums of what is within: only
// inference counts tokens, so that nothing counts twice.
var inference = map[string]bool{"chat": true, "text_completion": true, "generate_content": true, "embeddings": true}

// contentAttributes hold prompts and answers, which are nobody's business here.
var contentAttributes = []string{
	"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt", "gen_ai.completion",
	"gen_ai.tool.definitions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
}

// IsGenAI tells whether a span tells of generative AI.
func (s Span) IsGenAI() bool {
	for name := range s.Attributes {
		if strings.HasPrefix(name, attrPrefix) {
			return true
		}
	}
	return false
}

// App is the application that a span belongs to: what it or its resource names,
// else that of the token that sent it, else the service's name.
func (s Span) App(tokenApp string) string {
	for _, name := range []string{s.Attributes[attrAppID], s.Resource[attrAppID], tokenApp, s.Resource[attrService]} {
		if name != "" {
			return name
		}
	}
	return ""
}

// SpanSignalID is the signal id of a span: UUIDv5 of its trace's and its own id.
func SpanSignalID(traceID, spanID string) string { return derivedID("span", traceID, spanID) }

// Signal is the signal of a span: its time is the span's start, its request the
// trace. Its error is an *InvalidError.
func (s Span) Signal(tokenApp string) (Signal, error) {
	if !traceID.MatchString(s.TraceID) || !spanID.MatchString(s.SpanID) {
		return Signal{}, invalid("span_id", "must have 16 hexadecimal digits, and trace_id 32")
	}
	operation := s.Attributes[attrOperation]
	signal := Signal{
		SignalID: SpanSignalID(s.TraceID, s.SpanID), AppID: s.App(tokenApp), RequestID: s.TraceID, Timestamp: s.Start,
		Protocol: UOP, Type: SpanType, Status: StatusOK, Name: cut(s.Name, maxText), Attributes: s.kept(),
	}
	signal.Model = cut(first(s.Attributes[attrResponseModel], s.Attributes[attrRequestModel]), maxText)
	if s.ParentID != "" {
		signal.ParentSignalID = SpanSignalID(s.TraceID, s.ParentID)
	}
	if s.Failed {
		signal.Status = StatusError
	}
	if s.End.Before(s.Start) {
		return signal, invalid("end_time_unix_nano", "must not be before the start")
	}
	duration := exact.FromInt(s.End.Sub(s.Start).Nanoseconds()).Mul(perMillion)
	signal.DurationMS = &duration
	switch {
	case operation == "execute_tool":
		signal.Type = ToolCall
	case inference[operation] || operation == "" && s.Attributes[attrInput]+s.Attributes[attrPrompt] != "":
		signal.Type = Request
		return s.usage(signal)
	}
	return signal, nil
}

// usage fills the token buckets. The conventions count cached input into input
// and reasoning into output; here they are apart. Where an instrumentation counts
// them apart already, so that a part would be more than the whole, its numbers
// stay as they are; a sum that is not the total is flagged either way.
func (s Span) usage(signal Signal) (Signal, error) {
	counts := map[string]int64{}
	for _, name := range []string{attrInput, attrOutput, attrCacheRead, attrReasoning, attrTotal, attrPrompt, attrCompletion} {
		if text := s.Attributes[name]; text != "" {
			count, err := number(text).count(name)
			if err != nil || count < 0 || count > MaxTokens {
				return signal, invalid(name, "must be a whole number from 0 to 1000000000")
			}
			counts[name] = count
		}
	}
	input, output := max(counts[attrInput], counts[attrPrompt]), max(counts[attrOutput], counts[attrCompletion])
	signal.CachedInput, signal.Reasoning = counts[attrCacheRead], counts[attrReasoning]
	if signal.TotalTokens, signal.TotalTold = counts[attrTotal], s.Attributes[attrTotal] != ""; !signal.TotalTold {
		signal.TotalTokens = input + output
	}
	signal.Input, signal.Output = apart(input, signal.CachedInput), apart(output, signal.Reasoning)
	signal.TokenMismatch = signal.Sum() != signal.TotalTokens
	if text := s.Attributes[attrCost]; text != "" {
		cost, err := number(text).decimal(attrCost)
		if err != nil {
			return signal, err
		}
		signal.CostUSD = cost
	}
	return signal, nil
}

func apart(whole, part int64) int64 {
	if part > whole {
		return whole
	}
	return whole - part
}

// kept are the attributes that a signal keeps: gen_ai.* without content, the
// smallest first, as many as fit.
func (s Span) kept() map[string]string {
	names := make([]string, 0, len(s.Attributes))
	for name, value := range s.Attributes {
		if strings.HasPrefix(name, attrPrefix) && !slices.Contains(contentAttributes, name) && len(name) <= maxAttributeName && len(value) <= LargeAttributes {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := len(a) + len(s.Attributes[a]) - len(b) - len(s.Attributes[b]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	kept, size := map[string]string{}, 0
	for _, name := range names {
		size += len(name) + len(s.Attributes[name])
		if size > MaxAttributes || len(kept) == maxAttributeCount {
			break
		}
		kept[name] = strings.ToValidUTF8(s.Attributes[name], "")
	}
	return kept
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func cut(text string, length int) string {
	text = strings.ToValidUTF8(text, "")
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length])
	}
	return text
}

// AttributeText is the text of an attribute's value: strings as they are, other
// values as JSON. A double is written with the fewest digits that name it.
func AttributeText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
