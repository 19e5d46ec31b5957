package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Bounds of a draft. A report has a few dozen sentences; what is far above that is
// not one.
const (
	maxDraftBytes       = 64 << 10
	maxDraftSections    = 32
	maxSectionSentences = 24
	maxSentenceRunes    = 400
	maxSentenceFindings = 8
)

// Draft is what a model wrote: sentences by section, each tied to the findings
// whose facts it words.
type Draft struct {
	Sections []DraftSection `json:"sections"`
}

// DraftSection is one section's sentences.
type DraftSection struct {
	ID        string     `json:"id"`
	Sentences []Sentence `json:"sentences"`
}

// Sentence is one sentence and the ids of the findings that it words.
type Sentence struct {
	Text     string   `json:"text"`
	Findings []string `json:"findings"`
}

// Section is the draft's section of an id, nil where it has none.
func (d *Draft) section(id string) *DraftSection {
	if d == nil {
		return nil
	}
	for i := range d.Sections {
		if d.Sections[i].ID == id {
			return &d.Sections[i]
		}
	}
	return nil
}

// ParseDraft reads what a model passed to the tool. Nothing but the tool's own
// shape passes; its error is an *InvalidError that names the field and the rule,
// and quotes nothing.
func ParseDraft(doc Document, toolInput []byte) (Draft, error) {
	if len(toolInput) == 0 {
		return Draft{}, invalid("draft", "must be given by calling the tool")
	}
	if len(toolInput) > maxDraftBytes {
		return Draft{}, invalid("draft", fmt.Sprintf("must have at most %d bytes", maxDraftBytes))
	}
	if !utf8.Valid(toolInput) {
		return Draft{}, invalid("draft", "must be UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(toolInput))
	decoder.DisallowUnknownFields()
	var draft Draft
	if err := decoder.Decode(&draft); err != nil {
		return Draft{}, invalid("draft", "must be the JSON object that the tool's schema asks for")
	}
	if _, err := decoder.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return Draft{}, invalid("draft", "must be one JSON object")
	}
	if err := draft.checkShape(doc); err != nil {
		return Draft{}, err
	}
	return draft, nil
}

func (d Draft) checkShape(doc Document) error {
	if len(d.Sections) > maxDraftSections {
		return invalid("sections", fmt.Sprintf("must be at most %d", maxDraftSections))
	}
	known := doc.findings()
	asked := map[string]bool{}
	for _, s := range doc.Sections {
		asked[s.ID] = true
	}
	seen := map[string]bool{}
	for i, section := range d.Sections {
		field := fmt.Sprintf("sections[%d]", i)
		switch {
		case !asked[section.ID]:
			return invalid(field+".id", "must be a section of the report")
		case seen[section.ID]:
			return invalid(field+".id", "must occur once")
		case len(section.Sentences) > maxSectionSentences:
			return invalid(field+".sentences", fmt.Sprintf("must be at most %d", maxSectionSentences))
		}
		seen[section.ID] = true
		for j, sentence := range section.Sentences {
			if err := sentence.checkShape(fmt.Sprintf("%s.sentences[%d]", field, j), known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s Sentence) checkShape(field string, known map[string]Finding) error {
	if runes := utf8.RuneCountInString(s.Text); runes == 0 || runes > maxSentenceRunes {
		return invalid(field+".text", fmt.Sprintf("must have 1 to %d characters", maxSentenceRunes))
	}
	if len(s.Findings) == 0 || len(s.Findings) > maxSentenceFindings {
		return invalid(field+".findings", fmt.Sprintf("must be 1 to %d ids", maxSentenceFindings))
	}
	for k, id := range s.Findings {
		if _, ok := known[id]; !ok {
			return invalid(fmt.Sprintf("%s.findings[%d]", field, k), "must be the id of a finding")
		}
	}
	return nil
}

// findings are the document's findings by id.
func (d Document) findings() map[string]Finding {
	known := map[string]Finding{}
	for _, section := range d.Sections {
		for _, finding := range section.Findings {
			known[finding.ID] = finding
		}
	}
	return known
}
