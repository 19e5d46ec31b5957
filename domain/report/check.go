package report

import (
	"slices"
	"time"

	"millrace/domain/exact"
)

// maxChecks bounds what a report asks people to look at.
const maxChecks = 5

// The priorities of checks, highest first.
const (
	priorityHigh   = "high"
	priorityMedium = "medium"
	priorityLow    = "low"
)

// From where on a figure asks for a check (factory.md, 7.5).
var (
	lowScore       = exact.FromInt(60)
	tenMinutes     = exact.FromInt(10)
	fiveMinutes    = exact.FromInt(5)
	alarmingSpike  = exact.MustParse("0.95")
	restartsToLook = int64(3)
)

// checkRule recommends a check where its condition holds.
type checkRule struct {
	id, priority string
	holds        func(*FactoryDaily) bool
	check        phrase
	reason       func(*FactoryDaily) phrase
}

// checkRules are in the order of importance.
var checkRules = []checkRule{
	{
		id: "risk_low", priority: priorityHigh,
		holds: func(d *FactoryDaily) bool {
			bad := d.Risk.WarningMinutes.Add(d.Risk.DangerMinutes)
			return d.Risk.MinScore != nil && d.Risk.MinScore.Less(lowScore) && bad.AtLeast(tenMinutes)
		},
		check: say("Risk Score 하락 구간의 원인을 확인하세요.", "Check what lowered the risk score."),
		reason: func(d *FactoryDaily) phrase {
			return say("최저 Risk Score %[1]s, 경고 %[2]s분, 위험 %[3]s분", "lowest risk score %[1]s, warning minutes %[2]s, danger minutes %[3]s",
				d.Risk.MinScore, d.Risk.WarningMinutes, d.Risk.DangerMinutes)
		},
	},
	{
		id: "temperature_over_threshold", priority: priorityHigh,
		holds: func(d *FactoryDaily) bool {
			return d.FactoryState.TemperatureOverThresholdMinutes.AtLeast(tenMinutes)
		},
		check: say("온도 임계값 초과의 원인과 냉각 상태를 확인하세요.", "Check cooling and what drove the temperature over its threshold."),
		reason: func(d *FactoryDaily) phrase {
			return say("온도 %[1]s °C 이상 %[2]s분, 최고 %[3]s °C", "at or above %[1]s °C for %[2]s minutes, highest %[3]s °C",
				d.Thresholds.TemperatureWarning, d.FactoryState.TemperatureOverThresholdMinutes, figure(d.FactoryState.TemperatureMax))
		},
	},
	{
		id: "ai_score_critical", priority: priorityHigh,
		holds: func(d *FactoryDaily) bool { return reachesAny(alarmingSpike, d.aiScores()...) },
		check: say("AI 점수 급등 시각의 이미지와 현장 상태를 확인하세요.", "Check the pictures and the site at the time of the AI score spikes."),
		reason: func(d *FactoryDaily) phrase {
			return say("최고 AI 점수: 화재 %[1]s, 넘어짐 %[2]s, 굽힘 %[3]s", "highest AI scores: fire %[1]s, fall %[2]s, bend %[3]s",
				figure(d.FactoryState.MaxFireScore), figure(d.FactoryState.MaxFallScore), figure(d.FactoryState.MaxBendScore))
		},
	},
	{
		id: "node_not_ready", priority: priorityHigh,
		holds: func(d *FactoryDaily) bool { return d.Infra.NodeNotReadyMinutes.AtLeast(tenMinutes) },
		check: say("Not Ready 상태였던 노드를 확인하세요.", "Check the nodes that were not ready."),
		reason: func(d *FactoryDaily) phrase {
			return say("Not Ready %[1]s분, 동시 최대 %[2]d개 노드", "not ready for %[1]s minutes, at most %[2]d at once",
				d.Infra.NodeNotReadyMinutes, d.Infra.NodeNotReadyCount)
		},
	},
	{
		id: "data_gap", priority: priorityMedium,
		holds: func(d *FactoryDaily) bool { return d.DataQuality.MaxGapMinutes.AtLeast(fiveMinutes) },
		check: say("데이터 수집 공백의 원인을 확인하세요.", "Check why no data were collected in the gaps."),
		reason: func(d *FactoryDaily) phrase {
			return say("가장 긴 공백 %[1]s분, 공백 %[2]d건", "longest gap %[1]s minutes, gaps %[2]d", d.DataQuality.MaxGapMinutes, d.DataQuality.DataGapCount)
		},
	},
	{
		id: "workload_restarts", priority: priorityMedium,
		holds: func(d *FactoryDaily) bool { return d.Infra.WorkloadRestartTotal >= restartsToLook },
		check: say("재시작된 워크로드의 로그를 확인하세요.", "Check the logs of the workloads that restarted."),
		reason: func(d *FactoryDaily) phrase {
			return say("워크로드 재시작 %d회", "workload restarts %d", d.Infra.WorkloadRestartTotal)
		},
	},
	{
		id: "pipeline_critical", priority: priorityMedium,
		holds: func(d *FactoryDaily) bool { return d.Pipeline.CriticalMinutes.AtLeast(fiveMinutes) },
		check: say("파이프라인 지연(critical) 구간을 확인하세요.", "Check when the pipeline was critically late."),
		reason: func(d *FactoryDaily) phrase {
			return say("파이프라인 critical %s분", "pipeline critical for %s minutes", d.Pipeline.CriticalMinutes)
		},
	},
	{
		id: "unhealthy_workloads", priority: priorityMedium,
		holds: func(d *FactoryDaily) bool { return d.Infra.UnhealthyWorkloadMinutes.AtLeast(tenMinutes) },
		check: say("비정상 상태였던 워크로드를 확인하세요.", "Check the workloads that were unhealthy."),
		reason: func(d *FactoryDaily) phrase {
			return say("워크로드 비정상 %s분", "workloads unhealthy for %s minutes", d.Infra.UnhealthyWorkloadMinutes)
		},
	},
	{
		id: "invalid_records", priority: priorityLow,
		holds: func(d *FactoryDaily) bool { return d.DataQuality.InvalidRecordCount > 0 },
		check: say("읽을 수 없는 processed 객체를 확인하세요.", "Check the processed objects that could not be read."),
		reason: func(d *FactoryDaily) phrase {
			return say("읽을 수 없는 객체 %d건", "unreadable objects %d", d.DataQuality.InvalidRecordCount)
		},
	},
}

// checks are the day's, in English, most important first.
func (d *FactoryDaily) checks() []RecommendedCheck {
	list := []RecommendedCheck{}
	for _, rule := range d.checkRules() {
		list = append(list, RecommendedCheck{
			ID: rule.id, Priority: rule.priority, Check: rule.check.in(English), Reason: rule.reason(d).in(English),
		})
	}
	return list
}

func (d *FactoryDaily) checkRules() []checkRule {
	holding := slices.DeleteFunc(slices.Clone(checkRules), func(r checkRule) bool { return !r.holds(d) })
	return holding[:min(maxChecks, len(holding))]
}

func (d *FactoryDaily) aiScores() []*exact.Decimal {
	return []*exact.Decimal{d.FactoryState.MaxFireScore, d.FactoryState.MaxFallScore, d.FactoryState.MaxBendScore}
}

func reachesAny(bound exact.Decimal, values ...*exact.Decimal) bool {
	return slices.ContainsFunc(values, func(value *exact.Decimal) bool { return reaches(value, bound) })
}

// figure is a number as a report has it, a dash for one that is unknown.
func figure(value *exact.Decimal) string {
	if value == nil {
		return "-"
	}
	return value.String()
}

// lateStart is how long a day may be silent at its start or its end before the
// report says so.
const lateStart = time.Hour

// limitations are what a reader of the day must know about its data. A factory
// whose data begin in the middle of a day is measured by the whole day all the
// same: nobody but a person knows whether it was new or silent.
func (d *FactoryDaily) limitations() []phrase {
	list := []phrase{
		say("이 리포트는 S3 processed 데이터를 기준으로 하며 raw 메시지는 사용하지 않았습니다.", "The report is based on processed data in S3, not on raw messages."),
		say("모델이 작성한 문장은 운영 초안이므로 운영자의 검토가 필요합니다.", "Sentences worded by a model are an operational draft and need an operator's review."),
	}
	if d.FactoryProfile.Testbed() {
		list = append(list, say("%[1]s는 더미 데이터를 생성하는 테스트베드이므로 이벤트를 실제 사고로 해석하면 안 됩니다.",
			"%[1]s is a testbed that generates dummy data: its events are no real incidents.", d.FactoryID))
	}
	q := d.DataQuality
	if q.FirstRecordAt != nil && q.FirstRecordAt.Sub(d.Window.StartUTC) >= lateStart {
		list = append(list, say("데이터는 %[1]s부터 있습니다. 기대 건수는 하루 전체를 기준으로 하므로 그 이전은 결측으로 집계됩니다.",
			"Data begin at %[1]s. Expected counts are those of the whole day, so that the time before counts as missing.", d.clock(*q.FirstRecordAt)))
	}
	if q.LastRecordAt != nil && d.Window.EndUTC.Sub(*q.LastRecordAt) >= lateStart {
		list = append(list, say("데이터는 %[1]s까지만 있습니다. 그 이후는 결측으로 집계됩니다.",
			"Data end at %[1]s. The time after counts as missing.", d.clock(*q.LastRecordAt)))
	}
	return append(list, d.dataLosses()...)
}

// dataLosses are the limitations that follow from what could not be used.
func (d *FactoryDaily) dataLosses() []phrase {
	var list []phrase
	q := d.DataQuality
	if d.Status == StatusInsufficient {
		list = append(list, say("하루 동안 수집된 데이터가 없어 상태를 판단할 수 없습니다.", "No data were collected all day: nothing can be said about the factory's state."))
	}
	if q.MissingHourCount > 0 {
		list = append(list, say("시간별 집계 %d개가 없어 해당 시간은 결측으로 집계했습니다.", "Hours whose summary is missing and that count as silent: %d.", q.MissingHourCount))
	}
	if q.InvalidRecordCount > 0 {
		list = append(list, say("읽을 수 없는 객체 %d건은 집계에서 제외했습니다.", "Objects that could not be read and are left out: %d.", q.InvalidRecordCount))
	}
	if q.UnreadObjectCount > 0 {
		list = append(list, say("시간당 객체 수 제한으로 %d건은 읽지 않았습니다.", "Objects that were not read because their hour had too many: %d.", q.UnreadObjectCount))
	}
	return list
}

// clock is a time of the day in its own zone, such as 12:00.
func (d *FactoryDaily) clock(at time.Time) string {
	zone, err := loadZone(d.Timezone)
	if err != nil {
		zone = time.UTC
	}
	return at.In(zone).Format("15:04")
}
