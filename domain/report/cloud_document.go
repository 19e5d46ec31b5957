package report

import (
	"fmt"
	"strconv"
)

// Document is the day ready to be worded and rendered.
func (d CloudDaily) Document(lang Language) Document {
	if lang != English {
		lang = Korean
	}
	w := cloudWriter{day: d, lang: lang}
	doc := Document{
		Target: d.Target, Date: d.ReportDate, Timezone: d.Timezone, Language: lang,
		Title: w.say("title", d.ReportDate), Verdict: d.OverallStatus, Empty: d.Status == StatusInsufficient,
		KeyFigures: w.keyFigures(), Anchors: w.anchors(),
	}
	w.summary()
	w.collection()
	w.backend()
	w.pipeline()
	w.kubernetes()
	w.freshness()
	w.events()
	w.checks()
	w.limits()
	doc.Sections = w.sections
	if !doc.Empty {
		doc.Charts = w.charts()
	}
	return doc
}

// cloudWriter writes the sections of a document in the order of the report.
type cloudWriter struct {
	day      CloudDaily
	lang     Language
	sections []Section
}

func (w *cloudWriter) say(id string, values ...any) string { return cloudPhrase(w.lang, id, values...) }

func (w *cloudWriter) begin(id string) {
	w.sections = append(w.sections, Section{ID: id, Heading: w.say("heading." + id)})
}

func (w *cloudWriter) section() *Section { return &w.sections[len(w.sections)-1] }

// find states a finding whose id is that of its phrase.
func (w *cloudWriter) find(id string, values ...any) { w.findAs(id, id, values...) }

func (w *cloudWriter) findAs(id, phrase string, values ...any) {
	s := w.section()
	s.Findings = append(s.Findings, Finding{ID: id, Text: w.say(phrase, values...)})
}

// table adds a table with the columns of the given ids; one without rows is left
// out.
func (w *cloudWriter) table(rows [][]string, columns ...string) {
	if len(rows) == 0 {
		return
	}
	s := w.section()
	s.Tables = append(s.Tables, Table{Columns: w.columns(columns...), Rows: rows})
}

func (w *cloudWriter) columns(ids ...string) []string {
	columns := make([]string, len(ids))
	for i, id := range ids {
		columns[i] = w.say("column." + id)
	}
	return columns
}

func (w *cloudWriter) row(id, value string) []string { return []string{w.say("row." + id), value} }

// status states how a section's samples were.
func (w *cloudWriter) status(id string, section CloudSection) {
	text := w.say("subject." + id)
	switch watched := section.Samples.watched(); {
	case watched > 0:
		text += w.say("section.status", watched, section.Samples.abnormal())
	case section.Samples.NotConfigured > 0:
		text += w.say("section.not_configured")
	default:
		text += w.say("section.unseen")
	}
	s := w.section()
	s.Findings = append(s.Findings, Finding{ID: id + ".status", Text: text})
}

// verdict is the day's verdict in both spellings, such as 위험(danger).
func (w *cloudWriter) verdict() string {
	label := w.say("verdict." + string(w.day.OverallStatus))
	if w.lang == English {
		return label
	}
	return label + "(" + string(w.day.OverallStatus) + ")"
}

// ratio is such as "ECS 2/2 (least 1)".
func (w *cloudWriter) ratio(name string, have, of, least *int64) string {
	if have == nil && of == nil {
		return name + " " + w.say("value.unmeasured")
	}
	return w.say("value.ratio", name, cloudCount(have), cloudCount(of), cloudCount(least))
}

func cloudCount(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func (w *cloudWriter) ecsText() string {
	if e := w.day.Figures.Backend.ECS; e != nil {
		return w.ratio("ECS", e.Running, e.Desired, e.MinRunning)
	}
	return w.ratio("ECS", nil, nil, nil)
}

func (w *cloudWriter) nodesText() string {
	if n := w.day.Figures.EKS.Nodes; n != nil {
		return w.ratio("Node", n.Ready, n.Total, n.MinReady)
	}
	return w.ratio("Node", nil, nil, nil)
}

func (w *cloudWriter) argocdText() string {
	a := w.day.Figures.EKS.ArgoCD
	if a == nil || (a.Synced == nil && a.Total == nil) {
		return "ArgoCD " + w.say("value.unmeasured")
	}
	return fmt.Sprintf("ArgoCD %s/%s Synced, %s/%s Healthy", cloudCount(a.Synced), cloudCount(a.Total), cloudCount(a.Healthy), cloudCount(a.Total))
}

func (w *cloudWriter) fastText() string {
	return fmt.Sprintf("%d/%d", w.day.DataQuality.FastActual, w.day.DataQuality.FastExpected)
}

func (w *cloudWriter) slowText() string {
	return fmt.Sprintf("%d/%d", w.day.DataQuality.SlowActual, w.day.DataQuality.SlowExpected)
}

// keyFigures are the day at a glance; every anchor stands in it.
func (w *cloudWriter) keyFigures() Table {
	return Table{Columns: w.columns("item", "value"), Rows: [][]string{
		w.row("target", w.day.Target), w.row("date", w.day.ReportDate), w.row("overall", w.verdict()),
		w.row("collection", w.say("collected."+string(w.day.CollectionStatus))),
		w.row("fast", w.fastText()), w.row("slow", w.slowText()),
		w.row("ecs", w.ecsText()), w.row("nodes", w.nodesText()), w.row("argocd", w.argocdText()),
		w.row("events", fmt.Sprintf("%d/%d", w.day.EventCount, w.day.DangerEventCount)),
	}}
}

func (w *cloudWriter) anchors() []Anchor {
	return []Anchor{
		{Name: "target", Text: w.day.Target},
		{Name: "report_date", Text: w.day.ReportDate},
		{Name: "overall_status", Text: w.verdict()},
		{Name: "fast_count", Text: w.fastText()},
		{Name: "slow_count", Text: w.slowText()},
		{Name: "ecs", Text: w.ecsText()},
		{Name: "nodes", Text: w.nodesText()},
		{Name: "argocd", Text: w.argocdText()},
	}
}

func (w *cloudWriter) summary() {
	w.begin("summary")
	if w.day.Status == StatusInsufficient {
		w.find("summary.empty")
		return
	}
	w.find("summary.overall", w.verdict())
	w.find("summary.events", w.day.EventCount, w.day.DangerEventCount)
	w.find("summary.collection", w.say("collected."+string(w.day.CollectionStatus)))
}

func (w *cloudWriter) collection() {
	w.begin("collection")
	q := w.day.DataQuality
	w.table([][]string{
		{CloudFast, w.fastText(), q.FastRate.String()}, {CloudSlow, w.slowText(), q.SlowRate.String()},
	}, "dataset", "collected", "rate")
	var gaps [][]string
	for _, gap := range q.GapWindows[:min(len(q.GapWindows), maxCloudRows)] {
		gaps = append(gaps, []string{gap.Dataset, gap.TimeRange, strconv.FormatInt(gap.DurationSeconds, 10)})
	}
	w.table(gaps, "dataset", "gap", "seconds")
	w.table(cloudRows(w.day.Figures.Errors, cloudTally.rank, func(n cloudTally) []string { return []string{strconv.FormatInt(int64(n), 10)} }), "source", "count")
	w.find("collection.fast", q.FastExpected, q.FastActual, q.FastRate)
	w.find("collection.slow", q.SlowExpected, q.SlowActual, q.SlowRate)
	if q.GapCount > 0 {
		w.find("collection.gaps", q.GapCount, q.MaxGapSeconds)
	} else {
		w.find("collection.whole")
	}
	if q.InvalidRecordCount+q.DuplicateRecordCount > 0 {
		w.find("collection.refused", q.InvalidRecordCount, q.DuplicateRecordCount)
	}
	if q.MissingHourCount > 0 {
		w.find("collection.missing", q.MissingHourCount)
	}
	if errors := w.day.tallies().Errors; errors > 0 {
		w.find("collection.errors", errors)
	}
}
