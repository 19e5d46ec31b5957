package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFindingsMayNotBeTurnedOrHalved has sentences that say the opposite of a
// finding, or a part of it that means something else.
func TestFindingsMayNotBeTurnedOrHalved(t *testing.T) {
	for _, c := range []struct {
		lang          Language
		finding, said string
	}{
		{Korean, "판정에 영향을 준 이상 항목은 없었습니다.", "판정에 영향을 준 이상 항목이 발생했습니다."},
		{Korean, "모든 노드가 Ready 상태를 유지했습니다.", "노드가 Ready 상태를 유지하지 못했습니다."},
		{Korean, "모든 노드가 Ready 상태를 유지했습니다.", "노드가 Ready 상태에서 하락했습니다."},
		{Korean, "온도와 습도는 측정되지 않았습니다.", "온도와 습도는 측정되었습니다."},
		{Korean, "추가로 확인할 항목이 없습니다.", "추가로 확인할 항목이 있습니다."},
		{Korean, "노드 Not Ready는 동시 최대 3개, 총 10분이었습니다(master, worker1).", "노드 Ready는 동시 최대 3개, 총 10분이었습니다(master, worker1)."},
		{Korean, "데이터 수집 상태는 '결측 영향 확인 필요'입니다.", "데이터 수집 상태는 '결측 영향 확인'이 되었습니다."},
		{Korean, "데이터 수집 상태는 '양호'입니다.", "데이터 수집 상태는 '양호' 이하입니다."},
		{Korean, "경고 구간은 48분, 위험 구간은 12.3분이었습니다.", "경고 구간은 48분, 위험 구간은 12.3분 이하였습니다."},
		{Korean, "경고 구간은 48분, 위험 구간은 12.3분이었습니다.", "경고 구간은 48분, 위험 구간은 12.3분이었던 것으로 보이지만 집계만의 시험이었습니다."},
		{Korean, "이 리포트는 S3에 저장된 processed 스냅샷을 기준으로 합니다.", "이 리포트는 S3에 저장된 processed 스냅샷을 기준으로 하지 않습니다."},
		{Korean, "factory-b는 더미 데이터를 사용하는 테스트베드이므로 아래 내용은 시험 결과이며 실제 사고가 아닙니다.", "factory-b는 테스트베드이므로 실제 내용이며 시험 사고가 아닙니다."},
		{Korean, "ALB 대상의 5xx 응답은 하루 합계 7건이고 5분 최대는 3건입니다.", "ALB 대상의 5xx 응답은 하루 합계 3건이고 5분 최대는 7건입니다."},
		{Korean, "노드의 마지막 상태는 4개 중 3개 준비이며, 준비되지 않은 노드가 있었던 시간은 9분입니다.", "노드의 마지막 상태는 4개 중 3개 준비되지 않은 노드이며, 준비 시간은 9분입니다."},
		{Korean, "백엔드: 정상이 아닌 샘플은 11건이고 전체 샘플은 1430건입니다.", "백엔드: 정상 샘플은 11건이고 전체 샘플은 1430건이 정상이 아니었습니다."},
		{Korean, "중복 2건과 읽을 수 없는 객체 1건은 집계에서 제외했습니다.", "중복 2건과 읽을 수 없는 객체 1건은 집계에 포함했습니다."},
		{Korean, "중복 2건과 읽을 수 없는 객체 1건은 집계에서 제외했습니다.", "읽을 수 없는 객체 2건과 중복 1건은 집계에서 제외했습니다."},
		{Korean, "함수 3개 중 오류나 스로틀이 있었던 함수는 1개입니다.", "함수 3개 중 오류나 스로틀이 없었던 함수는 1개입니다."},
		{Korean, "데이터 공백은 모든 데이터셋을 합해 3건이며, 가장 긴 공백은 7.55분이었습니다.", "데이터 공백은 3건이며, 모든 공백은 7.55분이었습니다."},
		{English, "Every node stayed ready.", "Every node stayed down."},
		{English, "Every node stayed ready.", "The node fell."},
		{English, "Nothing spoke against it.", "It spoke against it."},
		{English, "Temperature and humidity were not measured.", "Temperature and humidity were measured."},
		{English, "5xx answers of the ALB targets: 7 in the day, at most 3 in 5 minutes.", "5xx answers of the ALB targets: 3 in the day, at most 7 in 5 minutes."},
		{English, "Priority high: Check the nodes. Reason: nodes not ready for 10 minutes.", "Priority high: Check the nodes. Reason: nodes ready for 10 minutes."},
		{English, "Data collection is 'good'.", "Data collection was less than 'good'."},
		{English, "Data collection is 'good'.", "Data collection was below 'good' at last."},
		{English, "Left out: duplicates 2, unreadable objects 1.", "Left out: unreadable objects 2, duplicates 1."},
		{English, "Functions with errors or throttles: 1 of 3.", "Functions without errors or throttles: 1 of 3."},
		{English, "Functions with errors or throttles: 1 of 3.", "Functions with errors or throttles: 3 of 1."},
		{English, "3 of 4 nodes were ready at last; some node was not ready for 9 minutes.", "3 of 4 nodes were not ready at last; some node was ready for 9 minutes."},
		{English, "Of 1440 expected fast snapshots 1430 were collected, a rate of 0.99.", "Of 1440 expected slow snapshots 1430 were collected, a rate of 0.99."},
	} {
		doc := Document{
			Target: "factory-b", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: c.lang,
			Sections: []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", c.finding}, {"g", say("저장된 객체를 모읍니다.", "Objects are kept here.").in(c.lang)}}}},
		}
		assert.Empty(t, Verify(doc, []byte(testbedContext), verbatim(doc), otherFactories), c.finding)
		assert.NotEmpty(t, Verify(doc, []byte(testbedContext), replaced(doc, "f", c.said), otherFactories), c.said)
	}
}
