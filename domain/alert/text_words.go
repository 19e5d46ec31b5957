package alert

import "fmt"

// Language is the language of messages.
type Language string

// The languages of messages.
const (
	Korean  Language = "ko"
	English Language = "en"
)

// Languages are all of them.
var Languages = []Language{Korean, English}

// words are the fixed texts of a message.
type words struct {
	heading                                                       map[Severity]string
	recovered                                                     string
	severity                                                      map[string]string
	source                                                        map[SourceType]string
	what, state, why, causes, gates, errors, data, repeat, detail string
	fieldSeverity, fieldTarget, fieldSnapshot, fieldStatus        string
	fieldScore, fieldCause, fieldSummary                          string
	item, reason, value, contribution, level, condition           string
	repeatText, recoveredText, more, again                        string
	detected, back                                                func(target, severity string) string
	topics                                                        map[Topic]string
}

var vocabulary = map[Language]words{Korean: korean, English: english}

var korean = words{
	heading:   map[Severity]string{Danger: "위험 알림", Warning: "경고 알림"},
	recovered: "복구 알림",
	severity:  map[string]string{"danger": "위험(DANGER)", "warning": "경고(WARNING)", "safe": "안전(SAFE)"},
	source: map[SourceType]string{
		SourceFactory: "공장 상태 스냅샷", SourceFast: "클라우드 인프라 Fast 스냅샷", SourceSlow: "클라우드 인프라 Slow 스냅샷",
		SourceApp: "애플리케이션 규칙", SourceArtifacts: "아티팩트 배포", SourceObservability: "관측 데이터 점검",
	},
	what: "무엇이 문제인가요?", state: "현재 상태", why: "왜 발생했나요?", causes: "주요 원인", gates: "위험 판단 기준",
	errors: "오류 상세", data: "확인할 데이터", repeat: "중복 알림 제어", detail: "상세",
	fieldSeverity: "심각도", fieldTarget: "공장/대상", fieldSnapshot: "수집/스냅샷", fieldStatus: "상태",
	fieldScore: "위험 점수", fieldCause: "원인", fieldSummary: "설명",
	item: "항목", reason: "원인", value: "현재 값", contribution: "영향도", level: "등급", condition: "기준",
	repeatText:    "동일 조건은 cooldown 동안 재전송되지 않습니다.",
	recoveredText: "조건이 더 이상 감지되지 않습니다.",
	more:          "… 외 %d건",
	again:         "동일 조건이 다시 감지되었습니다.",
	detected: func(target, severity string) string {
		return fmt.Sprintf("%s에서 %s 조건이 감지되었습니다.", target, severity)
	},
	back: func(target, severity string) string {
		return fmt.Sprintf("%s의 %s 조건이 해소되었습니다.", target, severity)
	},
	topics: map[Topic]string{
		TopicLambda: "Lambda 상태", TopicDynamoDB: "DynamoDB 상태", TopicALB: "ALB 상태", TopicCluster: "EKS 클러스터 상태",
		TopicNodegroup: "EKS 노드그룹 상태", TopicAutoscaling: "Auto Scaling 상태", TopicSection: "섹션 상태",
	},
}

var english = words{
	heading:   map[Severity]string{Danger: "Danger", Warning: "Warning"},
	recovered: "Recovered",
	severity:  map[string]string{"danger": "DANGER", "warning": "WARNING", "safe": "SAFE"},
	source: map[SourceType]string{
		SourceFactory: "Factory state snapshot", SourceFast: "Cloud infra fast snapshot", SourceSlow: "Cloud infra slow snapshot",
		SourceApp: "Application rule", SourceArtifacts: "Artifact rollout", SourceObservability: "Observability check",
	},
	what: "What is wrong?", state: "Current state", why: "Why did it happen?", causes: "Main causes", gates: "Risk gates",
	errors: "Errors", data: "Where to look", repeat: "Repeated alerts", detail: "Details",
	fieldSeverity: "Severity", fieldTarget: "Factory/target", fieldSnapshot: "Snapshot", fieldStatus: "Status",
	fieldScore: "Risk score (100 is safest)", fieldCause: "Cause", fieldSummary: "Description",
	item: "Item", reason: "Cause", value: "Current value", contribution: "Contribution", level: "Level", condition: "Gate",
	repeatText:    "The same condition is not sent again during its cooldown.",
	recoveredText: "The condition is no longer observed.",
	more:          "… and %d more",
	again:         "The same condition was observed again.",
	detected: func(target, severity string) string {
		return fmt.Sprintf("A %s condition was detected at %s.", severity, target)
	},
	back: func(target, severity string) string {
		return fmt.Sprintf("The %s condition at %s is over.", severity, target)
	},
	topics: map[Topic]string{
		TopicLambda: "Lambda", TopicDynamoDB: "DynamoDB", TopicALB: "Load balancer", TopicCluster: "EKS cluster",
		TopicNodegroup: "EKS node groups", TopicAutoscaling: "Auto Scaling", TopicSection: "Section",
	},
}
