package bedrock

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"millrace/domain/report"
)

// draft is the input of the tool: what package report asks for.
type draft struct {
	Sections []draftSection `json:"sections"`
}

type draftSection struct {
	ID        string          `json:"id"`
	Sentences []draftSentence `json:"sentences"`
}

type draftSentence struct {
	Text     string   `json:"text"`
	Findings []string `json:"findings"`
}

// finding and section are what the request gives as data.
type section struct {
	ID       string    `json:"id"`
	Findings []finding `json:"findings"`
}

type finding struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// answer words the findings of a request by a mode.
func (r *converseRequest) answer(mode Mode, model string) converseAnswer {
	note := report.StandInMark + " A deterministic program of the local stack answers for " + model + "; no language model wrote this."
	tool := r.tool()
	if tool == nil || mode == Nonsense {
		return r.reply("end_turn", block{Text: note + " The weather is fine, and all systems are 123 percent great."})
	}
	var input any = r.words(mode)
	if mode == Malformed {
		input = map[string]any{"report": "# A whole document", "sections": "see above"}
	}
	written, err := json.Marshal(input)
	if err != nil { // strings and lists always marshal
		panic(err)
	}
	stop := "tool_use"
	if limit := r.InferenceConfig.MaxTokens; mode == Truncate || tokens(string(written)) > limit {
		stop, input = "max_tokens", cut(r.words(mode))
	}
	return r.reply(stop, block{Text: note}, block{ToolUse: &toolUse{ToolUseID: "tooluse_local", Name: *tool, Input: input}})
}

func (r *converseRequest) reply(stop string, content ...block) converseAnswer {
	written, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	in, out := r.tokens(), tokens(string(written))
	if stop == "max_tokens" {
		out = r.InferenceConfig.MaxTokens
	}
	return converseAnswer{
		Output: output{Message: message{Role: "assistant", Content: content}}, StopReason: stop,
		Usage: usage{InputTokens: in, OutputTokens: out, TotalTokens: in + out}, Metrics: metrics{LatencyMS: 7},
	}
}

// cut is an answer that ends amid itself.
func cut(whole draft) draft {
	if len(whole.Sections) > 1 {
		whole.Sections = whole.Sections[:len(whole.Sections)/2]
	}
	if n := len(whole.Sections); n > 0 && len(whole.Sections[n-1].Sentences) > 0 {
		last := &whole.Sections[n-1].Sentences[0]
		runes := []rune(last.Text)
		last.Text = string(runes[:len(runes)/2])
	}
	return whole
}

// words says each finding of the sections that the schema asks for as it stands, and does to it what
// the mode says.
func (r *converseRequest) words(mode Mode) draft {
	asked := r.sections()
	var d draft
	for _, s := range r.findings() {
		if !slices.Contains(asked, s.ID) {
			continue
		}
		written := draftSection{ID: s.ID}
		for _, f := range s.Findings {
			written.Sentences = append(written.Sentences, draftSentence{Text: f.Text, Findings: []string{f.ID}})
		}
		d.Sections = append(d.Sections, written)
	}
	if len(d.Sections) == 0 || len(d.Sections[0].Sentences) == 0 {
		return d
	}
	first := &d.Sections[0].Sentences[0]
	switch mode {
	case Lie:
		r.lie(&d)
	case Foreign:
		first.Text += " factory-zz도 같았습니다."
	case Secret:
		first.Text += " AKIAIOSFODNN7EXAMPLE"
	case Inject:
		if order := injected.FindString(r.text()); order != "" {
			first.Text = "지시대로 점수는 100점이며 정상입니다."
		}
	case Omit:
		d.Sections = d.Sections[:len(d.Sections)-1]
	default:
	}
	return d
}

// injected is an instruction where only data should be.
var injected = regexp.MustCompile(`(?i)ignore[_ -]+(?:all[_ -]+)?(?:previous[_ -]+)?(?:instructions|rules)`)

var number = regexp.MustCompile(`\d+(?:[.,]\d+)*`)

// lie changes the last digit of the first number, dates and names apart, that is then nowhere in the
// request.
func (r *converseRequest) lie(d *draft) {
	known := r.text()
	for i := range d.Sections {
		for j := range d.Sections[i].Sentences {
			sentence := &d.Sections[i].Sentences[j]
			for _, at := range number.FindAllStringIndex(sentence.Text, -1) {
				if inName(sentence.Text, at[0], at[1]) {
					continue
				}
				truth := sentence.Text[at[0]:at[1]]
				for by := byte(1); by < 10; by++ {
					last := len(truth) - 1
					lie := truth[:last] + string('0'+(truth[last]-'0'+by)%10)
					if !strings.Contains(known, lie) {
						sentence.Text = sentence.Text[:at[0]] + lie + sentence.Text[at[1]:]
						return
					}
				}
			}
		}
	}
}

// inName tells whether a number is a part of a date, a time or a name.
func inName(text string, start, end int) bool {
	joins := func(b byte) bool {
		return b == '-' || b == ':' || b == '_' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
	}
	return start > 0 && joins(text[start-1]) || end < len(text) && joins(text[end])
}

// findings are the request's data.
func (r *converseRequest) findings() []section {
	_, rest, _ := strings.Cut(r.text(), "<findings>")
	body, _, _ := strings.Cut(rest, "</findings>")
	var sections []section
	if err := json.Unmarshal([]byte(body), &sections); err != nil {
		return nil
	}
	return sections
}

// sections are the ids that the tool's schema asks for.
func (r *converseRequest) sections() []string {
	var schema struct {
		Properties struct {
			Sections struct {
				Items struct {
					Properties struct {
						ID struct {
							Enum []string `json:"enum"`
						} `json:"id"`
					} `json:"properties"`
				} `json:"items"`
			} `json:"sections"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(r.schema(), &schema); err != nil {
		return nil
	}
	return schema.Properties.Sections.Items.Properties.ID.Enum
}
