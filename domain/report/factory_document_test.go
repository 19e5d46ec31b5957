package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var updateFactoryGolden = flag.Bool("update-factory", false, "write the golden documents of factories anew")

// eventfulDay is a day with something of everything, an object a minute.
func eventfulDay(t *testing.T, factoryID string) FactoryDaily {
	day := parseDay(t, "2026-01-01", "Asia/Seoul")
	var samples []sample
	index := 0
	for at := day.Window().Start; at.Before(day.Window().End); at = at.Add(time.Minute) {
		minute := index
		index++
		state, score, pipeline, c := calm(), "99", "normal", cluster{restarts: 2}
		var causes []string
		switch {
		case minute >= 910 && minute < 925: // 15:10
			state.temperature, state.fall, score, causes = "42.8", "0.91", "51.2", []string{"temperature", "fall_score"}
		case minute == 1000: // 16:40
			score, pipeline, causes = "0", "critical", []string{"nodes", "temperature"}
		case minute >= 478 && minute < 483: // about 08:00
			c.down, c.bad = []string{"worker1"}, []string{"ai-fall"}
		case minute >= 300 && minute < 307: // 05:00, silent
			continue
		case minute == 660: // 11:00
			state.sound, state.humidity = "bang", "72.5"
		}
		if minute >= 1200 {
			c.restarts = 3
		}
		samples = append(samples, stateSample(factoryID, at, state), riskSample(factoryID, at, score, pipeline, causes...), infraSample(factoryID, at, c))
	}
	samples = append(samples, sample{RiskScoreDataset, `{"broken`}, samples[0], snapshotSample(factoryID, day.Window().End.Add(-time.Second), "99"))
	return mergeByHour(factoryID, day, slow(), samples)
}

// asText is a document as a person would read it in review.
func asText(doc Document) string {
	var text strings.Builder
	line := func(parts ...string) { text.WriteString(strings.Join(parts, "") + "\n") }
	line("# ", doc.Title)
	line("verdict ", string(doc.Verdict), ", ", doc.Timezone)
	for _, section := range doc.Sections {
		line("\n## ", section.Heading, " [", section.ID, "]")
		for _, table := range section.Tables {
			line("| ", strings.Join(table.Columns, " | "), " |")
			for _, row := range table.Rows {
				line("| ", strings.Join(row, " | "), " |")
			}
		}
		for _, finding := range section.Findings {
			line("- ", finding.ID, ": ", finding.Text)
		}
	}
	line("\nanchors")
	for _, anchor := range doc.Anchors {
		line("- ", anchor.Name, " = ", anchor.Text)
	}
	for _, chart := range doc.Charts {
		summary, err := json.Marshal(map[string]any{"lines": len(chart.Lines), "limits": chart.Limits, "gaps": chart.Gaps, "start": chart.Start, "end": chart.End, "unit": chart.Unit})
		if err != nil {
			panic(err)
		}
		line("chart ", chart.ID, " ", chart.Title, " ", string(summary))
	}
	return text.String()
}

func requireFactoryGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "factory", name)
	if *updateFactoryGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestTheDocumentsOfADay(t *testing.T) {
	daily := eventfulDay(t, factoryA)
	requireFactoryGolden(t, "day_ko.txt", asText(daily.Document(Korean)))
	requireFactoryGolden(t, "day_en.txt", asText(daily.Document(English)))
	context, err := json.MarshalIndent(daily.Context(slow()), "", "  ")
	require.NoError(t, err)
	requireFactoryGolden(t, "day_context.json", string(context)+"\n")
	testbed := eventfulDay(t, "factory-b")
	requireFactoryGolden(t, "testbed_ko.txt", asText(testbed.Document(Korean)))
	requireFactoryGolden(t, "testbed_en.txt", asText(testbed.Document(English)))
	empty := MergeFactoryDay(factoryA, parseDay(t, "2026-01-01", "Asia/Seoul"), DefaultSettings(), nil)
	requireFactoryGolden(t, "empty_ko.txt", asText(empty.Document(Korean)))
	requireFactoryGolden(t, "empty_en.txt", asText(empty.Document(English)))
}

func TestTheSummaryOfAnHour(t *testing.T) {
	day, hour, start := newYear(t)
	var samples []sample
	for i := range 20 {
		at := start.Add(10*time.Minute + time.Duration(i)*3*time.Second)
		hot := calm()
		hot.temperature, hot.fall = "42.8", "0.91"
		samples = append(samples, stateSample(factoryA, at, hot), riskSample(factoryA, at, "51.2", "warning", "temperature", "fall_score"))
	}
	samples = append(samples, infraSample(factoryA, start.Add(20*time.Second), cluster{down: []string{"worker1"}}), infraSample(factoryA, start.Add(40*time.Second), cluster{restarts: 1}))
	body, err := json.MarshalIndent(summarise(factoryA, day, hour, DefaultSettings(), samples), "", "  ")
	require.NoError(t, err)
	requireFactoryGolden(t, "hour.json", string(body)+"\n")
}

func TestADocumentHasTheSectionsInOrder(t *testing.T) {
	daily := eventfulDay(t, factoryA)
	for lang, want := range map[Language][]string{
		Korean:  {"요약", "핵심 지표 표", "데이터 수집 상태", "Risk Score", "센서 및 AI 이벤트", "인프라 상태", "주요 이벤트", "확인 필요 항목", "데이터 한계", "검증 기준 수치"},
		English: {"Summary", "Key figures", "Data collection", "Risk score", "Sensors and AI events", "Infrastructure", "Main events", "Recommended checks", "Limits of the data", "Figures for verification"},
	} {
		doc := daily.Document(lang)
		var got []string
		for _, section := range doc.Sections {
			got = append(got, section.Heading)
		}
		require.Equal(t, want, got)
		require.Equal(t, lang, doc.Language)
	}
	require.Equal(t, "factory-a 일일 운영 리포트 - 2026-01-01", daily.Document("").Title, "Korean unless English is asked for")
}

func TestADocumentStatesItsAnchorsAndHasUniqueIDs(t *testing.T) {
	for _, daily := range []FactoryDaily{eventfulDay(t, factoryA), MergeFactoryDay(factoryA, parseDay(t, "2026-01-01", "Asia/Seoul"), DefaultSettings(), nil)} {
		for _, lang := range []Language{Korean, English} {
			doc := daily.Document(lang)
			tables, ids := "", map[string]bool{}
			for _, section := range doc.Sections {
				for _, table := range section.Tables {
					for _, row := range table.Rows {
						require.Len(t, row, len(table.Columns), section.ID)
						tables += " " + strings.Join(row, " ")
					}
				}
				for _, finding := range section.Findings {
					require.False(t, ids[finding.ID], finding.ID)
					require.NotContains(t, finding.Text, "%!")
					ids[finding.ID] = true
				}
			}
			for _, anchor := range doc.Anchors {
				require.Contains(t, tables, " "+anchor.Text, anchor.Name)
			}
		}
	}
}

func TestATestbedIsWordedAsOne(t *testing.T) {
	korean := asText(eventfulDay(t, "factory-b").Document(Korean))
	require.Contains(t, korean, "테스트베드")
	require.Contains(t, korean, "테스트 이벤트")
	require.NotContains(t, asText(eventfulDay(t, factoryA).Document(Korean)), "테스트")
	require.Contains(t, asText(eventfulDay(t, "factory-b").Document(English)), "test event")
}

func TestEventsThatTheTableHasNoRoomForAreCounted(t *testing.T) {
	daily := troubledDay(t)
	doc := daily.Document(English)
	for _, section := range doc.Sections {
		if section.ID == sectionEvents {
			require.Len(t, section.Tables[0].Rows, 10)
			require.Len(t, section.Findings, 6)
			require.Equal(t, fmt.Sprintf("Milder events that the table leaves out: %d.", daily.EventCount-10), section.Findings[5].Text)
		}
	}
}
