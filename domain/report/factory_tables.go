package report

import (
	"fmt"

	"millrace/domain/exact"
)

// table has its columns in the document's language.
func (w documentWriter) table(columns []phrase, rows [][]string) Table {
	table := Table{Rows: rows}
	for _, column := range columns {
		table.Columns = append(table.Columns, column.in(w.lang))
	}
	return table
}

func (w documentWriter) keyFigures() Table {
	d := w.daily
	row := func(name phrase, value string) []string { return []string{name.in(w.lang), value} }
	return w.table([]phrase{say("지표", "Figure"), say("값", "Value")}, [][]string{
		row(say("종합 판정", "Overall"), word(verdictWords, d.OverallStatus).in(w.lang)),
		row(say("데이터 수집", "Collection"), word(collectionWords, d.CollectionStatus).in(w.lang)),
		row(say("Risk Score 최저 / 평균 / 최고", "Risk score lowest / average / highest"),
			figure(d.Risk.MinScore)+" / "+figure(d.Risk.AvgScore)+" / "+figure(d.Risk.MaxScore)),
		row(say("경고 / 위험 시간(분)", "Warning / danger (minutes)"), d.Risk.WarningMinutes.String()+" / "+d.Risk.DangerMinutes.String()),
		row(say("최고 온도(°C)", "Highest temperature (°C)"), figure(d.FactoryState.TemperatureMax)),
		row(say("최고 습도(%)", "Highest humidity (%)"), figure(d.FactoryState.HumidityMax)),
		row(say("최고 AI 점수", "Highest AI score"), figure(greatestOf(d.aiScores()...))),
		row(say("노드 Not Ready(분)", "Nodes not ready (minutes)"), d.Infra.NodeNotReadyMinutes.String()),
		row(say("워크로드 재시작", "Workload restarts"), fmt.Sprint(d.Infra.WorkloadRestartTotal)),
		row(say("데이터 공백 / 최장(분)", "Gaps / longest (minutes)"), fmt.Sprintf("%d / %s", d.DataQuality.DataGapCount, d.DataQuality.MaxGapMinutes)),
	})
}

func (w documentWriter) collectionTable() Table {
	q := w.daily.DataQuality
	row := func(name string, expected, actual int64, rate exact.Decimal) []string {
		return []string{name, fmt.Sprint(expected), fmt.Sprint(actual), rate.String()}
	}
	return w.table([]phrase{say("데이터셋", "Dataset"), say("기대 건수", "Expected"), say("수집 건수", "Collected"), say("수집률", "Rate")}, [][]string{
		row(FactoryStateDataset, q.FactoryStateExpectedCount, q.FactoryStateActualCount, q.FactoryStateCollectionRate),
		row(RiskScoreDataset, q.RiskScoreExpectedCount, q.RiskScoreActualCount, q.RiskScoreCollectionRate),
		row(InfraStateDataset, q.InfraStateExpectedCount, q.InfraStateActualCount, q.InfraStateCollectionRate),
	})
}

func (w documentWriter) gapTable() Table {
	var rows [][]string
	for _, gap := range w.daily.DataQuality.GapWindows {
		rows = append(rows, []string{gap.TimeRange, gap.Dataset, word(gapTypeWords, gap.GapType).in(w.lang), gap.DurationSeconds.String()})
	}
	return w.table([]phrase{say("공백 시간대", "Gap"), say("데이터셋", "Dataset"), say("위치", "Where"), say("길이(초)", "Seconds")}, rows)
}

func (w documentWriter) riskTable() Table {
	risk := w.daily.Risk
	return w.table([]phrase{
		say("최저", "Lowest"), say("p05", "p05"), say("평균", "Average"), say("p95", "p95"), say("최고", "Highest"),
		say("경고(분)", "Warning (minutes)"), say("위험(분)", "Danger (minutes)"), say("주요 원인", "Main causes"),
	}, [][]string{{
		figure(risk.MinScore), figure(risk.P05Score), figure(risk.AvgScore), figure(risk.P95Score), figure(risk.MaxScore),
		risk.WarningMinutes.String(), risk.DangerMinutes.String(), listed(risk.TopCauses),
	}})
}

func (w documentWriter) sensorTable() Table {
	s := w.daily.FactoryState
	row := func(name, unit string, over string, values ...*exact.Decimal) []string {
		cells := []string{word(quantityWords, name).in(w.lang) + " (" + unit + ")"}
		for _, value := range values {
			cells = append(cells, figure(value))
		}
		return append(cells, over)
	}
	return w.table([]phrase{
		say("측정값", "Measurement"), say("최저", "Lowest"), say("p05", "p05"), say("평균", "Average"), say("p95", "p95"), say("최고", "Highest"),
		say("임계값 초과(분)", "Over threshold (minutes)"),
	}, [][]string{
		row(quantityTemperature, "°C", s.TemperatureOverThresholdMinutes.String(), s.TemperatureMin, s.TemperatureP05, s.TemperatureAvg, s.TemperatureP95, s.TemperatureMax),
		row(quantityHumidity, "%", s.HumidityOverThresholdMinutes.String(), s.HumidityMin, s.HumidityP05, s.HumidityAvg, s.HumidityP95, s.HumidityMax),
		row(quantityPressure, "hPa", "-", s.PressureMin, s.PressureP05, s.PressureAvg, s.PressureP95, s.PressureMax),
	})
}

func (w documentWriter) aiTable() Table {
	s := w.daily.FactoryState
	row := func(name string, peak, p95 *exact.Decimal, seconds exact.Decimal) []string {
		return []string{word(quantityWords, name).in(w.lang), figure(peak), figure(p95), seconds.String()}
	}
	return w.table([]phrase{say("AI 점수", "AI score"), say("최고", "Highest"), say("p95", "p95"), say("임계값 초과(초)", "Over threshold (seconds)")}, [][]string{
		row(quantityFire, s.MaxFireScore, s.FireScoreP95, s.FireScoreOverThresholdSeconds),
		row(quantityFall, s.MaxFallScore, s.FallScoreP95, s.FallScoreOverThresholdSeconds),
		row(quantityBend, s.MaxBendScore, s.BendScoreP95, s.BendScoreOverThresholdSeconds),
	})
}

func (w documentWriter) infraTable() Table {
	d := w.daily
	row := func(name phrase, value string) []string { return []string{name.in(w.lang), value} }
	rows := [][]string{
		row(say("infra_state 건수", "infra_state records"), fmt.Sprint(d.Infra.InfraStateCount)),
		row(say("동시 Not Ready 노드 최대", "Most nodes not ready at once"), fmt.Sprint(d.Infra.NodeNotReadyCount)),
		row(say("노드 Not Ready(분)", "Nodes not ready (minutes)"), d.Infra.NodeNotReadyMinutes.String()),
		row(say("워크로드 재시작", "Workload restarts"), fmt.Sprint(d.Infra.WorkloadRestartTotal)),
		row(say("워크로드 비정상(분)", "Workloads unhealthy (minutes)"), d.Infra.UnhealthyWorkloadMinutes.String()),
		row(say("파이프라인 경고 / critical(분)", "Pipeline warning / critical (minutes)"), d.Pipeline.WarningMinutes.String()+" / "+d.Pipeline.CriticalMinutes.String()),
		row(say("5분 이상 공백이 있던 시간대", "Hours with a gap of 5 minutes or more"), fmt.Sprint(d.Pipeline.CriticalGapCount)),
	}
	for _, node := range d.Infra.NotReadyNodes[:min(maxEvidenceNames, len(d.Infra.NotReadyNodes))] {
		rows = append(rows, row(say("%[1]s Not Ready(분)", "%[1]s not ready (minutes)", node.Name), node.Minutes.String()))
	}
	for _, workload := range d.Infra.UnhealthyWorkloads {
		rows = append(rows, row(say("%[1]s 비정상(분)", "%[1]s unhealthy (minutes)", workload.Name), workload.Minutes.String()))
	}
	if final := d.Snapshot; final != nil {
		rows = append(rows, row(say("마지막 상태", "Last state"), d.clock(final.UpdatedAt)+" Risk Score "+figure(final.RiskScore)))
	}
	return w.table([]phrase{say("항목", "Item"), say("값", "Value")}, rows)
}

func (w documentWriter) eventTable() Table {
	var rows [][]string
	for _, event := range w.daily.Events[:min(maxEventRows, len(w.daily.Events))] {
		rows = append(rows, []string{
			event.TimeRange, word(severityWords, event.Severity).in(w.lang), event.name().in(w.lang), event.detail().in(w.lang),
			event.DurationSeconds.String(), event.SeverityScore.String(),
		})
	}
	return w.table([]phrase{
		say("시간대", "Time"), say("심각도", "Severity"), say("이벤트", "Event"), say("근거", "Evidence"),
		say("지속(초)", "Seconds"), say("심각도 점수", "Severity score"),
	}, rows)
}

// verificationTable has the raw figures that the text is checked by.
func (w documentWriter) verificationTable() Table {
	var rows [][]string
	for _, anchor := range w.daily.anchors() {
		rows = append(rows, []string{anchor.Name, anchor.Text})
	}
	d := w.daily
	for _, figure := range []struct {
		name  string
		value fmt.Stringer
	}{
		{"risk.warning_minutes", d.Risk.WarningMinutes},
		{"risk.danger_minutes", d.Risk.DangerMinutes},
		{"data_quality.risk_score_collection_rate", d.DataQuality.RiskScoreCollectionRate},
		{"data_quality.max_gap_seconds", d.DataQuality.MaxGapSeconds},
		{"data_quality.gap_minutes", d.DataQuality.GapMinutes},
		{"infra.node_not_ready_minutes", d.Infra.NodeNotReadyMinutes},
		{"pipeline.pipeline_warning_minutes", d.Pipeline.WarningMinutes},
		{"pipeline.pipeline_critical_minutes", d.Pipeline.CriticalMinutes},
	} {
		rows = append(rows, []string{figure.name, figure.value.String()})
	}
	return w.table([]phrase{say("수치", "Figure"), say("값", "Value")}, rows)
}
