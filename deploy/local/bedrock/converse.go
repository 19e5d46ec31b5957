package bedrock

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// converseRequest is the part of a Converse request that is read.
type converseRequest struct {
	Messages        []message       `json:"messages"`
	System          []block         `json:"system"`
	InferenceConfig inferenceConfig `json:"inferenceConfig"`
	ToolConfig      *toolConfig     `json:"toolConfig"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Text    string   `json:"text,omitempty"`
	ToolUse *toolUse `json:"toolUse,omitempty"`
}

type toolUse struct {
	ToolUseID string `json:"toolUseId"`
	Name      string `json:"name"`
	Input     any    `json:"input"`
}

type inferenceConfig struct {
	MaxTokens   int32       `json:"maxTokens"`
	Temperature json.Number `json:"temperature"`
}

type toolConfig struct {
	Tools []struct {
		ToolSpec struct {
			Name        string `json:"name"`
			InputSchema struct {
				JSON json.RawMessage `json:"json"`
			} `json:"inputSchema"`
		} `json:"toolSpec"`
	} `json:"tools"`
	ToolChoice struct {
		Tool *struct {
			Name string `json:"name"`
		} `json:"tool"`
	} `json:"toolChoice"`
}

// converseAnswer is a Converse response.
type converseAnswer struct {
	Output     output  `json:"output"`
	StopReason string  `json:"stopReason"`
	Usage      usage   `json:"usage"`
	Metrics    metrics `json:"metrics"`
}

type output struct {
	Message message `json:"message"`
}

type usage struct {
	InputTokens  int32 `json:"inputTokens"`
	OutputTokens int32 `json:"outputTokens"`
	TotalTokens  int32 `json:"totalTokens"`
}

type metrics struct {
	LatencyMS int64 `json:"latencyMs"`
}

// defaultMaxTokens is how long an answer gets where the request does not say.
const defaultMaxTokens = 4096

// problem is what the service would refuse about a request.
func (r *converseRequest) problem() string {
	if r.InferenceConfig.MaxTokens == 0 {
		r.InferenceConfig.MaxTokens = defaultMaxTokens
	}
	switch {
	case r.InferenceConfig.MaxTokens < 0:
		return "maxTokens must be positive"
	case len(r.Messages) == 0 || r.Messages[0].Role != "user":
		return "A conversation must start with a user message."
	case r.ToolConfig != nil && len(r.ToolConfig.Tools) == 0:
		return "toolConfig must have a tool"
	case r.ToolConfig != nil && r.ToolConfig.ToolChoice.Tool != nil && r.tool() == nil:
		return "toolChoice names a tool that there is not"
	}
	return ""
}

// tool is the name of the tool that must be called, nil where none must.
func (r *converseRequest) tool() *string {
	if r.ToolConfig == nil || r.ToolConfig.ToolChoice.Tool == nil {
		return nil
	}
	for _, tool := range r.ToolConfig.Tools {
		if tool.ToolSpec.Name == r.ToolConfig.ToolChoice.Tool.Name {
			return &tool.ToolSpec.Name
		}
	}
	return nil
}

// schema is the schema of the tool that must be called.
func (r *converseRequest) schema() json.RawMessage {
	for _, tool := range r.ToolConfig.Tools {
		if tool.ToolSpec.Name == r.ToolConfig.ToolChoice.Tool.Name {
			return tool.ToolSpec.InputSchema.JSON
		}
	}
	return nil
}

// text is all that the user said.
func (r *converseRequest) text() string {
	var b strings.Builder
	for _, message := range r.Messages {
		for _, part := range message.Content {
			b.WriteString(part.Text + "\n")
		}
	}
	return b.String()
}

func (r *converseRequest) corrected() bool { return strings.Contains(r.text(), "<violations>") }

// tokens is about what a real model would count: a token is four Latin characters, or one of others.
func (r *converseRequest) tokens() int32 {
	total := tokens(r.text())
	for _, part := range r.System {
		total += tokens(part.Text)
	}
	if r.ToolConfig != nil {
		for _, tool := range r.ToolConfig.Tools {
			total += tokens(string(tool.ToolSpec.InputSchema.JSON))
		}
	}
	return total
}

func tokens(text string) int32 {
	latin, others := int32(0), int32(0)
	for _, r := range text {
		if r < utf8.RuneSelf {
			latin++
		} else {
			others++
		}
	}
	return (latin+3)/4 + others
}
