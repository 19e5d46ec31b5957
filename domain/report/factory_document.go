package report

import "fmt"

// maxEventRows bounds the events that a report shows.
const maxEventRows = 10

// Document is the day ready to be worded and rendered in a language. It follows
// from the stored day alone. An empty day has a short document.
func (d FactoryDaily) Document(lang Language) Document {
	if lang != English {
		lang = Korean
	}
	doc := Document{
		Target: d.FactoryID, Date: d.ReportDate, Timezone: d.Timezone, Language: lang,
		Title:   say("%[1]s 일일 운영 리포트 - %[2]s", "%[1]s daily operations report - %[2]s", d.FactoryID, d.ReportDate).in(lang),
		Verdict: d.OverallStatus, Empty: d.Status == StatusInsufficient,
		Anchors: d.anchors(),
	}
	w := documentWriter{daily: &d, lang: lang}
	if doc.Empty {
		doc.Sections = w.emptySections()
		return doc
	}
	doc.Sections = w.sections()
	doc.Charts = d.charts(lang)
	return doc
}

// documentWriter makes the sections of a document.
type documentWriter struct {
	daily *FactoryDaily
	lang  Language
}

func (w documentWriter) sections() []Section {
	return []Section{
		w.section(sectionSummary, w.summaryFindings()),
		w.section(sectionKeyFigures, nil, w.keyFigures()),
		w.section(sectionCollection, w.collectionFindings(), w.collectionTable(), w.gapTable()),
		w.section(sectionRisk, w.riskFindings(), w.riskTable()),
		w.section(sectionSensors, w.sensorFindings(), w.sensorTable(), w.aiTable()),
		w.section(sectionInfra, w.infraFindings(), w.infraTable()),
		w.section(sectionEvents, w.eventFindings(), w.eventTable()),
		w.section(sectionChecks, w.checkFindings()),
		w.section(sectionLimitations, w.limitationFindings()),
		w.section(sectionVerification, nil, w.verificationTable()),
	}
}

func (w documentWriter) emptySections() []Section {
	nothing := say("%[1]s에는 수집된 데이터가 없어 상태를 판단할 수 없습니다.", "No data were collected on %[1]s: nothing can be said about the state.", w.daily.ReportDate)
	return []Section{
		w.section(sectionSummary, []phrase{nothing}),
		w.section(sectionCollection, w.collectionFindings(), w.collectionTable(), w.gapTable()),
		w.section(sectionChecks, w.checkFindings()),
		w.section(sectionLimitations, w.limitationFindings()),
		w.section(sectionVerification, nil, w.verificationTable()),
	}
}

// section is a section without the tables that have no rows.
func (w documentWriter) section(id string, findings []phrase, tables ...Table) Section {
	section := Section{ID: id, Heading: headings[id].in(w.lang)}
	for i, finding := range findings {
		section.Findings = append(section.Findings, Finding{ID: fmt.Sprintf("%s_%d", id, i+1), Text: finding.in(w.lang)})
	}
	for _, table := range tables {
		if len(table.Rows) > 0 {
			section.Tables = append(section.Tables, table)
		}
	}
	return section
}

// anchors are the facts that the text must have word for word (factory.md, 7.6).
func (d FactoryDaily) anchors() []Anchor {
	q := d.DataQuality
	anchors := []Anchor{{Name: "factory_id", Text: d.FactoryID}, {Name: "report_date", Text: d.ReportDate}}
	if d.Risk.MinScore != nil {
		anchors = append(anchors,
			Anchor{Name: "risk.min_score", Text: figure(d.Risk.MinScore)}, Anchor{Name: "risk.max_score", Text: figure(d.Risk.MaxScore)})
	}
	for _, dataset := range []struct {
		name             string
		actual, expected int64
		rate             string
	}{
		{FactoryStateDataset, q.FactoryStateActualCount, q.FactoryStateExpectedCount, q.FactoryStateCollectionRate.String()},
		{InfraStateDataset, q.InfraStateActualCount, q.InfraStateExpectedCount, q.InfraStateCollectionRate.String()},
	} {
		anchors = append(anchors,
			Anchor{Name: "data_quality." + dataset.name + "_actual_count", Text: fmt.Sprint(dataset.actual)},
			Anchor{Name: "data_quality." + dataset.name + "_expected_count", Text: fmt.Sprint(dataset.expected)},
			Anchor{Name: "data_quality." + dataset.name + "_collection_rate", Text: dataset.rate})
	}
	return anchors
}
