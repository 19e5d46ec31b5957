package report

import (
	"regexp"
	"slices"
	"strings"
)

// VerifyReport checks a finished Markdown report, whoever wrote it: its title,
// its sections in order, its label, every anchor, and that no number, date, time
// or id is in it that neither the document nor the context has.
func VerifyReport(doc Document, context, markdown []byte, origin Origin, byModel bool, foreign []string) []Violation {
	v := newVerifier(doc, context, foreign)
	var draft *Draft
	if byModel {
		draft = &Draft{}
	}
	expected := newPage(doc, draft, origin)
	v.headings(string(markdown), expected)
	text := unescapeMarkdown(string(markdown))
	if strings.Count(text, expected.Label) < 2 {
		v.add("label", "", "", "the label must stand at the top and at the bottom")
	}
	text = strings.ReplaceAll(text, expected.Label, "")
	v.anchors(text)
	if hasSecret(text) {
		v.add("secret", "", "", "the text has the form of a credential")
	}
	v.strangers(text)
	v.anywhere = append(v.anywhere, tokensOf(v.lang, codeText(words[v.lang]))...)
	for _, t := range tokensOf(v.lang, text) {
		v.token("", t, v.anywhere)
	}
	if found := unescapedMarkup.FindString(string(markdown)); found != "" {
		v.add("markup", "", found, "no links, images, code or HTML")
	}
	return v.found
}

// unescapedMarkup is what Compose never writes: HTML, code, emphasis, links.
var unescapedMarkup = regexp.MustCompile("(?:^|[^\\\\])(?:[<`*\\[]|://)")

func codeText(w phrases) string {
	return strings.Join([]string{w.keyFigures, w.verification, w.figure, w.value, w.target, w.date, w.verdict, w.nothing}, "\n")
}

// headings checks that the headings are those of the page and no others.
func (v *verifier) headings(markdown string, expected page) {
	want := []string{"# " + escapeMarkdown(expected.Title)}
	for _, section := range expected.Sections {
		want = append(want, "## "+escapeMarkdown(section.Heading))
	}
	var got []string
	for line := range strings.Lines(markdown) {
		if strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimRight(line, "\n"))
		}
	}
	if slices.Equal(got, want) {
		return
	}
	for _, heading := range want {
		if !slices.Contains(got, heading) {
			v.add("missing_section", "", heading, "the heading is missing")
			return
		}
	}
	v.add("headings", "", "", "the headings must be the document's, in its order")
}

func (v *verifier) anchors(text string) {
	for _, anchor := range append([]Anchor{{"target", v.doc.Target}, {"date", v.doc.Date}}, v.doc.Anchors...) {
		if !containsFigure(text, clean(anchor.Text)) {
			v.add("missing_figure", "", anchor.Name, "the figure must be in the report word for word")
		}
	}
}

// containsFigure tells whether a figure stands in a text, not as a part of a longer
// number or name.
func containsFigure(text, figure string) bool {
	for from := 0; figure != ""; {
		at := strings.Index(text[from:], figure)
		if at < 0 {
			return false
		}
		start, end := from+at, from+at+len(figure)
		before := start == 0 || !isWordRune(rune(text[start-1])) && text[start-1] != '.' && text[start-1] != ','
		after := end == len(text) || !isWordRune(rune(text[end])) && (text[end] != '.' || !isDigitAt(text, end+1))
		if before && after {
			return true
		}
		from = start + 1
	}
	return true
}

// strangers refuses other factories that not even the document names: a workload
// may bear any name, and is then a fact.
func (v *verifier) strangers(text string) {
	lower, known := strings.ToLower(text), strings.ToLower(v.doc.text())
	for _, id := range v.foreign {
		if containsWord(lower, id) && !containsWord(known, id) {
			v.add("foreign_factory", "", id, "the report is about "+v.doc.Target+" alone")
		}
	}
}
