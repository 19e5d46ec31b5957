package report

import (
	"time"

	"millrace/domain/exact"
)

// sampleContext is a day's context of the kind that merging writes.
const sampleContext = `{
	"schema_version":"0.1.0","factory_id":"factory-a","report_date":"2026-01-01","timezone":"Asia/Seoul",
	"factory_profile":{"environment_type":"physical-rpi","interpretation_mode":"production_edge"},
	"risk":{"avg_score":88.14,"min_score":51.2,"max_score":98.4,"warning_minutes":12,"danger_minutes":0},
	"infra":{"workload_restart_total":3,"unhealthy_workloads":["ai-inference-7d9f"]},
	"events":[{"type":"risk_degradation","time_range":"15:10~15:25","evidence":{"message_ids":["factory-a:factory_state:worker2:2026-01-01T06:10:03Z"]}}]}`

// sampleDocument is a production factory's day in Korean.
func sampleDocument() Document {
	start := time.Date(2025, 12, 31, 15, 0, 0, 0, time.UTC)
	return Document{
		Target: "factory-a", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: Korean,
		Title: "factory-a 일일 운영 리포트 - 2026-01-01", Verdict: Warning,
		KeyFigures: Table{Columns: []string{"지표", "값"}, Rows: [][]string{{"종합 판정", "주의"}, {"최저 점수", "51.2"}, {"수집률", "99.86%"}}},
		Sections: []Section{
			{ID: "summary", Heading: "요약", Findings: []Finding{
				{"summary-verdict", "2026-01-01 factory-a의 종합 판정은 주의입니다."},
				{"summary-risk", "Risk Score는 최저 51.2점, 평균 88.14점, 최고 98.4점이었습니다."},
			}},
			{ID: "collection", Heading: "데이터 수집 상태", Tables: []Table{{Columns: []string{"데이터", "수집", "기대", "수집률"}, Rows: [][]string{
				{"factory_state", "28,760", "28,800", "99.86%"}, {"infra_state", "4,298", "4,320", "99.49%"},
			}}}, Findings: []Finding{
				{"collection-state", "factory_state는 28,800건 중 28,760건이 수집되어 수집률은 99.86%로 양호합니다."},
				{"collection-gap", "가장 긴 공백은 09:10~09:17의 7분이며 공백은 2회였습니다."},
			}},
			{ID: "risk", Heading: "Risk Score", Findings: []Finding{
				{"risk-low", "최저 점수 51.2점은 15:10~15:25에 기록되었고 주의 구간은 12분, 위험 구간은 0분이었습니다."},
			}},
			{ID: "sensor", Heading: "센서 및 AI 이벤트", Findings: []Finding{
				{"sensor-temp", "온도는 평균 27.4 °C, 최고 42.8 °C이며 32 °C 이상인 시간은 12분이었습니다."},
				{"sensor-fall", "fall_score 최고값은 0.91이었습니다."},
			}},
			{ID: "infra", Heading: "인프라 상태", Findings: []Finding{
				{"infra-restart", "워크로드 ai-inference-7d9f가 3회 재시작되었습니다."},
				{"infra-node", "준비되지 않은 노드는 없었습니다."},
			}},
			{ID: "events", Heading: "주요 이벤트", Findings: nil},
			{ID: "checks", Heading: "확인 필요 항목", Findings: []Finding{{"check-1", "온도가 12분 동안 기준 이상이었으므로 냉각 상태의 확인이 필요합니다."}}},
			{ID: "limits", Heading: "데이터 한계", Findings: []Finding{{"limit-1", "이 리포트는 S3 processed 데이터를 기준으로 하며 운영자 검토가 필요한 초안입니다."}}},
		},
		Anchors: []Anchor{{"risk.min_score", "51.2"}, {"risk.max_score", "98.4"}, {"factory_state.actual_count", "28,760"}, {"factory_state.rate", "99.86%"}},
		Charts: []Chart{
			{
				ID: "score", Title: "Risk Score", Start: start, End: start.Add(24 * time.Hour),
				Lines:  []Line{{Name: "min", Points: samplePoints(start, 51)}, {Name: "avg", Points: samplePoints(start, 80)}},
				Limits: []Limit{{"warning", exact.FromInt(85)}, {"danger", exact.FromInt(50)}},
				Gaps:   []Span{{start.Add(9*time.Hour + 10*time.Minute), start.Add(9*time.Hour + 17*time.Minute)}},
			},
			{
				ID: "temperature", Title: "온도", Unit: "°C", Start: start, End: start.Add(24 * time.Hour),
				Lines: []Line{{Name: "max", Points: samplePoints(start, 25)}}, Limits: []Limit{{"warning", exact.FromInt(32)}},
			},
		},
	}
}

// samplePoints are a value each five minutes but for the hour from 09:00.
func samplePoints(start time.Time, base int64) []Point {
	var points []Point
	for i := range int64(288) {
		if i >= 108 && i < 120 {
			continue
		}
		points = append(points, Point{At: start.Add(time.Duration(i) * 5 * time.Minute), Value: exact.FromInt(base + (i*7)%19)})
	}
	return points
}

// sampleEnglish is a testbed's day in English.
func sampleEnglish() (Document, string) {
	doc := Document{
		Target: "factory-b", Date: "2026-03-08", Timezone: "America/New_York", Language: English,
		Title: "factory-b daily operations report - 2026-03-08", Verdict: Danger,
		Sections: []Section{
			{ID: "summary", Heading: "Summary", Findings: []Finding{
				{"f1", "The day of factory-b is judged danger: the Risk Score reached a minimum of 41.5 and averaged 79.03, with a maximum of 97."},
				{"f2", "Danger lasted 6 minutes and warning 1,194 minutes."},
			}},
			{ID: "collection", Heading: "Data collection", Findings: []Finding{
				{"f3", "Of 27,600 expected factory_state samples 27,462 arrived, a rate of 99.5%."},
				{"f4", "There were no gaps after 13:05."},
			}},
			{ID: "risk", Heading: "Risk Score", Findings: []Finding{{"f5", "The score fell to its minimum of 41.5 at 12:40."}}},
			{ID: "limits", Heading: "Limits", Findings: []Finding{{"f6", "The data of this testbed are generated and describe no real incident."}}},
		},
		Anchors: []Anchor{{"risk.min_score", "41.5"}},
	}
	return doc, `{"factory_id":"factory-b","factory_profile":{"interpretation_mode":"testbed_dummy"},"risk":{"min_score":41.5,"warning_minutes":1194},"nodes":5}`
}

// verbatim is the draft that says every finding as it stands.
func verbatim(doc Document) Draft {
	var draft Draft
	for _, section := range doc.worded() {
		written := DraftSection{ID: section.ID}
		for _, finding := range section.Findings {
			written.Sentences = append(written.Sentences, Sentence{Text: finding.Text, Findings: []string{finding.ID}})
		}
		draft.Sections = append(draft.Sections, written)
	}
	return draft
}

// replaced is a draft with one finding worded otherwise.
func replaced(doc Document, id, text string, also ...string) Draft {
	draft := verbatim(doc)
	for i := range draft.Sections {
		for j := range draft.Sections[i].Sentences {
			if s := &draft.Sections[i].Sentences[j]; s.Findings[0] == id {
				s.Text, s.Findings = text, append(s.Findings, also...)
			}
		}
	}
	return draft
}

// beside is a draft in which a text stands beside the finding that it words a part
// of.
func beside(doc Document, id, text string, also ...string) Draft {
	draft := verbatim(doc)
	for i := range draft.Sections {
		for _, s := range draft.Sections[i].Sentences {
			if s.Findings[0] == id {
				draft.Sections[i].Sentences = append(draft.Sections[i].Sentences, Sentence{text, append([]string{id}, also...)})
				break
			}
		}
	}
	return draft
}
