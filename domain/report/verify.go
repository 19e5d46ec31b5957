package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Violation is a rule that a text breaks.
type Violation struct {
	// Rule is a slug, such as unknown_number.
	Rule string
	// Section is a section's id; empty for the whole report.
	Section string
	// Text is the offending part in short; empty where it must not be repeated.
	Text string
	// Message says what is wrong.
	Message string
}

// String is the violation in one line.
func (v Violation) String() string {
	text := v.Rule
	if v.Section != "" {
		text += " in " + v.Section
	}
	if v.Text != "" {
		text += fmt.Sprintf(" at %q", v.Text)
	}
	return text + ": " + v.Message
}

const (
	// maxViolations are enough to learn from.
	maxViolations    = 20
	maxViolationText = 80
	minSentenceRunes = 4
	// maxReportRunes bounds all of a model's sentences together.
	maxReportRunes = 12_000
	// minHangulPercent is how much of a Korean text's letters must be Korean; names
	// are Latin.
	minHangulPercent = 40
)

// Verify checks a draft against the facts that it has to word: those of the
// findings that each sentence cites. The context only tells a number that exists
// elsewhere from one that was made up. Foreign are the ids of other factories.
// No violation means that the draft may be published.
func Verify(doc Document, context []byte, draft Draft, foreign []string) []Violation {
	v := newVerifier(doc, context, foreign)
	v.completeness(draft)
	runes := 0
	for _, section := range draft.Sections {
		for _, sentence := range section.Sentences {
			runes += utf8.RuneCountInString(sentence.Text)
			v.sentence(section.ID, sentence)
		}
	}
	if runes > maxReportRunes {
		v.add("length", "", "", fmt.Sprintf("all sentences together must have at most %d characters", maxReportRunes))
	}
	v.whole(draft)
	v.proportion(draft)
	return v.found
}

type verifier struct {
	doc     Document
	lang    Language
	foreign []string
	testbed bool
	// facts are the findings by id; identity is what every sentence may say.
	facts    map[string]factText
	identity []token
	// anywhere are all facts of document and context; keys the context's own words.
	anywhere []token
	keys     map[string]bool
	found    []Violation
}

func newVerifier(doc Document, context []byte, foreign []string) *verifier {
	lang := doc.language()
	known := readContext(lang, context)
	v := &verifier{doc: doc, lang: lang, testbed: known.testbed, keys: known.keys, facts: map[string]factText{}}
	for _, id := range foreign {
		if id != doc.Target {
			v.foreign = append(v.foreign, strings.ToLower(id))
		}
	}
	for id, finding := range doc.findings() {
		v.facts[id] = newFactText(lang, clean(finding.Text))
	}
	v.identity = tokensOf(lang, strings.Join([]string{doc.Target, doc.Date, doc.Timezone}, " \n"))
	v.anywhere = slices.Concat(v.identity, tokensOf(lang, doc.text()), known.tokens)
	return v
}

// text is all that code says in a document.
func (d Document) text() string {
	parts := []string{d.Title, d.Target, d.Date, d.Timezone}
	table := func(t Table) {
		parts = append(parts, t.Columns...)
		for _, row := range t.Rows {
			parts = append(parts, row...)
		}
	}
	table(d.KeyFigures)
	for _, section := range d.Sections {
		parts = append(parts, section.Heading)
		for _, t := range section.Tables {
			table(t)
		}
		for _, finding := range section.Findings {
			parts = append(parts, finding.Text)
		}
	}
	for _, anchor := range d.Anchors {
		parts = append(parts, anchor.Name, anchor.Text)
	}
	for i := range parts {
		parts[i] = clean(parts[i])
	}
	return strings.Join(parts, "\n")
}

func (v *verifier) add(rule, section, text, message string) {
	if len(v.found) >= maxViolations {
		return
	}
	if runes := []rune(text); len(runes) > maxViolationText {
		text = string(runes[:maxViolationText]) + "…"
	}
	if hasSecret(text) {
		text = ""
	}
	v.found = append(v.found, Violation{Rule: rule, Section: section, Text: text, Message: message})
}

// completeness checks that each section is there, in order, and words all its
// findings: leaving a fact out is a lie too.
func (v *verifier) completeness(draft Draft) {
	var order []string
	for _, section := range v.doc.worded() {
		order = append(order, section.ID)
		written := draft.section(section.ID)
		if written == nil || len(written.Sentences) == 0 {
			v.add("missing_section", section.ID, "", "the section has no sentence")
			continue
		}
		cited := map[string]bool{}
		for _, sentence := range written.Sentences {
			for _, id := range sentence.Findings {
				cited[id] = true
			}
		}
		for _, finding := range section.Findings {
			if !cited[finding.ID] {
				v.add("missing_finding", section.ID, finding.ID, "no sentence of the section words this finding")
			}
		}
	}
	for _, section := range draft.Sections {
		if !slices.Contains(order, section.ID) {
			v.add("empty_section", section.ID, "", "the section has no findings, so nothing may be said in it")
		}
	}
}

// sentence checks one sentence against the findings that it cites.
func (v *verifier) sentence(section string, s Sentence) {
	if hasSecret(s.Text) { // no other rule may repeat a part of it
		v.add("secret", section, "", "the text has the form of a credential")
		return
	}
	var cited []factText
	facts := slices.Clone(v.identity)
	for _, id := range s.Findings {
		fact, ok := v.facts[id]
		if !ok {
			v.add("unknown_finding", section, id, "there is no such finding")
			continue
		}
		cited, facts = append(cited, fact), append(facts, fact.tokens...)
	}
	v.form(section, s.Text, cited)
	v.language(section, s.Text, cited)
	if !asItStands(s.Text, cited) { // a machine may have the name of a factory
		v.factories(section, s.Text)
	}
	for _, t := range tokensOf(v.lang, s.Text) {
		v.token(section, t, facts)
	}
	v.labels(section, s.Text, facts)
	v.judgements(section, s.Text, cited)
	v.wording(section, s.Text, cited)
	if !asItStands(s.Text, cited) {
		v.closed(section, s.Text, cited)
		v.figures(section, s.Text, cited)
	}
}

// form checks that a sentence is nothing but words of the right language.
func (v *verifier) form(section, text string, cited []factText) {
	switch runes := utf8.RuneCountInString(text); {
	case runes < minSentenceRunes || strings.TrimSpace(text) != text:
		v.add("length", section, text, fmt.Sprintf("a sentence has at least %d characters and no space around it", minSentenceRunes))
	case runes > maxSentenceRunes:
		v.add("length", section, text, fmt.Sprintf("a sentence has at most %d characters", maxSentenceRunes))
	}
	if r, found := foreignRune(text); found {
		v.add("number_form", section, fmt.Sprintf("%U", r), "only plain digits and visible characters may be used")
	}
	if found := markup.FindString(text); found != "" {
		v.add("markup", section, found, "no tables, headings, lists, links, code or HTML")
	}
	if found := spelled[v.lang].FindString(text); found != "" && !asItStands(text, cited) { // a name may be a number
		v.add("spelled_number", section, strings.TrimSpace(found), "numbers are written in digits")
	}
}

// language checks the letters of a sentence, but for those of names that a cited
// finding has.
func (v *verifier) language(section, text string, cited []factText) {
	korean := false
	for word := range strings.FieldsSeq(text) {
		named := slices.ContainsFunc(cited, func(f factText) bool { return strings.Contains(f.text, word) })
		for _, r := range word {
			switch {
			case unicode.Is(unicode.Hangul, r):
				korean = korean || !named || v.lang == Korean
			case unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && !named:
				v.add("language", section, word, "there are letters of another script")
				return
			}
		}
	}
	if korean != (v.lang == Korean) {
		v.add("language", section, text, "the sentence is not in the language of the report")
	}
}

// proportion checks that a Korean report is not English with a few Korean words.
func (v *verifier) proportion(draft Draft) {
	if v.lang != Korean {
		return
	}
	hangul, letters := 0, 0
	for _, section := range draft.Sections {
		for _, sentence := range section.Sentences {
			for _, r := range wordPatternAnywhere.ReplaceAllLiteralString(sentence.Text, "") {
				if unicode.IsLetter(r) {
					letters++
				}
				if unicode.Is(unicode.Hangul, r) {
					hangul++
				}
			}
		}
	}
	if letters > 0 && hangul*100 < letters*minHangulPercent {
		v.add("language", "", "", "the report is not in Korean")
	}
}

// wordPatternAnywhere finds names, which are Latin in any language.
var wordPatternAnywhere = regexp.MustCompile(`[A-Za-z0-9]+(?:[-_./:@][A-Za-z0-9]+)+`)

var (
	factoryPattern = regexp.MustCompile(`factory[-_ ]?[a-z0-9]+(?:-[a-z0-9]+)*`)
	// koreanFactory is a factory called by its letter alone.
	koreanFactory = regexp.MustCompile(`\b([a-z0-9]{1,3})\s?공장|공장\s?([a-z0-9]{1,3})\b`)
	// spelledFactory is a factory in other letters than its id has; which one does
	// not matter.
	spelledFactory = regexp.MustCompile(`팩[토터]리|공장\s?(?:에이|비|씨|시|디)(?:[^가-힣]|의|는|가|은|이|에|$)|(?:에이|비|씨|디)\s?공장|\bplants?\b|\bsites?\s[a-z0-9]\b`)
	factoryName    = strings.NewReplacer("factory_", "factory-", "factory ", "factory-")
)

// factories refuses every other factory, also one that a finding names: nothing
// that this report words is about it.
func (v *verifier) factories(section, text string) {
	lower := strings.ToLower(text)
	for _, id := range v.foreign {
		if containsWord(lower, id) {
			v.foreigner(section, id)
		}
	}
	for _, found := range factoryPattern.FindAllString(lower, -1) {
		name := factoryName.Replace(found)
		if slices.Contains(v.foreign, name) && name != found {
			v.foreigner(section, found)
		}
		if strings.HasPrefix(found, "factory-") && name != strings.ToLower(v.doc.Target) && !slices.Contains(v.foreign, name) && !v.isKnownName(found) {
			v.foreigner(section, found)
		}
	}
	if found := spelledFactory.FindString(lower); found != "" {
		v.foreigner(section, found)
	}
	for _, found := range koreanFactory.FindAllStringSubmatch(lower, -1) {
		if slices.Contains(v.foreign, "factory-"+found[1]+found[2]) {
			v.foreigner(section, found[0])
		}
	}
}

func (v *verifier) foreigner(section, name string) {
	v.add("foreign_factory", section, name, "the report is about "+v.doc.Target+" alone")
}

func (v *verifier) isKnownName(name string) bool {
	return v.keys[name] || token{kind: nameToken, value: name}.isIn(v.anywhere)
}

// containsWord tells whether an id stands in a text on its own, not as a part of a
// longer name.
func containsWord(text, id string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], id)
		if at < 0 {
			return false
		}
		start, end := from+at, from+at+len(id)
		if (start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		from = start + 1
	}
}

func isNameByte(b byte) bool { return isWordRune(rune(b)) || b == '-' || b == '_' }

// token checks that a number, date, time or name is a fact of a cited finding.
func (v *verifier) token(section string, t token, facts []token) {
	if t.isIn(facts) {
		return
	}
	what, message := "number", "the number"
	switch t.kind {
	case dateToken:
		what, message = "date", "the date"
	case timeToken, spanToken:
		what, message = "time", "the time"
	case nameToken:
		if vocabulary[t.value] || v.keys[t.value] || v.lang == English && compounds.MatchString(t.value) {
			return
		}
		what, message = "name", "the name"
	}
	if t.isIn(v.anywhere) {
		v.add("uncited_"+what, section, t.text, message+" is in no finding that the sentence cites")
		return
	}
	v.add("unknown_"+what, section, t.text, message+" (with its unit and role) is in no finding")
}

// judgements checks that each judgement is one of code's.
func (v *verifier) judgements(section, text string, cited []factText) {
	var names []string
	for _, f := range cited {
		names = append(names, f.names...)
	}
	plain := plainText(v.lang, text, names)
	for _, j := range judgements[v.lang] {
		said := plain
		if j.whole {
			said = text
		}
		if found := j.said.FindString(said); found != "" && !j.supportedBy(cited) {
			v.add(j.rule, section, found, "no cited finding says so")
		}
	}
	for _, pattern := range inverted[v.lang] {
		found := pattern.FindString(text)
		if found != "" && !slices.ContainsFunc(cited, func(f factText) bool { return pattern.MatchString(f.text) }) {
			v.add("direction", section, found, "a lower score is worse, a higher one better")
		}
	}
}

func (v *verifier) wording(section, text string, cited []factText) {
	if found := certain[v.lang].FindString(text); found != "" && !slices.ContainsFunc(cited, func(f factText) bool { return strings.Contains(f.plain, found) }) {
		v.add("certainty", section, found, "nothing is certain here: say what was measured")
	}
	if found := incidents[v.lang].FindString(denied[v.lang].ReplaceAllLiteralString(text, " ")); v.testbed && found != "" && !asItStands(text, cited) {
		v.add("testbed", section, found, "a testbed's data are no real incident")
	}
}
