// Package bedrock asks a model of Amazon Bedrock for one structured answer: the
// model has to call the one tool it is given, and what it passes to the tool is
// the answer. It makes one attempt and says of each failure whether another may
// help. Source: Amazon Bedrock API Reference, Converse.
package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
)

// DefaultTimeout bounds one request: a model writes a few dozen tokens a second,
// and answers only when the last is written; large models take minutes.
const DefaultTimeout = 10 * time.Minute

const connectTimeout = 2 * time.Second

// The reasons for which a model stops writing that callers tell apart; there are
// others.
const (
	StopToolUse   = string(types.StopReasonToolUse)
	StopMaxTokens = string(types.StopReasonMaxTokens)
)

// API is the part of the client that is used.
type API interface {
	Converse(context.Context, *bedrockruntime.ConverseInput, ...func(*bedrockruntime.Options)) (*bedrockruntime.ConverseOutput, error)
}

// New makes the SDK's client. It tries once, since whoever calls retries by
// itself, and has connections of its own, with the certificates and the proxy of
// the configuration: those of other AWS clients give up long before a model has
// answered.
func New(cfg aws.Config) *bedrockruntime.Client {
	return bedrockruntime.NewFromConfig(cfg, func(o *bedrockruntime.Options) {
		o.RetryMaxAttempts = 1
		client, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			client = awshttp.NewBuildableClient()
		}
		o.HTTPClient = detached{client.
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
			WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = 0 })}
	})
}

// detached sends a copy of a request's body. The SDK closes its own as soon as an
// answer begins; where that is soon, the transport is still looking for the body's
// end, and would break off an answer that has been paid for.
type detached struct{ next bedrockruntime.HTTPClient }

// Do sends a request.
func (d detached) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return d.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return d.next.Do(r)
}

// Tool is what the model has to call.
type Tool struct {
	Name, Description string
	// Schema is the JSON schema of the tool's input.
	Schema json.RawMessage
}

// Request is one question to a model.
type Request struct {
	// Model is the id or ARN of a model or inference profile.
	Model        string
	System, User string
	Tool         Tool
	MaxTokens    int32
	// Temperature is 0 to 1; the API takes it as a binary float, and nothing is
	// computed with it.
	Temperature float32
}

// Answer is what a model said.
type Answer struct {
	// Input is what the model passed to the tool, as JSON; empty where it did not
	// call the tool.
	Input json.RawMessage
	// Text is what the model wrote besides.
	Text string
	// Stop is why the model stopped, such as tool_use or max_tokens; empty where
	// the service did not say.
	Stop string
	// Tokens are 0 where the service did not say.
	InputTokens, OutputTokens int64
	Latency                   time.Duration
}

// Model asks models. API must be set.
type Model struct {
	API API
	// Timeout bounds one request; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Ask makes one request. Its error is an *Error, or the context's own where the
// caller gave up.
func (m Model) Ask(ctx context.Context, r Request) (Answer, error) {
	in, err := input(r)
	if err != nil {
		return Answer{}, err
	}
	timeout := m.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := m.API.Converse(bounded, in)
	switch {
	case err == nil:
		return answer(out, r.Tool.Name)
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("ask model %s: %w", r.Model, ctx.Err())
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		return Answer{}, &Error{Code: "RequestTimeout", Message: fmt.Sprintf("no answer within %s", timeout), Retryable: true, Sent: true, Cause: err}
	}
	return Answer{}, failure(err)
}

func input(r Request) (*bedrockruntime.ConverseInput, error) {
	var schema any
	if err := json.Unmarshal(r.Tool.Schema, &schema); err != nil {
		return nil, &Error{Code: "InvalidTool", Message: "the tool's schema is not JSON", Cause: err}
	}
	return &bedrockruntime.ConverseInput{
		ModelId:  &r.Model,
		System:   []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: r.System}},
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: r.User}}}},
		InferenceConfig: &types.InferenceConfiguration{
			MaxTokens: &r.MaxTokens, Temperature: &r.Temperature,
		},
		ToolConfig: &types.ToolConfiguration{
			Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
				Name: &r.Tool.Name, Description: &r.Tool.Description,
				InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)},
			}}},
			ToolChoice: &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: &r.Tool.Name}},
		},
	}, nil
}

// answer reads what may be missing: the SDK takes {} for an answer.
func answer(out *bedrockruntime.ConverseOutput, tool string) (Answer, error) {
	a := Answer{Stop: string(out.StopReason)}
	if out.Usage != nil {
		a.InputTokens, a.OutputTokens = int64(aws.ToInt32(out.Usage.InputTokens)), int64(aws.ToInt32(out.Usage.OutputTokens))
	}
	if out.Metrics != nil {
		a.Latency = time.Duration(aws.ToInt64(out.Metrics.LatencyMs)) * time.Millisecond
	}
	message, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return a, nil
	}
	var text strings.Builder
	for _, block := range message.Value.Content {
		switch b := block.(type) {
		case *types.ContentBlockMemberText:
			text.WriteString(b.Value)
		case *types.ContentBlockMemberToolUse:
			if aws.ToString(b.Value.Name) != tool || len(a.Input) > 0 || b.Value.Input == nil {
				continue
			}
			body, err := b.Value.Input.MarshalSmithyDocument()
			if err != nil {
				return Answer{}, &Error{Code: "UnreadableAnswer", Message: "the tool's input is not JSON", Retryable: true, Sent: true, Cause: err}
			}
			a.Input = body
		}
	}
	a.Text = text.String()
	return a, nil
}
