package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestHowAModelWouldSayIt words findings of computed days as a language model
// does: none of it is refused.
func TestHowAModelWouldSayIt(t *testing.T) {
	for _, c := range []struct {
		lang          Language
		finding, said string
	}{
		{Korean, "2026-01-01 factory-b의 종합 판정은 '위험'입니다.", "2026년 1월 1일 factory-b의 종합 상태는 위험으로 판정되었습니다."},
		{Korean, "판정 근거: 위험 12.3분, 경고 48분, 데이터 공백 3건, 파이프라인 critical 2.3분, 노드 Not Ready 10분, 워크로드 재시작 4회.", "위험 구간 12.3분과 경고 구간 48분이 있었고, 데이터 공백은 3건, 파이프라인 critical 상태는 2.3분이었으며, 노드 Not Ready 상태가 10분, 워크로드 재시작이 4회 발생했습니다."},
		{Korean, "Risk Score는 최저 0, 최고 99.7, 평균 98.31이며, 100에 가까울수록 안전합니다.", "Risk Score는 평균 98.31을 유지했으나 최저 0까지 하락한 구간이 있었고, 최고치는 99.7이었습니다."},
		{Korean, "데이터 수집 상태는 '양호'입니다.", "데이터 수집은 전반적으로 양호했습니다."},
		{Korean, "factory-b는 더미 데이터를 사용하는 테스트베드이므로 아래 내용은 시험 결과이며 실제 사고가 아닙니다.", "본 공장은 테스트베드로 더미 데이터를 사용하므로, 기록된 이벤트는 실제 사고가 아닌 시험 결과입니다."},
		{Korean, "가장 심각한 이벤트는 14:10~14:35의 '온도 임계값 초과'입니다(최고 39.5 °C).", "가장 심각한 이벤트는 14시 10분부터 14시 35분 사이에 나타난 온도 임계값 초과로, 최고 39.5°C가 기록되었습니다."},
		{Korean, "factory_state는 기대 28800건 중 28650건(수집률 0.9948), infra_state는 기대 4320건 중 4308건(수집률 0.9972)이 수집되었습니다.", "factory_state는 28,800건 가운데 28,650건이 수집되어 수집률 0.9948을 보였고, infra_state는 4,320건 가운데 4,308건으로 수집률 0.9972였습니다."},
		{Korean, "데이터 공백은 모든 데이터셋을 합해 3건이며, 가장 긴 공백은 7.55분이었습니다.", "전체 데이터셋에서 3건의 데이터 공백이 확인되었고 그중 가장 긴 것은 7.55분입니다."},
		{Korean, "중복 2건과 읽을 수 없는 객체 1건은 집계에서 제외했습니다.", "중복된 2건과 읽을 수 없는 객체 1건은 집계에 포함되지 않았습니다."},
		{Korean, "자주 나타난 점수 하락 요인은 ai_event_rate, temperature, humidity, node_status, pod_health입니다.", "점수 하락에 자주 관련된 요인으로는 ai_event_rate, temperature, humidity, node_status, pod_health가 있습니다."},
		{Korean, "온도는 평균 24.76 °C, 최고 39.5 °C였고, 32 °C 이상은 25분이었습니다.", "온도는 평균 24.76°C였으며, 최고 39.5°C까지 상승하여 32°C 이상인 상태가 25분간 지속되었습니다."},
		{Korean, "습도는 평균 45.3 %, 최고 88 %였고, 70 % 이상은 10분이었습니다.", "습도는 평균 45.3%, 최고 88%로 70% 이상이 10분 동안 이어졌습니다."},
		{Korean, "이상 소음은 0건 감지되었습니다.", "이상 소음은 감지되지 않았습니다."},
		{Korean, "노드 Not Ready는 동시 최대 3개, 총 10분이었습니다(master, worker1, worker2).", "노드 Not Ready 상태는 master, worker1, worker2에서 동시에 최대 3개까지 나타났고 총 10분간 이어졌습니다."},
		{Korean, "06:00~06:10 'Risk Score 하락' 테스트 이벤트(위험): 최저 Risk Score 0, 지속 시간 600초.", "06:00~06:10에는 위험 수준의 Risk Score 하락 테스트 이벤트가 600초 동안 지속되었으며 최저 Risk Score는 0이었습니다."},
		{Korean, "우선순위 높음: 온도 임계값 초과의 원인과 냉각 상태를 확인하세요. 근거: 온도 32 °C 이상 25분, 최고 39.5 °C.", "높은 우선순위로, 온도가 32 °C 이상이었던 25분과 최고 39.5 °C를 근거로 온도 임계값 초과의 원인과 냉각 상태를 점검해 주십시오."},
		{Korean, "백엔드: 정상이 아닌 샘플은 11건이고 전체 샘플은 1430건입니다.", "백엔드에서는 전체 1,430건의 샘플 중 11건이 정상이 아니었습니다."},
		{Korean, "ALB 대상의 5xx 응답은 하루 합계 7건이고 5분 최대는 7건입니다.", "ALB 대상의 5xx 응답은 하루 동안 합계 7건 발생했고, 5분 최대는 7건이었습니다."},
		{English, "The overall judgement of factory-b on 2026-01-01 is 'danger'.", "On January 1, 2026, factory-b was judged to be in danger overall."},
		{English, "The risk score was 0 at its lowest, 99.7 at its highest and 98.31 on average; 100 is safest.", "The risk score averaged 98.31, with a low of 0 and a high of 99.7."},
		{English, "Of 28800 expected factory_state records 28650 were collected (rate 0.9948), of 4320 expected infra_state records 4308 (rate 0.9972).", "28,650 of the 28,800 expected factory_state records were collected, a rate of 0.9948; for infra_state it was 4,308 of 4,320, a rate of 0.9972."},
		{English, "The temperature was 24.76 °C on average and 39.5 °C at its highest; it was at or above 32 °C for 25 minutes.", "The temperature averaged 24.76 °C and peaked at 39.5 °C, staying at or above 32 °C for 25 minutes."},
		{English, "Abnormal sounds: 0.", "No abnormal sounds were detected."},
		{English, "14:10~14:35: test event 'temperature over its threshold' (danger), highest 39.5 °C, lasting 1500 seconds.", "A test event at the danger level, temperature over its threshold, lasted 1,500 seconds from 14:10 to 14:35 and reached 39.5 °C."},
		{English, "factory-b is a testbed with dummy data: what follows are results of tests and no real incidents.", "Since factory-b is a testbed with dummy data, what follows are test results and not real incidents."},
	} {
		doc := Document{
			Target: "factory-b", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: c.lang,
			Sections: []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", c.finding}}}},
		}
		context := []byte(`{"factory_profile":{"interpretation_mode":"testbed_dummy"}}`)
		assert.Empty(t, Verify(doc, context, replaced(doc, "f", c.said), otherFactories), c.said)
	}
}
