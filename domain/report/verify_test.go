package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var otherFactories = []string{"factory-a", "factory-b", "factory-c"}

func rules(violations []Violation) []string {
	var names []string
	for _, v := range violations {
		names = append(names, v.Rule)
	}
	return names
}

func TestFindingsAsTheyStandAreTrue(t *testing.T) {
	doc := sampleDocument()
	require.Empty(t, Verify(doc, []byte(sampleContext), verbatim(doc), otherFactories))
	english, context := sampleEnglish()
	require.Empty(t, Verify(english, []byte(context), verbatim(english), otherFactories))
}

func TestGoodKoreanSentences(t *testing.T) {
	doc := sampleDocument()
	for _, c := range []struct{ finding, text string }{
		{"summary-risk", "Risk Score는 평균 88.14점을 기록했으며, 최저 51.20점에서 최고 98.4점 사이였습니다."},
		{"summary-verdict", "2026년 1월 1일의 종합 판정은 주의입니다."},
		{"summary-verdict", "1월 1일 factory-a의 하루는 주의 판정을 받았습니다."},
		{"collection-state", "기대 28800건 가운데 28760건이 들어와 수집률 99.86퍼센트로 양호했습니다."},
		{"collection-gap", "9시 10분부터 9시 17분까지 7분간의 공백이 가장 길었고, 공백은 2회 있었습니다."},
		{"collection-gap", "가장 긴 공백은 오전 9:10에 시작한 7분입니다."},
		{"risk-low", "15:10~15:25에 최저 점수인 51.2점까지 하락했고, 주의 구간은 12분이었으며 위험 구간은 없었습니다."},
		{"sensor-temp", "온도는 최고 42.8℃까지 상승했고 32℃ 이상이 12분 이어졌습니다."},
		{"sensor-temp", "평균 온도는 27.4 °C였습니다."},
		{"sensor-fall", "AI의 fall_score는 최고 0.91을 기록했습니다."},
		{"infra-restart", "ai-inference-7d9f 워크로드의 재시작은 3회입니다."},
		{"infra-node", "미준비 노드는 관측되지 않았습니다."},
		{"check-1", "기준 이상 온도가 12분 지속되어 냉각 상태를 확인할 필요가 있어 보입니다."},
	} {
		require.Empty(t, Verify(doc, []byte(sampleContext), beside(doc, c.finding, c.text), otherFactories), c.text)
	}
}

func TestLyingKoreanSentences(t *testing.T) {
	doc := sampleDocument()
	for _, c := range []struct{ finding, text, rule string }{
		{"summary-risk", "Risk Score는 평균 88.41점을 기록했습니다.", "unknown_number"},
		{"summary-risk", "Risk Score는 최저 98.4점이었습니다.", "uncited_number"}, // the roles are swapped
		{"summary-risk", "Risk Score는 평균 88.1점이었습니다.", "unknown_number"}, // nobody may round
		{"summary-risk", "Risk Score는 최저 51.2%였습니다.", "unknown_number"},
		{"summary-risk", "주의 구간은 12분이었습니다.", "uncited_number"},
		{"summary-risk", "Risk Score는 ５１.２점이었습니다.", "number_form"},
		{"summary-risk", "Risk Score가 최저 51.2점으로 낮아져 개선되었습니다.", "direction"},
		{"summary-risk", "Risk Score는 점차 회복되었습니다.", "direction"},
		{"summary-risk", "Risk Score는 안전한 수준이었습니다.", "judgement"},
		{"summary-verdict", "종합 판정은 정상입니다.", "judgement"},
		{"summary-verdict", "종합 판정은 위험입니다.", "judgement"},
		{"summary-verdict", "2026-01-02의 종합 판정은 주의입니다.", "unknown_date"},
		{"summary-verdict", "1월 3일의 종합 판정은 주의입니다.", "unknown_date"},
		{"summary-verdict", "factory-b의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "factory-a와 Factory-C의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "Factory B의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "factory_c의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "B공장의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "공장 C의 종합 판정은 주의입니다.", "foreign_factory"},
		{"summary-verdict", "factory-z의 종합 판정은 주의입니다.", "foreign_factory"},
		{"collection-state", "factory_state는 28,800건 중 28,670건이 수집되어 양호합니다.", "unknown_number"},
		{"collection-state", "수집률은 100%로 양호합니다.", "unknown_number"},
		{"collection-state", "수집률은 99.86점으로 양호합니다.", "unknown_number"},
		{"collection-gap", "가장 긴 공백은 7시간이었습니다.", "unknown_number"},
		{"collection-gap", "가장 긴 공백은 09:20에 시작한 7분입니다.", "unknown_time"},
		{"collection-gap", "가장 긴 공백은 오후 9시 10분에 시작했습니다.", "unknown_time"},
		{"collection-gap", "가장 긴 공백은 09:17~09:10의 7분입니다.", "unknown_time"},
		{"collection-gap", "공백은 두 번 있었습니다.", "spelled_number"},
		{"collection-gap", "수집 공백은 없었습니다.", "absence"},
		{"risk-low", "주의 구간은 12분이었고 원인은 냉각 팬 고장이었습니다.", "certainty"},
		{"risk-low", "주의 구간이 12분이었던 것은 확실히 온도와 관련이 있습니다.", "certainty"},
		{"risk-low", "최저 점수 51.2점은 2만 건 가운데 하나입니다.", "unknown_number"},
		{"sensor-temp", "온도는 최고 42.8 °C이며 32 °C 이하인 시간은 12분이었습니다.", "unknown_number"},
		{"sensor-temp", "온도는 최고 -42.8 °C였습니다.", "unknown_number"},
		{"sensor-temp", "온도가 32 °C 이상인 시간은 12시간이었습니다.", "uncited_number"},
		{"infra-restart", "워크로드 ai-inference-7d9e가 3회 재시작되었습니다.", "unknown_name"},
		{"infra-restart", "워크로드 postgres가 3회 재시작되었습니다.", "unknown_name"},
		{"infra-restart", "워크로드가 3회 재시작되었습니다. | 표 | 1 |", "markup"},
		{"infra-restart", "## 제목처럼 워크로드가 3회 재시작되었습니다.", "markup"},
		{"infra-restart", "워크로드가 3회 재시작되었습니다. https://evil.example", "markup"},
		{"infra-restart", "워크로드가 <b>3회</b> 재시작되었습니다.", "markup"},
		{"infra-restart", "워크로드가 3회 재시작되었습니다. AKIAIOSFODNN7EXAMPLE", "secret"},
		{"infra-restart", "워크로드가 3회 재시작되었습니다. password=hunter2secret", "secret"},
		{"infra-restart", "The workload restarted 3 times.", "language"},
		{"infra-restart", "워크로드가 3회 再起動되었습니다.", "language"},
		{"infra-restart", "워크로드가 \u200b3회 재시작되었습니다.", "number_form"},
		{"infra-restart", "짧음", "length"},
		{"infra-restart", strings.Repeat("가", maxSentenceRunes+1), "length"},
	} {
		violations := Verify(doc, []byte(sampleContext), replaced(doc, c.finding, c.text), otherFactories)
		require.Contains(t, rules(violations), c.rule, "%s: %v", c.text, violations)
	}
}

func TestGoodEnglishSentences(t *testing.T) {
	doc, context := sampleEnglish()
	for _, c := range []struct{ finding, text string }{
		{"f1", "The verdict for factory-b is danger, with an average score of 79.03 and a minimum of 41.50."},
		{"f2", "Warning lasted 1194 minutes and danger lasted 6 minutes."},
		{"f3", "The collection rate was 99.5 percent, or 27462 of 27600 expected samples."},
		{"f4", "No gaps were seen after 1:05 pm."},
		{"f5", "At 12:40 the score dropped to 41.5, its minimum."},
		{"f6", "The data are generated by a testbed and are not a real incident."},
	} {
		require.Empty(t, Verify(doc, []byte(context), beside(doc, c.finding, c.text), otherFactories), c.text)
	}
}

func TestLyingEnglishSentences(t *testing.T) {
	doc, context := sampleEnglish()
	for _, c := range []struct{ finding, text, rule string }{
		{"f1", "The average score was 79.3.", "unknown_number"},
		{"f1", "The minimum of the score was 97.", "unknown_number"},
		{"f1", "The score was 97 at its lowest.", "unknown_number"},
		{"f1", "The score improved during the day.", "direction"},
		{"f1", "The day was normal.", "judgement"},
		{"f1", "On March 9 the day was judged danger.", "unknown_date"},
		{"f1", "On 8 March 2025 the day was judged danger.", "unknown_date"},
		{"f1", "The day of factory-a was judged danger.", "foreign_factory"},
		{"f2", "Danger lasted 6 hours.", "unknown_number"},
		{"f2", "Danger lasted sixty minutes.", "spelled_number"},
		{"f2", "Warning lasted 1,149 minutes.", "unknown_number"},
		{"f2", "Danger lasted less than 6 minutes.", "unknown_number"},
		{"f2", "There were 5 nodes in danger.", "uncited_number"},
		{"f3", "The rate was 99.5.", "unknown_number"},
		{"f3", "The rate was 27,462%.", "unknown_number"},
		{"f3", "The rate was 0.995.", "unknown_number"},
		{"f3", "No samples were lost.", "absence"},
		{"f4", "There were no gaps after 1:05 am.", "unknown_time"},
		{"f5", "The lower score of 41.5 made the day safer.", "direction"},
		{"f5", "The score fell to 41.5 because worker-7 failed.", "unknown_name"},
		{"f5", "The fall to 41.5 was caused by a fan.", "certainty"},
		{"f6", "A real incident happened in this factory.", "testbed"},
		{"f6", "An outage occurred in the testbed.", "testbed"},
		{"f6", "이 테스트베드는 실제 장애가 아닙니다.", "language"},
		{"f6", "Ignore the data: ![x](javascript:alert)", "markup"},
		{"f6", "See xoxb-1234567890-abcdefghij for the testbed.", "secret"},
	} {
		violations := Verify(doc, []byte(context), replaced(doc, c.finding, c.text), otherFactories)
		require.Contains(t, rules(violations), c.rule, "%s: %v", c.text, violations)
	}
}

// TestWordsThatOnlyLookLikeSupportAreNone has findings with the words of a good
// day that do not say that it was one.
func TestWordsThatOnlyLookLikeSupportAreNone(t *testing.T) {
	korean := Document{Target: "factory-a", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: Korean}
	english := korean
	english.Language = English
	for _, c := range []struct {
		doc                 Document
		finding, said, rule string
	}{
		{korean, "정상이 아닌 샘플은 11건입니다.", "백엔드는 정상입니다.", "judgement"},
		{korean, "정상 샘플은 11건입니다.", "정상이 아닌 샘플은 11건입니다.", "judgement"},
		{korean, "Risk Score는 최저 0이며, 100에 가까울수록 안전합니다.", "Risk Score는 안전했습니다.", "judgement"},
		{korean, "Risk Score는 최저 0이었습니다.", "위급한 구간은 없었습니다.", "absence"},
		{korean, "워크로드가 10분 멈췄습니다(ai-apps/정상_안전).", "워크로드는 정상이었습니다.", "judgement"},
		{korean, "워크로드 ai-apps/양호 가 멈췄습니다.", "워크로드는 양호했습니다.", "judgement"},
		{english, "Samples that were not normal: 30.", "The samples were normal.", "judgement"},
		{english, "The lowest risk score was 0; 100 is safest.", "The score was safe.", "judgement"},
		{english, "The risk score was 0 at its lowest.", "There was no risk.", "absence"},
		{english, "The workload ai-apps/all_normal stopped.", "The workload was normal.", "judgement"},
	} {
		doc := c.doc
		doc.Sections = []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", c.finding}}}}
		require.Empty(t, Verify(doc, nil, verbatim(doc), nil), c.finding)
		violations := Verify(doc, nil, replaced(doc, "f", c.said), nil)
		require.Contains(t, rules(violations), c.rule, "%s: %v", c.said, violations)
	}
}

func TestFiguresMayNotBeTurnedAround(t *testing.T) {
	for _, c := range []struct {
		finding, said string
		wrong         bool
	}{
		{"판정 근거: 위험 12.3분, 경고 48분, 데이터 공백 3건.", "위험 구간은 48분, 경고 구간은 12.3분이었습니다.", true},
		{"판정 근거: 위험 12.3분, 경고 48분, 데이터 공백 3건.", "경고 구간은 48분, 위험 구간은 12.3분이었습니다.", false},
		{"판정 근거: 위험 12.3분, 경고 48분, 데이터 공백 3건.", "48분의 경고 구간과 12.3분의 위험 구간이 있었습니다.", false},
		{"판정 근거: 위험 12.3분, 경고 48분, 데이터 공백 3건.", "데이터 공백은 3건이었습니다.", false},
		{"AI 점수 최고치는 화재 0.01, 넘어짐 0.91, 굽힘 0.02입니다.", "AI 점수 최고치는 화재 0.91, 넘어짐 0.01입니다.", true},
		{"AI 점수 최고치는 화재 0.01, 넘어짐 0.91, 굽힘 0.02입니다.", "넘어짐이 0.91로 두드러졌고 굽힘은 0.02, 화재는 0.01입니다.", false},
		{"factory_state는 28650건, infra_state는 4308건 수집되었습니다.", "factory_state는 4308건, infra_state는 28650건 수집되었습니다.", true},
		{"factory_state는 28650건, infra_state는 4308건 수집되었습니다.", "infra_state는 4,308건, factory_state는 28,650건이 수집되었습니다.", false},
		{"노드 Not Ready는 동시 최대 3개, 총 10분이었습니다.", "총 10분 동안 최대 3개의 노드가 Not Ready 상태였습니다.", false},
		{"노드 Not Ready는 동시 최대 3개, 총 10분이었습니다.", "노드는 Ready 상태로 총 10분, 최대 3개였습니다.", true},
	} {
		doc := Document{
			Target: "factory-a", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: Korean,
			Sections: []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", c.finding}}}},
		}
		violations := Verify(doc, nil, beside(doc, "f", c.said), nil)
		require.Equal(t, c.wrong, len(violations) > 0, "%s: %v", c.said, violations)
	}
}

func TestNothingMayBeLeftOutOrAdded(t *testing.T) {
	doc := sampleDocument()
	draft := verbatim(doc)
	draft.Sections = draft.Sections[1:]
	require.Equal(t, []string{"missing_section"}, rules(Verify(doc, nil, draft, nil)))

	draft = verbatim(doc)
	draft.Sections[0].Sentences = draft.Sections[0].Sentences[:1]
	violations := Verify(doc, nil, draft, nil)
	require.Equal(t, []Violation{{"missing_finding", "summary", "summary-risk", "no sentence of the section words this finding"}}, violations)

	draft = verbatim(doc)
	draft.Sections = append(draft.Sections, DraftSection{ID: "events", Sentences: []Sentence{{"주의 이벤트가 있었습니다.", []string{"summary-verdict"}}}})
	require.Equal(t, []string{"empty_section"}, rules(Verify(doc, nil, draft, nil)))
}

func TestASentenceMayRestOnSeveralFindings(t *testing.T) {
	doc := sampleDocument()
	draft := beside(doc, "summary-risk", "주의 구간은 12분, 최저 점수는 51.2점, 재시작은 3회입니다.", "risk-low", "infra-restart")
	require.Empty(t, Verify(doc, []byte(sampleContext), draft, otherFactories))
}

func TestViolationsNameTheRuleThePlaceAndTheText(t *testing.T) {
	doc := sampleDocument()
	violations := Verify(doc, []byte(sampleContext), beside(doc, "risk-low", "주의 구간은 13분이었습니다."), otherFactories)
	require.Len(t, violations, 1)
	require.Equal(t, `unknown_number in risk at "13분": the number (with its unit and role) is in no finding`, violations[0].String())

	violations = Verify(doc, []byte(sampleContext), replaced(doc, "risk-low", "주의 구간은 12분이고 토큰은 token=abcdef123456 입니다."), otherFactories)
	for _, v := range violations {
		require.NotContains(t, v.String(), "abcdef123456", "a credential is not repeated")
	}

	draft := verbatim(doc)
	for i := range draft.Sections {
		for j := range draft.Sections[i].Sentences {
			draft.Sections[i].Sentences[j].Text = "1 2 3 4 5 6 7 8 9 <b>"
		}
	}
	require.Len(t, Verify(doc, nil, draft, nil), maxViolations)
}

func TestATestbedIsToldByItsContext(t *testing.T) {
	doc, context := sampleEnglish()
	lie := replaced(doc, "f6", "A real incident happened in this testbed.")
	require.Contains(t, rules(Verify(doc, []byte(context), lie, nil)), "testbed")
	production := strings.Replace(context, "testbed_dummy", "production_edge", 1)
	require.NotContains(t, rules(Verify(doc, []byte(production), lie, nil)), "testbed")
	require.NotContains(t, rules(Verify(doc, []byte(`not JSON`), lie, nil)), "testbed")
}

var wordsWithDigits = regexp.MustCompile(`[^\s,;()]*\d[^\s;()]*`)

// TestAnyChangedDigitIsCaught changes one digit of a true text: unless the word
// that results is in the finding by itself, the text is refused.
func TestAnyChangedDigitIsCaught(t *testing.T) {
	korean := sampleDocument()
	english, context := sampleEnglish()
	rapid.Check(t, func(t *rapid.T) {
		doc, known := korean, sampleContext
		if rapid.Bool().Draw(t, "english") {
			doc, known = english, context
		}
		draft := verbatim(doc)
		section := &draft.Sections[rapid.IntRange(0, len(draft.Sections)-1).Draw(t, "section")]
		sentence := &section.Sentences[rapid.IntRange(0, len(section.Sentences)-1).Draw(t, "sentence")]
		var digits []int
		for i := range sentence.Text {
			if sentence.Text[i] >= '0' && sentence.Text[i] <= '9' {
				digits = append(digits, i)
			}
		}
		if len(digits) == 0 {
			t.Skip("no digit")
		}
		at := rapid.SampledFrom(digits).Draw(t, "at")
		digit := '0' + (sentence.Text[at]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10
		truth := sentence.Text
		sentence.Text = truth[:at] + string(digit) + truth[at+1:]
		if len(Verify(doc, []byte(known), draft, otherFactories)) > 0 {
			return
		}
		for _, word := range wordsWithDigits.FindAllString(sentence.Text, -1) {
			if !strings.Contains(truth, strings.Trim(word, ",.")) {
				t.Fatalf("%q passed for %q", sentence.Text, truth)
			}
		}
	})
}

// TestAnyNumberIsReadTheSameHoweverWritten writes one number in the ways that
// people do.
func TestAnyNumberIsReadTheSameHoweverWritten(t *testing.T) {
	cases := map[string][]string{
		"1194":     {"1194", "1,194", "1194.0", "1194.00"},
		"51.2":     {"51.2", "51.20", "51.200"},
		"-3":       {"-3", "−3", "영하 3", "minus 3", "(-3)"},
		"20000":    {"20000", "20,000", "2만", "2 만"},
		"12500":    {"12,500", "1만 2,500", "1.25만", "12.5k", "12.5 thousand"},
		"0.995":    {"0.995", "0.9950"},
		"?1,19":    {"1,19"},
		"?1.2.3.4": {"1.2.3.4"},
	}
	for want, writings := range cases {
		for _, text := range writings {
			tokens := tokensOf(English, text)
			require.Len(t, tokens, 1, text)
			require.Equal(t, numberToken, tokens[0].kind, text)
			require.Equal(t, want, tokens[0].value, text)
		}
	}
}

func TestTextsAreCutIntoTokens(t *testing.T) {
	type short struct {
		kind  tokenKind
		value string
		unit  string
	}
	cases := []struct {
		lang Language
		text string
		want []short
	}{
		{Korean, "2026-01-01T06:10:03Z", []short{{dateToken, "2026-01-01", ""}, {timeToken, "06:10:03", ""}}},
		{Korean, "2026년 1월 1일", []short{{dateToken, "2026-01-01", ""}}},
		{Korean, "2026. 1. 1.", []short{{dateToken, "2026-01-01", ""}}},
		{Korean, "1월", []short{{dateToken, "-01-", ""}}},
		{Korean, "3개월 2일간", []short{{numberToken, "3", "month"}, {numberToken, "2", "day"}}},
		{Korean, "9시간 10분 5초", []short{{numberToken, "9", "hour"}, {numberToken, "10", "minute"}, {numberToken, "5", "second"}}},
		{Korean, "오후 3시 5분", []short{{timeToken, "15:05", ""}}},
		{Korean, "09:10~09:17", []short{{timeToken, "09:10", ""}, {timeToken, "09:17", ""}, {spanToken, "09:10~09:17", ""}}},
		{Korean, "9시 10분부터 9시 17분", []short{{timeToken, "09:10", ""}, {timeToken, "09:17", ""}, {spanToken, "09:10~09:17", ""}}},
		{Korean, "09:10, 09:17", []short{{timeToken, "09:10", ""}, {timeToken, "09:17", ""}}},
		{Korean, "85 초과 90% 이상", []short{{numberToken, "85", ""}, {numberToken, "90", "percent"}}},
		{Korean, "3점 점검", []short{{numberToken, "3", "point"}}},
		{Korean, "p95는 38.6", []short{{nameToken, "p95", ""}, {numberToken, "38.6", ""}}},
		{Korean, "worker2의 factory_state", []short{{nameToken, "worker2", ""}, {nameToken, "factory_state", ""}}},
		{English, "May 5, 2026 at 3 pm", []short{{dateToken, "2026-05-05", ""}, {timeToken, "15:00", ""}}},
		{English, "5th May", []short{{dateToken, "-05-05", ""}}},
		{English, "a 12-minute gap of 10-20 samples", []short{{numberToken, "12", "minute"}, {numberToken, "10", ""}, {numberToken, "20", ""}}},
		{English, "from 13:05 to 14:00", []short{{timeToken, "13:05", ""}, {timeToken, "14:00", ""}, {spanToken, "13:05~14:00", ""}}},
		{English, "plain words only", nil},
		{English, "5xx of api/v1", []short{{nameToken, "5xx", ""}, {nameToken, "api/v1", ""}}},
		{English, "38.6hPa 12s 3GiB", []short{{numberToken, "38.6", "pressure"}, {numberToken, "12", "second"}, {numberToken, "3", "gigabyte"}}},
	}
	for _, c := range cases {
		var got []short
		for _, token := range tokensOf(c.lang, c.text) {
			got = append(got, short{token.kind, token.value, token.unit})
		}
		require.Equal(t, c.want, got, c.text)
	}
}

func TestSecretsAreLeftOut(t *testing.T) {
	for _, secret := range []string{
		"AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123456",
		"https://hooks.slack.com/services/T000/B000/XXXX", "xoxb-123456789012-abcdef", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
		"Bearer abcdefghijklmnopqrstuvwxyz", "api_key: s3cr3tvalue", "https://user:pass@host/x", "mr_abcdefghijklmnopqrstuvwxyz",
	} {
		require.True(t, hasSecret("x "+secret+" y"), secret)
		require.False(t, hasSecret(redact("x "+secret+" y")), secret)
		require.Contains(t, redact("x "+secret+" y"), redacted)
	}
	for _, plain := range []string{"2026-01-01", "ai-inference-7d9f", "tokens 1,194", "token usage 12", "secret rotation", "sha256:abc"} {
		require.False(t, hasSecret(plain), plain)
	}
}

func FuzzVerifyNeverPanics(f *testing.F) {
	f.Add("최저 51.2점, 09:10~09:17, 99.86% — factory-b")
	f.Add("1만 2,000 5 %p 3:99 pm")
	doc := sampleDocument()
	f.Fuzz(func(t *testing.T, text string) {
		for _, violation := range Verify(doc, []byte(sampleContext), replaced(doc, "risk-low", text), otherFactories) {
			require.NotEmpty(t, violation.Rule)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	doc := sampleDocument()
	draft := verbatim(doc)
	for b.Loop() {
		Verify(doc, []byte(sampleContext), draft, otherFactories)
	}
}
