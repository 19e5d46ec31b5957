package report_test

import (
	"encoding/json"
	"iter"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/report"
	"millrace/domain/report/reporttest"
)

// target is a day of one target as the merge leaves it.
type target struct {
	document func(report.Language) report.Document
	context  []byte
	testbed  bool
}

// factoryDay computes a day of a factory from its objects; without objects, an
// empty one.
func factoryDay(t *testing.T, id string, objects iter.Seq[reporttest.Object]) target {
	t.Helper()
	day, settings := seoul(t), report.DefaultSettings()
	var hours []*report.FactoryHour
	for _, hour := range day.Hours() {
		hours = append(hours, report.NewFactoryHour(id, day, hour, settings))
	}
	for object := range objects {
		// An object without a time of this day counts in no hour.
		if at, err := time.Parse(time.RFC3339Nano, sourceTime.FindString(string(object.Body))); err == nil {
			if n := int(at.Sub(day.Window().Start) / time.Hour); n >= 0 && n < len(hours) {
				hours[n].Add(object.Dataset, object.Body)
			}
		}
	}
	var summaries []report.FactoryHourSummary
	for _, hour := range hours {
		summaries = append(summaries, hour.Summary())
	}
	daily := report.MergeFactoryDay(id, day, settings, summaries)
	return target{document: daily.Document, context: marshal(t, daily.Context(settings)), testbed: settings.Profile(id).Testbed()}
}

var sourceTime = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)

func cloudDay(t *testing.T, objects iter.Seq[reporttest.Object]) target {
	t.Helper()
	day, settings := seoul(t), report.DefaultSettings()
	var hours []report.CloudHourSummary
	for _, hour := range day.Hours() {
		one := report.NewCloudHour(day, hour, settings)
		for object := range objects {
			one.Add(object.Dataset, object.Body)
		}
		hours = append(hours, one.Summary())
	}
	daily := report.MergeCloudDay(day, settings, hours)
	return target{document: daily.Document, context: marshal(t, daily.Context(settings))}
}

func seoul(t *testing.T) report.Day {
	t.Helper()
	day, err := report.ParseDay("2026-01-01", "Asia/Seoul")
	require.NoError(t, err)
	return day
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	require.NoError(t, err)
	return body
}

func none(func(reporttest.Object) bool) {}

// TestRealDaysPassTheirChecks computes days and has their findings said as they
// stand, by a model and by the template, in both languages.
func TestRealDaysPassTheirChecks(t *testing.T) {
	window := seoul(t).Window()
	part := reporttest.FactoryDay{FactoryID: "factory-b", Start: window.Start, End: window.End}
	calm := reporttest.FactoryDay{FactoryID: "factory-a", Start: window.Start, End: window.Start.Add(20 * time.Minute), Calm: true}
	cloud := reporttest.CloudDay{Start: window.Start, End: window.End}
	days := map[string]target{
		"factory":       factoryDay(t, "factory-b", part.Objects()),
		"calm factory":  factoryDay(t, "factory-a", calm.Objects()),
		"empty factory": factoryDay(t, "factory-c", none),
		"cloud":         cloudDay(t, cloud.Objects()),
		"empty cloud":   cloudDay(t, none),
	}
	foreign := report.DefaultSettings().FactoryIDs
	for name, day := range days {
		for _, lang := range []report.Language{report.Korean, report.English} {
			t.Run(name+" "+string(lang), func(t *testing.T) {
				doc := day.document(lang)
				draft := said(doc)
				require.Empty(t, report.Verify(doc, day.context, draft, foreign))
				byModel := report.Origin{Model: "stand-in-v1", StandIn: true, Testbed: day.testbed}
				finished := report.Compose(doc, &draft, byModel)
				require.Empty(t, report.VerifyReport(doc, day.context, finished.Markdown, byModel, true, foreign))
				template := report.Origin{Testbed: day.testbed}
				finished = report.Compose(doc, nil, template)
				require.Empty(t, report.VerifyReport(doc, day.context, finished.Markdown, template, false, foreign))
				prompt := report.NewPrompt(doc, day.context, nil)
				t.Logf("prompt %d bytes, findings %d, context %d bytes", len(prompt.System)+len(prompt.User)+len(prompt.ToolSchema), len(draft.Sections), len(day.context))
			})
		}
	}
}

// said is the draft that says every finding as it stands.
func said(doc report.Document) report.Draft {
	var draft report.Draft
	for _, section := range doc.Sections {
		written := report.DraftSection{ID: section.ID}
		for _, finding := range section.Findings {
			written.Sentences = append(written.Sentences, report.Sentence{Text: finding.Text, Findings: []string{finding.ID}})
		}
		if len(written.Sentences) > 0 {
			draft.Sections = append(draft.Sections, written)
		}
	}
	return draft
}
