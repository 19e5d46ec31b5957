package report

import (
	"fmt"
	"slices"
	"strings"
)

// Origin says who wrote a report's sentences.
type Origin struct {
	// Model is the id of the model; empty is nobody, which is the template.
	Model string
	// StandIn tells that the model was the local stack's.
	StandIn bool
	// Testbed tells that the target's data are generated.
	Testbed bool
}

// StandInMark begins what the local stack's model writes beside its answer, so
// that no report of it is taken for a real model's.
const StandInMark = "[stand-in]"

// Report is a report as it is published.
type Report struct {
	Markdown, HTML []byte
}

// Compose writes a report: the document's tables and headings, and for words the
// sentences of a draft, or the findings as they stand where the draft is nil.
// Credentials are left out, and whatever a document took from machines is escaped.
func Compose(doc Document, draft *Draft, origin Origin) Report {
	p := newPage(doc, draft, origin)
	return Report{Markdown: p.markdown(), HTML: p.html()}
}

// page is a report before it has a form.
type page struct {
	Language Language
	Title    string
	Target   string
	Date     string
	Timezone string
	Verdict  Verdict
	// VerdictText is the verdict in words.
	VerdictText string
	// Label says who wrote the report, and stands at its top and bottom.
	Label    string
	Sections []pageSection
	Charts   []pageChart
}

type pageSection struct {
	Heading string
	Tables  []Table
	// Prose is a paragraph; Points are a list. One of both is empty.
	Prose  string
	Points []string
	// Charts tells that the charts follow.
	Charts bool
}

func newPage(doc Document, draft *Draft, origin Origin) page {
	doc = doc.cleaned()
	w := words[doc.language()]
	p := page{
		Language: doc.language(), Title: doc.Title, Target: doc.Target, Date: doc.Date, Timezone: doc.Timezone,
		Verdict: doc.Verdict, VerdictText: w.verdict + ": " + w.verdicts[doc.Verdict], Label: label(w, draft, origin),
	}
	p.Sections = sectionsOf(doc, draft, w)
	if !doc.Empty {
		for _, chart := range doc.Charts {
			p.Charts = append(p.Charts, draw(chart, doc.Timezone, w))
		}
	}
	return p
}

// sectionsOf adds to a document's sections those that every report has, unless the
// document has them itself: the main figures before the second, with the charts,
// and the raw figures at the end.
func sectionsOf(doc Document, draft *Draft, w phrases) []pageSection {
	has := func(heading string) bool {
		return slices.ContainsFunc(doc.Sections, func(s Section) bool { return s.Heading == heading })
	}
	var sections []pageSection
	for i, section := range doc.Sections {
		if i == 1 && !has(w.keyFigures) {
			sections = append(sections, keyFigures(doc, w))
		}
		body := bodyOf(section, draft, w)
		body.Charts = section.Heading == w.keyFigures
		if i == 0 && doc.Empty && body.Prose == w.nothing {
			body.Prose = w.empty
		}
		sections = append(sections, body)
	}
	if !has(w.verification) {
		sections = append(sections, pageSection{Heading: w.verification, Tables: []Table{anchorTable(doc, w)}})
	}
	return sections
}

func label(w phrases, draft *Draft, origin Origin) string {
	text := w.byTemplate
	switch {
	case draft != nil && origin.StandIn:
		text = fmt.Sprintf(w.byStandIn, origin.Model)
	case draft != nil:
		text = fmt.Sprintf(w.byModel, origin.Model)
	}
	text += " " + w.basis
	if origin.Testbed {
		text += " " + w.testbed
	}
	return text
}

func keyFigures(doc Document, w phrases) pageSection {
	table := doc.KeyFigures
	if len(table.Rows) == 0 {
		table = anchorTable(doc, w)
		table.Rows = append([][]string{{w.verdict, w.verdicts[doc.Verdict]}}, table.Rows...)
	}
	return pageSection{Heading: w.keyFigures, Tables: []Table{table}, Charts: true}
}

// anchorTable has the raw figures that the report is checked against.
func anchorTable(doc Document, w phrases) Table {
	table := Table{Columns: []string{w.figure, w.value}, Rows: [][]string{{w.target, doc.Target}, {w.date, doc.Date}}}
	for _, anchor := range doc.Anchors {
		table.Rows = append(table.Rows, []string{anchor.Name, anchor.Text})
	}
	return table
}

func bodyOf(section Section, draft *Draft, w phrases) pageSection {
	body := pageSection{Heading: section.Heading, Tables: section.Tables}
	if written := draft.section(section.ID); written != nil {
		var sentences []string
		for _, s := range written.Sentences {
			sentences = append(sentences, s.Text)
		}
		body.Prose = strings.Join(sentences, " ")
	} else {
		for _, finding := range section.Findings {
			body.Points = append(body.Points, finding.Text)
		}
	}
	if len(body.Tables) == 0 && body.Prose == "" && len(body.Points) == 0 {
		body.Prose = w.nothing
	}
	return body
}

// cleaned is the document in texts of one line without credentials. Names of
// machines end up in findings, and anybody may have named them.
func (d Document) cleaned() Document {
	d.Title, d.KeyFigures = clean(d.Title), d.KeyFigures.cleaned()
	sections := make([]Section, len(d.Sections))
	for i, s := range d.Sections {
		tables, findings := make([]Table, len(s.Tables)), make([]Finding, len(s.Findings))
		for j := range s.Tables {
			tables[j] = s.Tables[j].cleaned()
		}
		for j, f := range s.Findings {
			findings[j] = Finding{ID: f.ID, Text: clean(f.Text)}
		}
		s.Heading, s.Tables, s.Findings = clean(s.Heading), tables, findings
		sections[i] = s
	}
	d.Sections = sections
	anchors := make([]Anchor, len(d.Anchors))
	for i, a := range d.Anchors {
		anchors[i] = Anchor{Name: clean(a.Name), Text: clean(a.Text)}
	}
	d.Anchors = anchors
	charts := slices.Clone(d.Charts)
	for i := range charts {
		charts[i].Title, charts[i].Lines = clean(charts[i].Title), slices.Clone(charts[i].Lines)
		for j := range charts[i].Lines {
			charts[i].Lines[j].Name = clean(charts[i].Lines[j].Name)
		}
	}
	d.Charts = charts
	return d
}

func (t Table) cleaned() Table {
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = make([]string, len(row))
		for j, cell := range row {
			rows[i][j] = clean(cell)
		}
	}
	columns := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		columns[i] = clean(column)
	}
	t.Columns, t.Rows = columns, rows
	return t
}

const (
	// maxSummaryLines and maxSummaryRunes bound what a message says of a day.
	maxSummaryLines = 4
	maxSummaryRunes = 240
)

// Summary has the first findings of a document, a line each, for messages about
// the day. They are code's own words, without credentials.
func (d Document) Summary() []string {
	var lines []string
	for _, section := range d.cleaned().Sections {
		for _, finding := range section.Findings {
			if len(lines) == maxSummaryLines {
				return lines
			}
			line := []rune(finding.Text)
			if len(line) > maxSummaryRunes {
				line = append(line[:maxSummaryRunes-1], '…')
			}
			lines = append(lines, string(line))
		}
	}
	return lines
}
