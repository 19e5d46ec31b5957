package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

var updateReports = flag.Bool("update-reports", false, "write the golden reports anew")

const modelName = "anthropic.claude-3-sonnet-20240229-v1:0"

func emptyDocument() Document {
	return Document{
		Target: "factory-c", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: Korean, Empty: true, Verdict: Normal,
		Title:    "factory-c 일일 운영 리포트 - 2026-01-01",
		Sections: []Section{{ID: "summary", Heading: "요약"}, {ID: "limits", Heading: "데이터 한계", Findings: []Finding{{"limit", "수집된 데이터가 없어 판단할 수 없습니다."}}}},
		Charts:   []Chart{{ID: "score", Title: "Risk Score"}},
	}
}

func TestReportsLookAsTheyDid(t *testing.T) {
	korean := sampleDocument()
	english, _ := sampleEnglish()
	koreanDraft, englishDraft := verbatim(korean), verbatim(english)
	cases := map[string]Report{
		"ko_model":    Compose(korean, &koreanDraft, Origin{Model: modelName}),
		"ko_stand_in": Compose(korean, &koreanDraft, Origin{Model: "stand-in-v1", StandIn: true}),
		"ko_template": Compose(korean, nil, Origin{}),
		"ko_empty":    Compose(emptyDocument(), nil, Origin{Testbed: true}),
		"en_model":    Compose(english, &englishDraft, Origin{Model: modelName, Testbed: true}),
		"en_template": Compose(english, nil, Origin{Testbed: true}),
	}
	for name, got := range cases {
		t.Run(name, func(t *testing.T) {
			golden(t, "report_"+name+".md", got.Markdown)
			golden(t, "report_"+name+".html", got.HTML)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateReports {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run the test with -update-reports after a change that is meant")
}

func TestComposedReportsPassTheirOwnCheck(t *testing.T) {
	korean := sampleDocument()
	english, context := sampleEnglish()
	for name, c := range map[string]struct {
		doc     Document
		context string
		origin  Origin
		model   bool
	}{
		"model":    {korean, sampleContext, Origin{Model: modelName}, true},
		"stand-in": {korean, sampleContext, Origin{Model: "stand-in-v1", StandIn: true}, true},
		"template": {korean, sampleContext, Origin{}, false},
		"empty":    {emptyDocument(), `{}`, Origin{Testbed: true}, false},
		"english":  {english, context, Origin{Model: modelName, Testbed: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var draft *Draft
			if c.model {
				words := verbatim(c.doc)
				draft = &words
			}
			report := Compose(c.doc, draft, c.origin)
			require.Empty(t, VerifyReport(c.doc, []byte(c.context), report.Markdown, c.origin, c.model, otherFactories))
		})
	}
}

func TestFinishedReportsThatWereChangedAreRefused(t *testing.T) {
	doc := sampleDocument()
	draft := verbatim(doc)
	origin := Origin{Model: modelName}
	whole := string(Compose(doc, &draft, origin).Markdown)
	cases := map[string]struct{ old, new, rule string }{
		"a number":          {"28,760 |", "28,670 |", "unknown_number"},
		"the label":         {"LLM 초안", "최종본", "label"},
		"another label":     {"> LLM 초안 · 운영자 검토 필요.", "> 확정.", "label"},
		"a heading":         {"## Risk Score", "## Risk", "missing_section"},
		"one more heading":  {"## 인프라 상태", "## 인프라 상태\n\n## 결론", "headings"},
		"an anchor":         {"98.4", "98.5", "missing_figure"},
		"the date":          {"2026-01-01", "2026-01-02", "missing_figure"},
		"a foreign factory": {"ai-inference-7d9f", "factory-b", "foreign_factory"},
		"a secret":          {"ai-inference-7d9f", "AKIAIOSFODNN7EXAMPLE", "secret"},
		"a link":            {"ai-inference-7d9f", "[x](https://evil.example)", "markup"},
		"HTML":              {"ai-inference-7d9f", "<script>", "markup"},
		"a time":            {"15:10\\~15:25", "15:10\\~15:26", "unknown_time"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, whole, c.old)
			changed := strings.ReplaceAll(whole, c.old, c.new)
			require.Contains(t, rules(VerifyReport(doc, []byte(sampleContext), []byte(changed), origin, true, otherFactories)), c.rule)
		})
	}
	require.Contains(t, rules(VerifyReport(doc, []byte(sampleContext), []byte(whole), Origin{}, false, otherFactories)), "label", "a draft may not pass for the template")
}

func TestNoNameFromAMachineBecomesMarkup(t *testing.T) {
	attack := "<script>alert(1)</script> [x](javascript:alert(1)) ![i](http://evil.example/i.png) | **b** `c` # h ~~s~~ www.evil.example a@evil.example\n## 가짜 제목\u202e\x00 __u__ factory-b"
	doc := sampleDocument()
	doc.Sections[4].Findings[0].Text = attack
	doc.Sections[1].Tables[0].Rows[0][0] = attack
	doc.Sections[1].Tables[0].Columns[0] = attack
	doc.Sections[2].Findings = []Finding{{"one", "- 목록"}, {"two", "1. 목록"}, {"three", "+ 목록"}, {"four", "=== 밑줄"}}
	doc.Charts[0].Title, doc.Charts[0].Lines[0].Name = attack, attack
	report := Compose(doc, nil, Origin{})
	require.Empty(t, VerifyReport(doc, []byte(sampleContext), report.Markdown, Origin{}, false, otherFactories))
	require.Equal(t, 10, strings.Count("\n"+string(report.Markdown), "\n## "))
	require.NotRegexp(t, "(^|[^\\\\])([<>*`~\\[\\]#]|://|@)", strings.NewReplacer("\n# ", "", "\n## ", "", "\n> ", "").Replace("\n"+string(report.Markdown)))
	require.NotContains(t, string(report.Markdown), "www.e")
	for _, escaped := range []string{`\- 목록`, `1\. 목록`, `\+ 목록`, `\=== 밑줄`} {
		require.Contains(t, string(report.Markdown), "- "+escaped)
	}
	for _, live := range []string{"<script", "<img", "href=", "src=", "<a "} {
		require.NotContains(t, string(report.HTML), live)
	}
	lines := strings.Split(string(report.Markdown), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "| --- ") {
			columns := strings.Count(line, "|")
			for _, row := range lines[i:] {
				if row == "" {
					break
				}
				require.Equal(t, columns, strings.Count(strings.ReplaceAll(row, `\|`, ""), "|"), row)
			}
		}
	}
}

func TestSecretsOfMachinesAreNotPublished(t *testing.T) {
	doc := sampleDocument()
	doc.Sections[4].Findings[0].Text = "워크로드 AKIAIOSFODNN7EXAMPLE가 3회 재시작되었습니다."
	doc.Sections[1].Tables[0].Rows[0][0] = "xoxb-123456789012-abcdef"
	report := Compose(doc, nil, Origin{})
	for _, body := range [][]byte{report.Markdown, report.HTML} {
		require.NotContains(t, string(body), "AKIAIOSFODNN7EXAMPLE")
		require.NotContains(t, string(body), "xoxb-")
		require.Contains(t, string(body), redacted)
	}
	require.Empty(t, VerifyReport(doc, []byte(sampleContext), report.Markdown, Origin{}, false, otherFactories))
	require.Equal(t, "xoxb-123456789012-abcdef", doc.Sections[1].Tables[0].Rows[0][0], "the document itself is left alone")
}

func TestUnescapingIsTheInverse(t *testing.T) {
	for _, text := range []string{"a|b*c_d _e_ f_", "09:10~09:17 <x> [y] `z` \\ # {1} & www.a.b c://d e@f", "- a", "12. b", "factory_state"} {
		require.Equal(t, text, unescapeMarkdown(escapeMarkdown(text)))
	}
	require.Equal(t, "factory_state", escapeMarkdown("factory_state"), "what needs no escape gets none")
}

func TestTheHTMLIsOneFileWithAStrictPolicy(t *testing.T) {
	doc := sampleDocument()
	page := string(Compose(doc, nil, Origin{}).HTML)
	for _, outside := range []string{"http:", "https:", "<script", "<link", "<img", "@import", "url(", "on load"} {
		require.NotContains(t, page, outside)
	}
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
	require.Len(t, style, 2)
	sum := sha256.Sum256([]byte(style[1]))
	require.Contains(t, html.UnescapeString(page), "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the policy allows the style sheet that is there")
	require.NotContains(t, page, `style="`, "the policy forbids style attributes")
	require.Contains(t, page, `<html lang="ko">`)
	for _, part := range []string{"prefers-color-scheme: dark", "@media print", `role="img"`, "<title id=", "<desc id=", `scope="col"`} {
		require.Contains(t, page, part)
	}
	english, _ := sampleEnglish()
	require.Contains(t, string(Compose(english, nil, Origin{}).HTML), `<html lang="en">`)
}

func TestChartsAreWellFormedAndBrokenAtGaps(t *testing.T) {
	doc := sampleDocument()
	page := string(Compose(doc, nil, Origin{}).HTML)
	charts := regexp.MustCompile(`(?s)<svg viewBox="0 0 760.*?</svg>`).FindAllString(page, -1)
	require.Len(t, charts, 2)
	for _, chart := range charts {
		require.NoError(t, xml.Unmarshal([]byte(chart), new(struct{})))
	}
	path := regexp.MustCompile(` d="(M[^"]+)"`).FindStringSubmatch(charts[0])
	require.Equal(t, 2, strings.Count(path[1], "M"), "an hour without points breaks the line")
	require.Contains(t, charts[0], "데이터 공백 09:10–09:17")
	require.Contains(t, charts[0], `min: 최저 51 (00:00)`)
	require.Contains(t, charts[0], ">24:00<")
}

func TestLinesBreakWhereDataAreMissing(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes ...int) (points []Point) {
		for _, m := range minutes {
			points = append(points, Point{At: start.Add(time.Duration(m) * time.Minute), Value: exact.FromInt(int64(m))})
		}
		return points
	}
	lengths := func(points []Point, gaps ...Span) (all []int) {
		for _, run := range runs(points, gaps) {
			all = append(all, len(run))
		}
		return all
	}
	require.Equal(t, []int{3}, lengths(at(0, 5, 10)))
	require.Equal(t, []int{2, 2}, lengths(at(0, 5, 15, 20)))
	require.Equal(t, []int{1, 2}, lengths(at(0, 30, 35)))
	require.Equal(t, []int{1, 2}, lengths(at(0, 5, 10), Span{start, start.Add(5 * time.Minute)}))
	require.Equal(t, []int{1}, lengths(at(7)))
	require.Empty(t, lengths(nil))
}

func TestAChartWithoutLinesIsTheDayWithItsGaps(t *testing.T) {
	start := time.Date(2025, 12, 31, 15, 0, 0, 0, time.UTC)
	chart := Chart{ID: "gaps", Title: "공백", Start: start, End: start.Add(24 * time.Hour), Gaps: []Span{{start.Add(time.Hour), start.Add(2 * time.Hour)}}}
	c := draw(chart, "Asia/Seoul", words[Korean])
	require.True(t, c.Strip)
	require.Len(t, c.Gaps, 1)
	require.Empty(t, c.Empty)
	require.Contains(t, c.Description, "데이터 공백 01:00–02:00")
	doc := sampleDocument()
	doc.Charts = []Chart{chart}
	page := string(Compose(doc, nil, Origin{}).HTML)
	require.Equal(t, 2, strings.Count(page, `class="band"`), "the band and its legend")
	require.Equal(t, 2, strings.Count(page, `class="lost"`))
	chart.Gaps = nil
	require.Contains(t, draw(chart, "Asia/Seoul", words[Korean]).Description, "공백 없음")
}

func TestAxesKeepToThePlot(t *testing.T) {
	start := time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC) // New York goes to summer time: 23 hours
	chart := Chart{
		ID: "t", Title: "T", Start: start, End: start.Add(23 * time.Hour),
		Lines: []Line{{Name: "one", Points: []Point{{start, exact.MustParse("-0.5")}, {start.Add(23 * time.Hour), exact.MustParse("3")}}}},
		Gaps:  []Span{{start.Add(-time.Hour), start.Add(time.Hour)}, {start.Add(30 * time.Hour), start.Add(31 * time.Hour)}},
	}
	c := draw(chart, "America/New_York", words[English])
	require.Equal(t, "M56 198L736 18", c.Curves[0].Path)
	require.Len(t, c.Gaps, 1)
	require.Equal(t, bar{X: "56", Width: "29.6", Label: "gap in the data 00:00–01:00"}, c.Gaps[0])
	require.Equal(t, []string{"00:00", "04:00", "07:00"}, []string{c.Times[0].Label, c.Times[1].Label, c.Times[2].Label})

	flat := draw(Chart{Title: "flat", Start: start, End: start.Add(time.Hour), Lines: []Line{{Points: []Point{{start, exact.FromInt(0)}}}}}, "UTC", words[English])
	require.Equal(t, []dot{{"56", "108"}}, flat.Curves[0].Dots)
	require.NotEmpty(t, draw(Chart{Title: "none"}, "UTC", words[English]).Empty)
}

func BenchmarkCompose(b *testing.B) {
	doc := sampleDocument()
	draft := verbatim(doc)
	var total int
	for b.Loop() {
		report := Compose(doc, &draft, Origin{Model: modelName})
		total += len(report.Markdown) + len(report.HTML)
	}
	b.ReportMetric(float64(total)/float64(b.N), "bytes/report")
}

func TestTheSameInputGivesTheSameReport(t *testing.T) {
	doc := sampleDocument()
	first, second := Compose(doc, nil, Origin{}), Compose(doc, nil, Origin{})
	require.True(t, bytes.Equal(first.Markdown, second.Markdown))
	require.True(t, bytes.Equal(first.HTML, second.HTML))
}

func TestASummaryIsTheFirstFindings(t *testing.T) {
	doc := sampleDocument()
	doc.Sections[0].Findings[1].Text = "비밀 AKIAIOSFODNN7EXAMPLE\n" + strings.Repeat("가", 300)
	lines := doc.Summary()
	require.Len(t, lines, maxSummaryLines)
	require.Equal(t, doc.Sections[0].Findings[0].Text, lines[0])
	require.Contains(t, lines[1], redacted+" 가가")
	require.Len(t, []rune(lines[1]), maxSummaryRunes)
	require.Equal(t, []string{"수집된 데이터가 없어 판단할 수 없습니다."}, emptyDocument().Summary())
}
