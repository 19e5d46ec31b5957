package report

import "strings"

func (w documentWriter) summaryFindings() []phrase {
	d := w.daily
	findings := []phrase{
		say("%[1]s %[2]s의 종합 판정은 '%[3]s'입니다.", "The overall judgement of %[2]s on %[1]s is '%[3]s'.",
			d.ReportDate, d.FactoryID, word(verdictWords, d.OverallStatus)),
		w.verdictFinding(),
		w.scoreFinding(),
		say("데이터 수집 상태는 '%[1]s'입니다.", "Data collection is '%[1]s'.", word(collectionWords, d.CollectionStatus)),
	}
	if d.FactoryProfile.Testbed() {
		findings = append(findings, say("%[1]s는 더미 데이터를 사용하는 테스트베드이므로 아래 내용은 시험 결과이며 실제 사고가 아닙니다.",
			"%[1]s is a testbed with dummy data: what follows are results of tests and no real incidents.", d.FactoryID))
	}
	if len(d.Events) > 0 {
		findings = append(findings, w.mainEvent(d.Events[0]))
	}
	return findings
}

// verdictFinding says what the judgement follows from.
func (w documentWriter) verdictFinding() phrase {
	d := w.daily
	var korean, english []string
	for _, reason := range []struct {
		holds bool
		text  phrase
	}{
		{d.Risk.DangerMinutes.Sign() > 0, say("위험 %[1]s분", "danger minutes %[1]s", d.Risk.DangerMinutes)},
		{d.Risk.WarningMinutes.Sign() > 0, say("경고 %[1]s분", "warning minutes %[1]s", d.Risk.WarningMinutes)},
		{d.DataQuality.DataGapCount > 0, say("데이터 공백 %[1]d건", "data gaps %[1]d", d.DataQuality.DataGapCount)},
		{d.Pipeline.CriticalMinutes.Sign() > 0, say("파이프라인 critical %[1]s분", "critical pipeline minutes %[1]s", d.Pipeline.CriticalMinutes)},
		{d.Infra.NodeNotReadyCount > 0, say("노드 Not Ready %[1]s분", "minutes with nodes not ready %[1]s", d.Infra.NodeNotReadyMinutes)},
		{d.Infra.WorkloadRestartTotal > 0, say("워크로드 재시작 %[1]d회", "workload restarts %[1]d", d.Infra.WorkloadRestartTotal)},
	} {
		if reason.holds {
			korean, english = append(korean, reason.text.korean), append(english, reason.text.english)
		}
	}
	if len(korean) == 0 {
		return say("판정에 영향을 준 이상 항목은 없었습니다.", "Nothing spoke against it.")
	}
	return phrase{korean: "판정 근거: " + strings.Join(korean, ", ") + ".", english: "It follows from: " + strings.Join(english, ", ") + "."}
}

func (w documentWriter) scoreFinding() phrase {
	risk := w.daily.Risk
	if risk.MinScore == nil {
		return say("Risk Score가 수집되지 않았습니다.", "No risk scores were collected.")
	}
	return say("Risk Score는 최저 %[1]s, 최고 %[2]s, 평균 %[3]s이며, 100에 가까울수록 안전합니다.",
		"The risk score was %[1]s at its lowest, %[2]s at its highest and %[3]s on average; 100 is safest.",
		figure(risk.MinScore), figure(risk.MaxScore), figure(risk.AvgScore))
}

func (w documentWriter) mainEvent(event Event) phrase {
	return say("가장 심각한 이벤트는 %[1]s의 '%[2]s'입니다(%[3]s).", "The gravest event was '%[2]s' at %[1]s (%[3]s).",
		event.TimeRange, event.name(), event.detail())
}

func (w documentWriter) collectionFindings() []phrase {
	q := w.daily.DataQuality
	findings := []phrase{
		say("factory_state는 기대 %[1]d건 중 %[2]d건(수집률 %[3]s), infra_state는 기대 %[4]d건 중 %[5]d건(수집률 %[6]s)이 수집되었습니다.",
			"Of %[1]d expected factory_state records %[2]d were collected (rate %[3]s), of %[4]d expected infra_state records %[5]d (rate %[6]s).",
			q.FactoryStateExpectedCount, q.FactoryStateActualCount, q.FactoryStateCollectionRate,
			q.InfraStateExpectedCount, q.InfraStateActualCount, q.InfraStateCollectionRate),
	}
	if q.DataGapCount == 0 {
		findings = append(findings, say("데이터 공백은 없었습니다.", "There were no gaps in the data."))
	} else {
		findings = append(findings, say("데이터 공백은 모든 데이터셋을 합해 %[1]d건이며, 가장 긴 공백은 %[2]s분이었습니다.",
			"Gaps in the data, over all datasets: %[1]d, the longest of %[2]s minutes.", q.DataGapCount, q.MaxGapMinutes))
	}
	if q.EmptyHourCount > 0 {
		findings = append(findings, say("데이터가 전혀 없는 시간대는 %[1]d개였습니다.", "Hours without any data: %[1]d.", q.EmptyHourCount))
	}
	if q.MissingHourCount > 0 {
		findings = append(findings, say("집계되지 않은 시간대는 %[1]d개였습니다.", "Hours without a summary: %[1]d.", q.MissingHourCount))
	}
	if q.InvalidRecordCount > 0 || q.DuplicateMessageCount > 0 {
		findings = append(findings, say("중복 %[1]d건과 읽을 수 없는 객체 %[2]d건은 집계에서 제외했습니다.",
			"Left out: duplicates %[1]d, unreadable objects %[2]d.", q.DuplicateMessageCount, q.InvalidRecordCount))
	}
	return findings
}

func (w documentWriter) riskFindings() []phrase {
	risk := w.daily.Risk
	findings := []phrase{w.scoreFinding()}
	if risk.MinScore == nil {
		return findings
	}
	if risk.WarningMinutes.Sign() == 0 && risk.DangerMinutes.Sign() == 0 {
		return append(findings, say("경고 또는 위험 구간은 없었습니다.", "No minute was at the level of warning or danger."))
	}
	findings = append(findings, say("경고 구간은 %[1]s분, 위험 구간은 %[2]s분이었습니다.", "Minutes at the level of warning: %[1]s, of danger: %[2]s.",
		risk.WarningMinutes, risk.DangerMinutes))
	if len(risk.TopCauses) > 0 {
		findings = append(findings, say("자주 나타난 점수 하락 요인은 %[1]s입니다.", "The most frequent causes were %[1]s.", strings.Join(fitting(risk.TopCauses), ", ")))
	}
	if len(risk.WorstPeriods) > 0 {
		worst := risk.WorstPeriods[0]
		findings = append(findings, say("Risk Score가 가장 낮았던 구간은 %[1]s(최저 %[2]s)입니다.", "The score was lowest at %[1]s (down to %[2]s).", worst.TimeRange, worst.MinScore))
	}
	return findings
}

func (w documentWriter) sensorFindings() []phrase {
	s, bounds := w.daily.FactoryState, w.daily.Thresholds
	var findings []phrase
	if s.TemperatureMax == nil && s.HumidityMax == nil {
		findings = append(findings, say("온도와 습도는 측정되지 않았습니다.", "Temperature and humidity were not measured."))
	} else {
		findings = append(findings,
			say("온도는 평균 %[1]s °C, 최고 %[2]s °C였고, %[3]s °C 이상은 %[4]s분이었습니다.",
				"The temperature was %[1]s °C on average and %[2]s °C at its highest; it was at or above %[3]s °C for %[4]s minutes.",
				figure(s.TemperatureAvg), figure(s.TemperatureMax), bounds.TemperatureWarning, s.TemperatureOverThresholdMinutes),
			say("습도는 평균 %[1]s %%, 최고 %[2]s %%였고, %[3]s %% 이상은 %[4]s분이었습니다.",
				"The humidity was %[1]s %% on average and %[2]s %% at its highest; it was at or above %[3]s %% for %[4]s minutes.",
				figure(s.HumidityAvg), figure(s.HumidityMax), bounds.HumidityWarning, s.HumidityOverThresholdMinutes))
	}
	if greatestOf(w.daily.aiScores()...) == nil {
		findings = append(findings, say("AI 점수는 측정되지 않았습니다.", "AI scores were not measured."))
	} else {
		findings = append(findings, say("AI 점수 최고치는 화재 %[1]s, 넘어짐 %[2]s, 굽힘 %[3]s이며, 급등 이벤트는 %[4]d건이었습니다.",
			"The highest AI scores were fire %[1]s, fall %[2]s, bend %[3]s; spikes: %[4]d.",
			figure(s.MaxFireScore), figure(s.MaxFallScore), figure(s.MaxBendScore), w.spikeCount()))
	}
	return append(findings, say("이상 소음은 %[1]d건 감지되었습니다.", "Abnormal sounds: %[1]d.", s.AbnormalSoundCount))
}

func (w documentWriter) spikeCount() int64 {
	var count int64
	for _, event := range w.daily.Events {
		count += oneIf(event.Type == EventAI)
	}
	return count
}

func (w documentWriter) infraFindings() []phrase {
	infra, pipeline := w.daily.Infra, w.daily.Pipeline
	var findings []phrase
	if infra.InfraStateCount == 0 {
		findings = append(findings, say("인프라 상태가 수집되지 않았습니다.", "No state of the infrastructure was collected."))
	} else {
		findings = append(findings, w.nodeFinding(), w.workloadFinding())
	}
	return append(findings, say("파이프라인 경고는 %[1]s분, critical은 %[2]s분이었습니다.", "The pipeline was at warning for %[1]s minutes and critical for %[2]s minutes.",
		pipeline.WarningMinutes, pipeline.CriticalMinutes))
}

func (w documentWriter) nodeFinding() phrase {
	infra := w.daily.Infra
	if infra.NodeNotReadyCount == 0 {
		return say("모든 노드가 Ready 상태를 유지했습니다.", "Every node stayed ready.")
	}
	return say("노드 Not Ready는 동시 최대 %[1]d개, 총 %[2]s분이었습니다%[3]s.", "Nodes not ready: at most %[1]d at once, for %[2]s minutes%[3]s.",
		infra.NodeNotReadyCount, infra.NodeNotReadyMinutes, inBrackets(firstNames(infra.NotReadyNodes)))
}

func (w documentWriter) workloadFinding() phrase {
	infra := w.daily.Infra
	return say("워크로드 재시작은 %[1]d회, 비정상 워크로드가 있던 시간은 %[2]s분이었습니다%[3]s.",
		"Workload restarts: %[1]d; workloads were unhealthy for %[2]s minutes%[3]s.",
		infra.WorkloadRestartTotal, infra.UnhealthyWorkloadMinutes, inBrackets(firstNames(infra.UnhealthyWorkloads)))
}

// firstNames are the names of the longest in trouble.
func firstNames(list []NameMinutes) []string {
	var names []string
	for _, one := range list[:min(maxEvidenceNames, len(list))] {
		names = append(names, one.Name)
	}
	return names
}

// maxEventFindings bounds the events that are worded.
const maxEventFindings = 5

func (w documentWriter) eventFindings() []phrase {
	if len(w.daily.Events) == 0 {
		return []phrase{say("주요 이벤트가 없었습니다.", "There were no events.")}
	}
	var findings []phrase
	for _, event := range w.daily.Events[:min(maxEventFindings, len(w.daily.Events))] {
		findings = append(findings, w.eventFinding(event))
	}
	if hidden := w.daily.EventCount - int64(min(maxEventRows, len(w.daily.Events))); hidden > 0 {
		findings = append(findings, say("표에 없는 더 가벼운 이벤트가 %[1]d건 더 있었습니다.", "Milder events that the table leaves out: %[1]d.", hidden))
	}
	return findings
}

// eventFinding calls the events of a testbed tests.
func (w documentWriter) eventFinding(event Event) phrase {
	kind := say("이벤트", "event")
	if w.daily.FactoryProfile.Testbed() {
		kind = say("테스트 이벤트", "test event")
	}
	return say("%[1]s '%[2]s' %[3]s(%[4]s): %[5]s, 지속 시간 %[6]s초.", "%[1]s: %[3]s '%[2]s' (%[4]s), %[5]s, lasting %[6]s seconds.",
		event.TimeRange, event.name(), kind, word(severityWords, event.Severity), event.detail(), event.DurationSeconds)
}

func (w documentWriter) checkFindings() []phrase {
	rules := w.daily.checkRules()
	if len(rules) == 0 {
		return []phrase{say("추가로 확인할 항목이 없습니다.", "Nothing needs a check.")}
	}
	var findings []phrase
	for _, rule := range rules {
		findings = append(findings, say("우선순위 %[1]s: %[2]s 근거: %[3]s.", "Priority %[1]s: %[2]s Reason: %[3]s.", word(priorityWords, rule.priority), rule.check, rule.reason(w.daily)))
	}
	return findings
}

func (w documentWriter) limitationFindings() []phrase { return w.daily.limitations() }
