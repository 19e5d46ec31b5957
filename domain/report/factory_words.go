package report

import "strings"

// The sections of a factory's report, in order.
const (
	sectionSummary      = "summary"
	sectionKeyFigures   = "key_metrics"
	sectionCollection   = "collection"
	sectionRisk         = "risk"
	sectionSensors      = "sensor_ai"
	sectionInfra        = "infra"
	sectionEvents       = "events"
	sectionChecks       = "checks"
	sectionLimitations  = "limitations"
	sectionVerification = "verification"
)

var headings = map[string]phrase{
	sectionSummary:      say("요약", "Summary"),
	sectionKeyFigures:   say("핵심 지표 표", "Key figures"),
	sectionCollection:   say("데이터 수집 상태", "Data collection"),
	sectionRisk:         say("Risk Score", "Risk score"),
	sectionSensors:      say("센서 및 AI 이벤트", "Sensors and AI events"),
	sectionInfra:        say("인프라 상태", "Infrastructure"),
	sectionEvents:       say("주요 이벤트", "Main events"),
	sectionChecks:       say("확인 필요 항목", "Recommended checks"),
	sectionLimitations:  say("데이터 한계", "Limits of the data"),
	sectionVerification: say("검증 기준 수치", "Figures for verification"),
}

var verdictWords = map[Verdict]phrase{
	Normal: say("정상", "normal"), Warning: say("주의", "warning"), Danger: say("위험", "danger"),
}

var collectionWords = map[CollectionStatus]phrase{
	CollectionGood:    say("양호", "good"),
	CollectionPartial: say("일부 결측", "partly missing"),
	CollectionPoor:    say("결측 영향 확인 필요", "impact of missing data must be checked"),
}

var severityWords = map[Severity]phrase{
	SeverityInfo: say("정보", "info"), SeverityWarning: say("경고", "warning"), SeverityDanger: say("위험", "danger"),
}

var priorityWords = map[string]phrase{
	priorityHigh: say("높음", "high"), priorityMedium: say("보통", "medium"), priorityLow: say("낮음", "low"),
}

var quantityWords = map[string]phrase{
	quantityTemperature: say("온도", "temperature"),
	quantityHumidity:    say("습도", "humidity"),
	quantityPressure:    say("기압", "pressure"),
	quantityFire:        say("화재 점수", "fire score"),
	quantityFall:        say("넘어짐 점수", "fall score"),
	quantityBend:        say("굽힘 점수", "bend score"),
}

var quantityUnits = map[string]string{quantityTemperature: " °C", quantityHumidity: " %", quantityPressure: " hPa"}

var gapTypeWords = map[GapType]phrase{
	GapHourEmpty: say("전체 구간 없음", "nothing at all"),
	GapHourStart: say("시작 구간", "at the start"),
	GapInternal:  say("중간 구간", "in between"),
	GapHourEnd:   say("끝 구간", "at the end"),
}

// word is a word of a vocabulary; what isn't in it stands for itself.
func word[K ~string](words map[K]phrase, key K) phrase {
	if known, ok := words[key]; ok {
		return known
	}
	return phrase{korean: string(key), english: string(key)}
}

// name is what an event is called.
func (e Event) name() phrase {
	subject := word(quantityWords, e.Subject)
	switch e.Type {
	case EventRisk:
		return say("Risk Score 하락", "risk score degraded")
	case EventSensor:
		return say("%[1]s 임계값 초과", "%[1]s over its threshold", subject)
	case EventAI:
		return say("%[1]s 급등", "%[1]s spike", subject)
	case EventNode:
		return say("노드 Not Ready", "nodes not ready")
	case EventWorkload:
		return say("워크로드 비정상", "workloads unhealthy")
	case EventRestart:
		return say("워크로드 재시작", "workload restarts")
	}
	return phrase{korean: string(e.Type), english: string(e.Type)}
}

// detail is what an event was seen by.
func (e Event) detail() phrase {
	switch e.Type {
	case EventRisk:
		return say("최저 Risk Score %[1]s", "lowest risk score %[1]s", figure(e.Evidence.MinScore))
	case EventSensor, EventAI:
		return say("최고 %[1]s%[2]s", "highest %[1]s%[2]s", figure(e.peak()), quantityUnits[e.Subject])
	case EventNode:
		return say("동시 최대 %[1]d/%[2]d개%[3]s", "at most %[1]d of %[2]d at once%[3]s",
			e.Evidence.NotReadyCount, e.Evidence.TotalCount, inBrackets(e.Evidence.Nodes))
	case EventWorkload:
		return say("동시 최대 %[1]d/%[2]d개%[3]s", "at most %[1]d of %[2]d at once%[3]s",
			e.Evidence.NotReadyCount, e.Evidence.TotalCount, inBrackets(e.Evidence.Workloads))
	case EventRestart:
		return say("재시작 %[1]d회%[2]s", "restarts: %[1]d%[2]s", e.Evidence.RestartIncrease, inBrackets(e.Evidence.Workloads))
	}
	return phrase{}
}

// inBrackets are names that follow a phrase.
func inBrackets(names []string) phrase {
	if len(names) == 0 {
		return phrase{}
	}
	return say("(%[1]s)", " (%[1]s)", strings.Join(fitting(names), ", "))
}

// listed are names in a row; a dash for none.
func listed(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
