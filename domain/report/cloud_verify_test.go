package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A draft that repeats every finding must pass every check, else no model could
// pass; so must the report by code alone.
func TestWhatTheFindingsSayPassesTheChecks(t *testing.T) {
	foreign := DefaultSettings().FactoryIDs
	for _, d := range []CloudDaily{drilledCloudDay(t), MergeCloudDay(seoulDay(t, "2026-01-01"), DefaultSettings(), nil)} {
		context, err := json.Marshal(d.Context(DefaultSettings()))
		require.NoError(t, err)
		for _, lang := range []Language{Korean, English} {
			doc := d.Document(lang)
			draft := Draft{}
			for _, section := range doc.Sections {
				written := DraftSection{ID: section.ID}
				for _, finding := range section.Findings {
					written.Sentences = append(written.Sentences, Sentence{Text: finding.Text, Findings: []string{finding.ID}})
				}
				draft.Sections = append(draft.Sections, written)
			}
			require.Empty(t, Verify(doc, context, draft, foreign), lang)
			origin := Origin{Model: "model"}
			for _, words := range []*Draft{nil, &draft} {
				report := Compose(doc, words, origin)
				require.Empty(t, VerifyReport(doc, context, report.Markdown, origin, words != nil, foreign), lang)
				require.Contains(t, string(report.Markdown), "# "+doc.Title)
				require.NotContains(t, string(report.HTML), "| all |")
			}
		}
	}
}
