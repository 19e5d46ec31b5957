package alert

import (
	"cmp"
	"fmt"
	"strings"

	"millrace/domain/factory"
)

// Limits of a message. Slack cuts the text of a message at 40,000 characters;
// the lists are kept short enough to be read on a phone.
const (
	MaxMessage         = 40_000
	maxListed          = 3
	maxCollectorErrors = 5
	maxFacts           = 20
	maxValue           = 300
)

var rule = strings.Repeat("━", 22)

const brand = "AEGIS Alert | "

// Text is the message of an alert, ready for Slack: escaped, cut and in the
// layout of the design. An unknown language is Korean.
func Text(a Alert, language Language) string {
	m := newMessage(language)
	m.line(brand + m.heading[a.Severity])
	m.block(m.what, m.sentence(a))
	m.block(m.state, m.current(a)...)
	m.block(m.why, m.reasons(a)...)
	m.block(m.causes, m.listCauses(a.Details.Causes)...)
	m.block(m.gates, m.listGates(a.Details.Gates)...)
	m.block(m.errors, m.listErrors(a.Details.Errors)...)
	m.facts(a.Details.Facts)
	m.block(m.data, clean(a.SourceKey))
	m.block(m.repeat, m.repeatText)
	return m.String()
}

// RecoveryText is the message that an alert's condition is over, seen at a
// time.
func RecoveryText(a Alert, at factory.Millis, language Language) string {
	m := newMessage(language)
	m.line(brand + m.recovered)
	m.block(m.what, m.back(target(a), m.severity[string(a.Severity)]), m.recoveredText)
	m.block(m.state, m.bullet(m.fieldTarget, target(a)), m.bullet(m.fieldCause, a.Reason), "- "+at.String())
	return m.String()
}

// AgainText is the reply in an incident's thread when it was seen again.
func AgainText(a Alert, language Language) string {
	m := newMessage(language)
	lines := []string{m.again, m.bullet(m.fieldStatus, a.Status)}
	if a.Score != nil {
		lines = append(lines, m.bullet(m.fieldScore, a.Score.String()))
	}
	return strings.Join(append(lines, "- "+a.SourceUpdatedAt.String()), "\n")
}

// message is a message under construction.
type message struct {
	words
	lines []string
}

func newMessage(language Language) *message {
	w, ok := vocabulary[language]
	if !ok {
		w = korean
	}
	return &message{words: w, lines: []string{rule}}
}

func (m *message) line(text string) { m.lines = append(m.lines, text) }

// block adds a heading and its lines; a block without any text is left out.
func (m *message) block(heading string, lines ...string) {
	if strings.Join(lines, "") == "" {
		return
	}
	m.lines = append(m.lines, "", heading)
	m.lines = append(m.lines, lines...)
}

// String is the whole message. What is too long loses its middle: the last
// lines tell where to look.
func (m *message) String() string {
	text := strings.Join(append(m.lines, rule), "\n")
	runes := []rune(text)
	if len(runes) <= MaxMessage {
		return text
	}
	const tail = 2000
	return string(runes[:MaxMessage-tail-3]) + "\n…\n" + string(runes[len(runes)-tail:])
}

func target(a Alert) string {
	if app, ok := AppOf(a.Scope); ok {
		return clean(app)
	}
	return clean(a.Scope)
}

func (m *message) sentence(a Alert) string {
	if a.Title != "" {
		return clean(a.Title)
	}
	return m.detected(target(a), m.severity[string(a.Severity)])
}

func (m *message) bullet(name, value string) string { return "- " + name + ": " + clean(value) }

func (m *message) current(a Alert) []string {
	lines := []string{
		m.bullet(m.fieldSeverity, m.severity[string(a.Severity)]),
		m.bullet(m.fieldTarget, target(a)),
		m.bullet(m.fieldSnapshot, m.source[a.SourceType]),
		m.bullet(m.fieldStatus, cmp.Or(a.Status, "-")),
	}
	if a.Score != nil {
		lines = append(lines, m.bullet(m.fieldScore, a.Score.String()))
	}
	return lines
}

func (m *message) reasons(a Alert) []string {
	lines := []string{m.bullet(m.fieldCause, a.Reason)}
	if a.Summary != "" {
		lines = append(lines, m.bullet(m.fieldSummary, a.Summary))
	}
	return lines
}

func (m *message) listCauses(causes []Cause) []string {
	var lines []string
	for i, c := range causes[:min(len(causes), maxListed)] {
		lines = append(lines, fmt.Sprintf("%d. %s: %s", i+1, m.item, clean(c.Field)))
		lines = m.field(lines, m.reason, c.Reason)
		lines = m.field(lines, m.value, valueText(c.Value))
		if c.Contribution != nil {
			lines = m.field(lines, m.contribution, c.Contribution.String())
		}
		lines = m.field(lines, m.level, m.severity[c.Severity])
	}
	return lines
}

func (m *message) listGates(gates []Gate) []string {
	var lines []string
	for i, g := range gates[:min(len(gates), maxListed)] {
		lines = append(lines, fmt.Sprintf("%d. %s: %s", i+1, m.condition, clean(g.reason())))
		lines = m.field(lines, m.item, g.Field)
		lines = m.field(lines, m.value, valueText(g.Value))
		lines = m.field(lines, m.level, m.severity[g.level()])
	}
	return lines
}

func (m *message) listErrors(errors []CollectorError) []string {
	var lines []string
	for _, e := range errors[:min(len(errors), maxCollectorErrors)] {
		lines = append(lines, "- "+clean(cmp.Or(e.Source, e.Collector, "collector"))+": "+clean(e.text()))
	}
	if rest := len(errors) - maxCollectorErrors; rest > 0 {
		lines = append(lines, fmt.Sprintf(m.more, rest))
	}
	return lines
}

// facts adds a block for each topic, in the order in which topics appear.
func (m *message) facts(facts []Fact) {
	for i := 0; i < len(facts); {
		topic := facts[i].Topic
		var lines []string
		for ; i < len(facts) && facts[i].Topic == topic; i++ {
			if facts[i].Value != "" && len(lines) < maxFacts {
				lines = append(lines, m.bullet(clean(facts[i].Name), facts[i].Value))
			}
		}
		m.block(cmp.Or(m.topics[topic], m.detail), lines...)
	}
}

// field adds an indented line, unless there is nothing to say.
func (m *message) field(lines []string, name, value string) []string {
	if value == "" {
		return lines
	}
	return append(lines, "   "+name+": "+clean(value))
}

func valueText(v factory.Value) string {
	switch {
	case v.Number != nil:
		return v.Number.String()
	case v.Text != nil:
		return *v.Text
	}
	return ""
}

// escaper is Slack's: these three characters make links, mentions and entities.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// clean makes one harmless line of a value: cut, without line breaks that could
// pretend to be other blocks, and escaped.
func clean(value string) string {
	value = strings.Join(strings.Fields(value), " ")
	return escaper.Replace(cutText(value, maxValue))
}
