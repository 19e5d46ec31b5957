package server

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"millrace/domain/observability"
)

// decodeProtobuf reads the spans of an ExportTraceServiceRequest.
func decodeProtobuf(body []byte) ([]observability.Span, error) {
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOTLP, err)
	}
	var spans []observability.Span
	for _, group := range request.GetResourceSpans() {
		resource := attributesOf(group.GetResource().GetAttributes())
		for _, scope := range group.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				spans = append(spans, observability.Span{
					TraceID: hex.EncodeToString(span.GetTraceId()), SpanID: hex.EncodeToString(span.GetSpanId()),
					ParentID: hex.EncodeToString(span.GetParentSpanId()), Name: span.GetName(),
					Start: instant(span.GetStartTimeUnixNano()), End: instant(span.GetEndTimeUnixNano()),
					Failed:     span.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
					Attributes: attributesOf(span.GetAttributes()), Resource: resource,
				})
			}
		}
	}
	return spans, nil
}

func instant(nanoseconds uint64) time.Time {
	if nanoseconds == 0 || nanoseconds > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(nanoseconds)).UTC()
}

func attributesOf(list []*common.KeyValue) map[string]string {
	all := make(map[string]string, len(list))
	for _, pair := range list {
		all[pair.GetKey()] = observability.AttributeText(valueOf(pair.GetValue()))
	}
	return all
}

func valueOf(value *common.AnyValue) any {
	switch v := value.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	case *common.AnyValue_BytesValue:
		return base64.StdEncoding.EncodeToString(v.BytesValue)
	case *common.AnyValue_ArrayValue:
		list := []any{}
		for _, element := range v.ArrayValue.GetValues() {
			list = append(list, valueOf(element))
		}
		return list
	case *common.AnyValue_KvlistValue:
		fields := map[string]any{}
		for _, pair := range v.KvlistValue.GetValues() {
			fields[pair.GetKey()] = valueOf(pair.GetValue())
		}
		return fields
	}
	return ""
}

// The JSON encoding of OTLP is not that of protobuf: ids are hexadecimal. Numbers
// are read as text, so that none passes through a binary float.
type (
	jsonRequest struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []jsonPair `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Spans []jsonSpan `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	jsonSpan struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId"`
		Name       string     `json:"name"`
		Start      jsonNumber `json:"startTimeUnixNano"`
		End        jsonNumber `json:"endTimeUnixNano"`
		Attributes []jsonPair `json:"attributes"`
		Status     struct {
			Code jsonNumber `json:"code"`
		} `json:"status"`
	}
	jsonPair struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		String *string    `json:"stringValue"`
		Bool   *bool      `json:"boolValue"`
		Int    jsonNumber `json:"intValue"`
		Double jsonNumber `json:"doubleValue"`
		Bytes  *string    `json:"bytesValue"`
		Array  *struct {
			Values []jsonValue `json:"values"`
		} `json:"arrayValue"`
		List *struct {
			Values []jsonPair `json:"values"`
		} `json:"kvlistValue"`
	}
	// jsonNumber is a number that may stand in a string.
	jsonNumber string
)

// UnmarshalJSON takes a number as text, with or without quotes.
func (n *jsonNumber) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	*n = jsonNumber(strings.Trim(string(data), `"`))
	return nil
}

// decodeJSON reads the spans of an ExportTraceServiceRequest in JSON. Fields that
// are not known are left alone, as OTLP wants.
func decodeJSON(body []byte) ([]observability.Span, error) {
	var request jsonRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOTLP, err)
	}
	var spans []observability.Span
	for _, group := range request.ResourceSpans {
		resource := jsonAttributes(group.Resource.Attributes)
		for _, scope := range group.ScopeSpans {
			for _, s := range scope.Spans {
				span, err := s.span(resource)
				if err != nil {
					return nil, err
				}
				spans = append(spans, span)
			}
		}
	}
	return spans, nil
}

func (s jsonSpan) span(resource map[string]string) (observability.Span, error) {
	span := observability.Span{
		TraceID: strings.ToLower(s.TraceID), SpanID: strings.ToLower(s.SpanID), ParentID: strings.ToLower(s.ParentID), Name: s.Name,
		Failed:     s.Status.Code == "2" || s.Status.Code == "STATUS_CODE_ERROR",
		Attributes: jsonAttributes(s.Attributes), Resource: resource,
	}
	for text, into := range map[*jsonNumber]*time.Time{&s.Start: &span.Start, &s.End: &span.End} {
		if *text == "" {
			continue
		}
		nanoseconds, err := strconv.ParseUint(string(*text), 10, 64)
		if err != nil {
			return span, fmt.Errorf("%w: %w", errNotOTLP, err)
		}
		*into = instant(nanoseconds)
	}
	return span, nil
}

func jsonAttributes(list []jsonPair) map[string]string {
	all := make(map[string]string, len(list))
	for _, pair := range list {
		all[pair.Key] = observability.AttributeText(pair.Value.plain())
	}
	return all
}

func (v jsonValue) plain() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != "":
		return string(v.Int)
	case v.Double != "":
		return string(v.Double)
	case v.Bytes != nil:
		return *v.Bytes
	case v.Array != nil:
		list := []any{}
		for _, element := range v.Array.Values {
			list = append(list, element.plain())
		}
		return list
	case v.List != nil:
		fields := map[string]any{}
		for _, pair := range v.List.Values {
			fields[pair.Key] = pair.Value.plain()
		}
		return fields
	}
	return ""
}
