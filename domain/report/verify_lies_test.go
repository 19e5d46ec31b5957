package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const testbedContext = `{"factory_profile":{"interpretation_mode":"testbed_dummy"}}`

// TestLiesInTrueWords has sentences with the numbers and the words of their
// findings that say something else.
func TestLiesInTrueWords(t *testing.T) {
	const (
		score       = "Risk Score는 최저 0, 최고 99.7, 평균 98.31이며, 100에 가까울수록 안전합니다."
		testbed     = "factory-b는 더미 데이터를 사용하는 테스트베드이므로 아래 내용은 시험 결과이며 실제 사고가 아닙니다."
		verdict     = "2026-01-01 factory-b의 종합 판정은 '위험'입니다."
		datasets    = "factory_state는 기대 28800건 중 28650건(수집률 0.9948), infra_state는 기대 4320건 중 8251건(수집률 0.9972)이 수집되었습니다."
		humidity    = "습도는 평균 45.3 %, 최고 88 %였고, 70 % 이상은 10분이었습니다."
		temperature = "온도는 평균 24.5 °C, 최고 39.5 °C였고, 32 °C 이상은 25분이었습니다."
		priority    = "우선순위 높음: 온도 임계값 초과의 원인과 냉각 상태를 확인하세요. 근거: 온도 32 °C 이상 25분, 최고 39.5 °C."
		nodes       = "노드 Not Ready는 동시 최대 3개, 총 10분이었습니다(master, worker1, worker2)."
		levels      = "경고 구간은 48분, 위험 구간은 12.3분이었습니다."
		ai          = "AI 점수 최고치는 화재 0.01, 넘어짐 0.91, 굽힘 0.02이며, 급등 이벤트는 3건이었습니다."
		draft       = "이 리포트는 운영자 검토가 필요한 초안입니다."
		noGaps      = "데이터 공백은 없었습니다."
		counted     = "위험 0분, 경고 48분."
		event       = "14:10~14:35 '온도 임계값 초과' 테스트 이벤트(위험): 최고 39.5 °C, 지속 시간 1500초."
		realEN      = "14:10~14:35: event 'temperature over its threshold' (danger), highest 39.5 °C, lasting 1500 seconds."
		minutesEN   = "Minutes at the level of warning: 48, of danger: 12.3."
		aiEN        = "The highest AI scores were fire 0.01, fall 0.91, bend 0.02; spikes: 3."
		datasetsEN  = "Of 28800 expected factory_state records 28650 were collected (rate 0.9948), of 4320 expected infra_state records 4308 (rate 0.9972)."
		scoreEN     = "The risk score was 0 at its lowest, 99.7 at its highest and 98.31 on average; 100 is safest."
		testbedEN   = "factory-b is a testbed with dummy data: what follows are results of tests and no real incidents."
		verdictEN   = "The overall judgement of factory-b on 2026-01-01 is 'danger'."
		checkEN     = "Priority high: Check the nodes. Reason: nodes not ready for 10 minutes."
		pipelineEN  = "The pipeline was at warning for 3 minutes and critical for 5 minutes."
	)
	for _, c := range []struct {
		lang          Language
		finding, said string
	}{
		{Korean, score, "Risk Score는 최저 0, 최고 99.7, 평균 98.31이며, 0에 가까울수록 바람직하고 100에 가까울수록 나쁩니다."},
		{Korean, score, "Risk Score는 최저 0, 최고 99.7, 평균 98.31이며, 100에 가까울수록 위험합니다."},
		{Korean, score, "Risk Score는 0, 99.7, 98.31이었습니다."},
		{Korean, score, "Risk Score는 최저 0, 최고 99.7이었습니다."},
		{Korean, testbed, "factory-b는 실제 사고가 난 공장이며 테스트베드가 아닙니다."},
		{Korean, testbed, "factory-b의 이벤트는 실제 사고이며 더미 데이터가 아닙니다."},
		{Korean, testbed, "factory-b는 더미 데이터를 사용하지 않는 테스트베드이며 실제 사고가 아닙니다."},
		{Korean, testbed, "factory-b의 내용은 시험 결과가 아닙니다."},
		{Korean, verdict, "2026-01-01 factory-b의 종합 판정은 '위험'에서 벗어났습니다."},
		{Korean, verdict, "2026-01-01 factory-b의 종합 판정은 '위험'이 아니었습니다."},
		{Korean, verdict, "2026-01-01 factory-b의 종합 판정이 있었습니다."},
		{Korean, datasets, "infra_state는 기대 28800건 중 28650건(수집률 0.9948), factory_state는 기대 4320건 중 8251건(수집률 0.9972)이 수집되었습니다."},
		{Korean, datasets, "infra_state는 28800건 중 8251건이 수집되었고, factory_state는 4320건 중 28650건, 수집률은 0.9948과 0.9972입니다."},
		{Korean, datasets, "factory_state는 기대 28650건 중 28800건(수집률 0.9948), infra_state는 기대 4320건 중 8251건(수집률 0.9972)이 수집되었습니다."},
		{Korean, humidity + " " + temperature, "습도는 평균 24.5 °C입니다."},
		{Korean, temperature, "습도는 평균 24.5 °C, 최고 39.5 °C였고, 32 °C 이상은 25분이었습니다."},
		{Korean, priority, "우선순위 낮음: 온도 임계값 초과의 원인과 냉각 상태를 확인하세요. 근거: 온도 32 °C 이상 25분, 최고 39.5 °C."},
		{Korean, nodes, "노드 Not Ready는 동시 최대 3개, 총 10분(master, worker1, worker2)이라는 보고는 잘못된 것입니다."},
		{Korean, nodes, "팩토리씨의 노드 Not Ready는 동시 최대 3개, 총 10분(master, worker1, worker2)입니다."},
		{Korean, nodes, "공장 비의 노드 Not Ready는 동시 최대 3개, 총 10분(master, worker1, worker2)입니다."},
		{Korean, nodes, "노드 Not Ready는 동시 최대 3개, 총 10분(master, worker1, worker2)이며 작업자 부상이 있었고 상태는 유지되었습니다."},
		{Korean, levels, "위험 구간은 48분, 경고 구간은 12.3분이었습니다."},
		{Korean, levels, "48분의 위험 구간과 12.3분의 경고 구간이 있었습니다."},
		{Korean, ai, "AI 점수 최고치는 화재 0.91, 넘어짐 0.01, 굽힘 0.02이며, 급등 이벤트는 3건이었습니다."},
		{Korean, draft, "이 리포트는 운영자의 검토가 이미 끝난 최종본입니다."},
		{Korean, draft, "이 리포트는 운영자 검토가 필요하지 않은 초안입니다."},
		{Korean, noGaps, "데이터 공백이 있었습니다."},
		{Korean, counted, "위험 구간은 48분, 경고 구간은 없었습니다."},
		{Korean, counted, "경고 구간은 없었습니다."},
		{Korean, counted, "위험 구간은 없었으며 확인은 필요하지 않습니다."},
		{Korean, datasets, "factory_state는 28800건이 수집되었고 기대는 28650건(수집률 0.9948), infra_state는 기대 4320건 중 8251건(수집률 0.9972)입니다."},
		{Korean, datasets, "factory_state는 기대 28800건 중 28650건(수집률 0.9948), infra_state는 기대 4320건 중 8251건(수집률 0.9972)이 제외되었습니다."},
		{Korean, draft, "이 리포트는 운영자 검토가 필요한 초안이며 검토가 확인되었습니다."},
		{Korean, priority, "높은 우선순위로, 온도가 32 °C 이상이었던 25분과 최고 39.5 °C를 근거로 온도 임계값 초과의 원인과 냉각 상태를 점검했습니다."},
		{Korean, event, "14:10~14:35에는 위험 수준의 온도 임계값 초과 이벤트가 1500초 동안 지속되었으며 최고 39.5 °C였고 정상으로 회복되었습니다."},
		{Korean, event, "14:10~14:35에는 경고 수준의 온도 임계값 초과 테스트 이벤트가 1500초 동안 지속되었으며 최고 39.5 °C였습니다."},
		{English, realEN, "A test event at the danger level, temperature over its threshold, lasted 1,500 seconds from 14:10 to 14:35 and reached 39.5 °C."},
		{English, checkEN, "Priority high: the nodes were checked. Reason: nodes not ready for 10 minutes."},
		{English, minutesEN, "There were 48 minutes of danger and 12.3 minutes of warning."},
		{English, minutesEN, "Danger lasted 48 minutes, and warning lasted 12.3 minutes."},
		{English, aiEN, "The highest AI scores were fire 0.91, fall 0.01, bend 0.02; spikes: 3."},
		{English, aiEN, "The highest AI scores were 0.91 for fire, 0.01 for fall and 0.02 for bend, with 3 spikes."},
		{English, datasetsEN, "Of 28800 expected infra_state records 28650 were collected (rate 0.9948), of 4320 expected factory_state records 4308 (rate 0.9972)."},
		{English, datasetsEN, "28,800 of the 28,650 expected factory_state records were collected, a rate of 0.9948; for infra_state it was 4,308 of 4,320, a rate of 0.9972."},
		{English, scoreEN, "The risk score was 0 at its lowest, 99.7 at its highest and 98.31 on average; 0 is best."},
		{English, scoreEN, "The risk score averaged 98.31, with a low of 99.7 and a high of 0."},
		{English, testbedEN, "factory-b is not a testbed with dummy data: what follows are results of real incidents."},
		{English, testbedEN, "What follows are real incidents and no results of tests with dummy data of the testbed."},
		{English, verdictEN, "The overall judgement of factory-b on 2026-01-01 is 'danger' and plant B exploded."},
		{English, verdictEN, "The overall judgement of factory-b on 2026-01-01 is not 'danger'."},
		{English, verdictEN, "The overall judgement of factory-b on 2026-01-01 is 'danger', which is wrong."},
		{English, checkEN, "Priority low: Check the nodes. Reason: nodes not ready for 10 minutes."},
		{English, datasetsEN, "Of 28800 expected factory_state records 28650 were lost (rate 0.9948), of 4320 expected infra_state records 4308 (rate 0.9972)."},
		{English, scoreEN, "The risk score was 0 at its lowest, 99.7 at its highest and 98.31 on average; the nearer to 0 the more welcome."},
		{English, checkEN, "Priority low: nobody has to look at nodes not ready for 10 minutes."},
		{English, pipelineEN, "The pipeline was critical for 3 minutes and at warning for 5 minutes."},
	} {
		doc := Document{
			Target: "factory-b", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: c.lang,
			Sections: []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", c.finding}}}},
		}
		if c.lang == Korean { // enough Korean beside the names
			doc.Sections[0].Findings = append(doc.Sections[0].Findings, Finding{"g", "저장된 데이터를 기준으로 하며 그 사이의 변화는 보이지 않습니다."})
		}
		assert.Empty(t, Verify(doc, []byte(testbedContext), verbatim(doc), otherFactories), c.finding)
		// As one more sentence beside the true one, too.
		assert.NotEmpty(t, Verify(doc, []byte(testbedContext), replaced(doc, "f", c.said), otherFactories), c.said)
		if c.said != "Risk Score는 최저 0, 최고 99.7이었습니다." && c.said != "2026-01-01 factory-b의 종합 판정이 있었습니다." { // the truth stands beside them
			assert.NotEmpty(t, Verify(doc, []byte(testbedContext), beside(doc, "f", c.said), otherFactories), "beside: %s", c.said)
		}
	}
}
