package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"millrace/domain/monitoring"
	"millrace/domain/observability"
)

const (
	maxOTLPBody = 4 << 20
	// maxOTLPExpanded bounds a body that came compressed.
	maxOTLPExpanded = 16 << 20

	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
)

var otlpOperation = Operation{
	ID: "post-traces", Method: http.MethodPost, Path: "/v1/traces", Tag: "signals", Scope: monitoring.ScopeSignalsWrite, MaxBody: maxOTLPBody,
	Summary: "Send traces (OTLP/HTTP)",
	Description: "Takes an ExportTraceServiceRequest as protobuf or JSON, plain or gzip, of at most 4 MiB (16 MiB expanded). Spans with gen_ai.* attributes become signals: the id is made of trace and span id, the timestamp is the start, the request the trace. " +
		"Other spans are left out without a word. The application is the attribute millrace.app_id of the span or its resource, else that of the token of app:x, else service.name. Spans that break a rule are counted in partial_success.",
	Problems: []int{http.StatusServiceUnavailable},
}

type postTracesInput struct {
	ContentType     string `header:"Content-Type" doc:"application/x-protobuf or application/json"`
	ContentEncoding string `header:"Content-Encoding" doc:"gzip, or none"`
	RawBody         []byte `contentType:"application/x-protobuf"`
}

type tracesOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// traces takes spans in as signals and answers in the request's encoding.
func (in ingest) traces(ctx context.Context, request *postTracesInput) (*tracesOutput, error) {
	kind, _, err := mime.ParseMediaType(request.ContentType)
	if err != nil || kind != mediaProtobuf && kind != mediaJSON {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "traces are application/x-protobuf or application/json")
	}
	body, err := expand(request.RawBody, request.ContentEncoding)
	if err != nil {
		return nil, err
	}
	decode := decodeProtobuf
	if kind == mediaJSON {
		decode = decodeJSON
	}
	spans, err := decode(body)
	if err != nil {
		return nil, invalidInput("body", "must be an ExportTraceServiceRequest")
	}
	app, _ := strings.CutPrefix(PrincipalFrom(ctx).Owner, "app:")
	if app == PrincipalFrom(ctx).Owner {
		app = ""
	}
	var signals []observability.Signal
	var errs []error
	for _, span := range spans {
		if span.IsGenAI() {
			signal, err := span.Signal(app)
			signals, errs = append(signals, signal), append(errs, err)
		}
	}
	results, err := in.take(ctx, "otlp", signals, errs)
	if err != nil {
		return nil, err
	}
	return answerTraces(kind, results)
}

// expand undoes the compression of a body, within bounds.
func expand(body []byte, encoding string) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip":
	default:
		return nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "bodies are plain or gzip")
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, invalidInput("body", "must be gzip, as Content-Encoding says")
	}
	expanded, err := io.ReadAll(io.LimitReader(reader, maxOTLPExpanded+1))
	switch {
	case len(expanded) > maxOTLPExpanded:
		return nil, NewProblem(http.StatusRequestEntityTooLarge, "body-too-large", "the expanded body is larger than 16 MiB")
	case err != nil:
		return nil, invalidInput("body", "must be gzip, as Content-Encoding says")
	}
	return expanded, nil
}

// answerTraces tells how many spans were refused, and why the first one was.
func answerTraces(kind string, results SignalResults) (*tracesOutput, error) {
	message := ""
	for _, result := range results.Results {
		if result.Status == outcomeRejected {
			message = fmt.Sprintf("%d of %d gen_ai spans refused; the first: %s %s", results.Rejected, len(results.Results), result.Field, result.Rule)
			break
		}
	}
	var body []byte
	var err error
	if kind == mediaJSON {
		answer := map[string]any{}
		if message != "" {
			answer["partialSuccess"] = map[string]string{"rejectedSpans": fmt.Sprint(results.Rejected), "errorMessage": message}
		}
		body, err = json.Marshal(answer)
	} else {
		answer := &collector.ExportTraceServiceResponse{}
		if message != "" {
			answer.PartialSuccess = &collector.ExportTracePartialSuccess{RejectedSpans: int64(results.Rejected), ErrorMessage: message}
		}
		body, err = proto.Marshal(answer)
	}
	if err != nil {
		return nil, fmt.Errorf("answer traces: %w", err)
	}
	return &tracesOutput{ContentType: kind, Body: body}, nil
}

// describeTraces tells the contract that the body and the answer are messages of
// OTLP in either encoding.
func describeTraces(r *Router) {
	operation := r.api.OpenAPI().Paths["/v1/traces"].Post
	object := &huma.Schema{Type: huma.TypeObject, Description: "ExportTraceServiceRequest of OTLP 1", AdditionalProperties: true}
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	operation.RequestBody.Content = map[string]*huma.MediaType{mediaProtobuf: {Schema: binary}, mediaJSON: {Schema: object}}
	answer := &huma.Schema{Type: huma.TypeObject, Description: "ExportTraceServiceResponse of OTLP 1", AdditionalProperties: true}
	operation.Responses["200"].Content = map[string]*huma.MediaType{mediaProtobuf: {Schema: binary}, mediaJSON: {Schema: answer}}
}

var errNotOTLP = errors.New("not an OTLP message")
