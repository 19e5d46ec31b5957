package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"millrace/domain/exact"
)

// ToolName is the tool that a model answers by.
const ToolName = "write_report"

// Prompt is what a model is asked.
type Prompt struct {
	System, User string
	// ToolDescription and ToolSchema, a JSON schema, describe the answer.
	ToolDescription string
	ToolSchema      json.RawMessage
}

// NewPrompt asks a model to word the findings of a document. The context explains
// the findings; secrets in either are left out. Findings and context are data from
// machines that anybody may have named: the instructions say so, and whatever a
// model makes of them, Verify checks the answer. Violations are what was wrong
// with the draft before, a line each.
func NewPrompt(doc Document, context []byte, violations []string) Prompt {
	words := promptWords[doc.language()]
	var user strings.Builder
	fmt.Fprintf(&user, words.task, doc.Target, doc.Date, doc.Timezone)
	user.WriteString("\n\n<findings>\n" + promptFindings(doc) + "\n</findings>\n")
	user.WriteString("\n<context>\n" + promptContext(context) + "\n</context>\n")
	if len(violations) > 0 {
		user.WriteString("\n" + words.again + "\n<violations>\n" + mustJSON(violations) + "\n</violations>\n")
	}
	user.WriteString("\n" + words.close)
	return Prompt{
		System: words.system, User: user.String(),
		ToolDescription: words.tool, ToolSchema: toolSchema(doc),
	}
}

// Digest names everything that a model's answer depends on, as SHA-256 in hex.
func (p Prompt) Digest(model string, maxTokens int, temperature exact.Decimal) string {
	input, err := json.Marshal([]any{model, maxTokens, temperature.String(), p.System, p.User, p.ToolDescription, string(p.ToolSchema)})
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])
}

func (d Document) language() Language {
	if d.Language == English {
		return English
	}
	return Korean
}

type promptFinding struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type promptSection struct {
	ID       string          `json:"id"`
	Heading  string          `json:"heading"`
	Findings []promptFinding `json:"findings"`
}

// worded are the sections that a model has something to say in.
func (d Document) worded() []Section {
	var sections []Section
	for _, s := range d.Sections {
		if len(s.Findings) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

func promptFindings(doc Document) string {
	var sections []promptSection
	for _, s := range doc.worded() {
		section := promptSection{ID: s.ID, Heading: s.Heading}
		for _, f := range s.Findings {
			section.Findings = append(section.Findings, promptFinding{ID: f.ID, Text: clean(f.Text)})
		}
		sections = append(sections, section)
	}
	return mustJSON(sections)
}

// promptContext is the context without line breaks and with its angle brackets
// escaped, so that no text in it can end the element that it is in.
func promptContext(context []byte) string {
	var compact, escaped bytes.Buffer
	if err := json.Compact(&compact, []byte(redact(string(context)))); err != nil {
		return "{}" // a context that is no JSON explains nothing
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return escaped.String()
}

// mustJSON marshals strings and lists of them; it escapes angle brackets.
func mustJSON(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(body)
}

func toolSchema(doc Document) json.RawMessage {
	var sections, findings []string
	for _, s := range doc.worded() {
		sections = append(sections, s.ID)
		for _, f := range s.Findings {
			findings = append(findings, f.ID)
		}
	}
	object := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	sentence := object(map[string]any{
		"text":     map[string]any{"type": "string", "maxLength": maxSentenceRunes},
		"findings": map[string]any{"type": "array", "minItems": 1, "maxItems": maxSentenceFindings, "items": map[string]any{"type": "string", "enum": findings}},
	}, "text", "findings")
	section := object(map[string]any{
		"id":        map[string]any{"type": "string", "enum": sections},
		"sentences": map[string]any{"type": "array", "minItems": 1, "maxItems": maxSectionSentences, "items": sentence},
	}, "id", "sentences")
	return json.RawMessage(mustJSON(object(map[string]any{
		"sections": map[string]any{"type": "array", "minItems": len(sections), "maxItems": len(sections), "items": section},
	}, "sections")))
}
