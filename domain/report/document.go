// Package report has the rules of the daily report: the local day and its hours,
// the aggregates of an hour, how they merge into a day, what a model is asked to
// word, what its words are checked against, and how a report is rendered.
// Source: factory.md, section 7.
package report

import (
	"time"

	"millrace/domain/exact"
)

// Language is the language of a report's words: ko or en.
type Language string

// The languages.
const (
	Korean  Language = "ko"
	English Language = "en"
)

// Verdict is the judgement of a day.
type Verdict string

// The verdicts, best first.
const (
	Normal  Verdict = "normal"
	Warning Verdict = "warning"
	Danger  Verdict = "danger"
)

// Document is a day of one target as code computed it, ready to be worded and
// rendered: everything in a report but the model's sentences.
type Document struct {
	// Target is a factory id or cloud-infra; Date the local day, yyyy-mm-dd.
	Target   string
	Date     string
	Timezone string
	Language Language
	Title    string
	Verdict  Verdict
	// Empty tells that nothing was collected all day.
	Empty    bool
	Sections []Section
	// Anchors are strings that the finished text must have word for word, such as
	// the day's lowest score.
	Anchors []Anchor
	Charts  []Chart
	// KeyFigures is the table of the day's main figures, shown before the second
	// section; where it has no rows, the anchors stand in for it.
	KeyFigures Table
}

// Section is a part of a report under its own heading.
type Section struct {
	// ID is a slug that the model answers under, such as summary or risk.
	ID      string
	Heading string
	Tables  []Table
	// Findings are what code found to say: the template report says them as they
	// stand, a model words them.
	Findings []Finding
}

// Finding is one statement of fact, in the document's language.
type Finding struct {
	// ID is unique in the document.
	ID   string
	Text string
}

// Table is inserted by code after its section's heading.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Anchor is a fact that the finished text must state.
type Anchor struct {
	// Name says which fact it is, such as risk.min_score.
	Name string
	Text string
}

// Chart is drawn into the HTML report.
type Chart struct {
	ID, Title, Unit string
	// Start and End bound the time axis, half open.
	Start, End time.Time
	Lines      []Line
	// Limits are horizontal lines, such as the danger bound.
	Limits []Limit
	// Gaps are spans without data.
	Gaps []Span
}

// Line is one curve of a chart; missing times are simply absent.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value exact.Decimal
}

// Limit is a named bound.
type Limit struct {
	Name  string
	Value exact.Decimal
}

// Span is a half-open span of time.
type Span struct {
	Start, End time.Time
}
