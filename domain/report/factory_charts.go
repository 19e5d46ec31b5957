package report

import (
	"slices"

	"millrace/domain/exact"
)

// charts are the day's curves and gaps.
func (d FactoryDaily) charts(lang Language) []Chart {
	bounds := d.Thresholds
	limit := func(name phrase, value exact.Decimal) Limit { return Limit{Name: name.in(lang), Value: value} }
	warning, danger := say("경고", "warning"), say("위험", "danger")
	states := d.gapSpans(FactoryStateDataset)
	return []Chart{
		d.chart(lang, "risk_score", say("Risk Score (100 = 안전)", "Risk score (100 = safest)"), "", d.Series.RiskScore,
			d.gapSpans(RiskScoreDataset), limit(warning, bounds.RiskWarningMax), limit(danger, bounds.RiskDangerMax)),
		d.chart(lang, "temperature", say("온도", "Temperature"), "°C", d.Series.Temperature, states,
			limit(warning, bounds.TemperatureWarning), limit(danger, bounds.TemperatureCritical)),
		d.chart(lang, "humidity", say("습도", "Humidity"), "%", d.Series.Humidity, states,
			limit(warning, bounds.HumidityWarning), limit(danger, bounds.HumidityCritical)),
		d.chart(lang, "ai_score", say("AI 점수", "AI score"), "", d.Series.AIScore, states,
			limit(warning, bounds.AISpike), limit(danger, bounds.AICritical)),
		d.chart(lang, "gaps", say("데이터 공백", "Gaps in the data"), "", nil,
			d.gapSpans(FactoryStateDataset, RiskScoreDataset, InfraStateDataset)),
	}
}

func (d FactoryDaily) chart(lang Language, id string, title phrase, unit string, points []SeriesPoint, gaps []Span, limits ...Limit) Chart {
	chart := Chart{
		ID: id, Title: title.in(lang), Unit: unit, Start: d.Window.StartUTC, End: d.Window.EndUTC, Limits: limits, Gaps: gaps,
	}
	if len(points) == 0 {
		return chart
	}
	least, average, greatest := Line{Name: say("최저", "lowest").in(lang)}, Line{Name: say("평균", "average").in(lang)}, Line{Name: say("최고", "highest").in(lang)}
	for _, point := range points {
		least.Points = append(least.Points, Point{At: point.At, Value: point.Min})
		average.Points = append(average.Points, Point{At: point.At, Value: point.Avg})
		greatest.Points = append(greatest.Points, Point{At: point.At, Value: point.Max})
	}
	chart.Lines = []Line{least, average, greatest}
	return chart
}

// gapSpans are the spans in which any of the datasets was silent, overlapping ones
// joined.
func (d FactoryDaily) gapSpans(datasets ...string) []Span {
	var spans []Span
	for _, gap := range d.Gaps {
		if slices.Contains(datasets, gap.Dataset) {
			spans = append(spans, Span{Start: gap.StartUTC, End: gap.EndUTC})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	var joined []Span
	for _, span := range spans {
		if last := len(joined) - 1; last >= 0 && !joined[last].End.Before(span.Start) {
			joined[last].End = latest(joined[last].End, span.End)
			continue
		}
		joined = append(joined, span)
	}
	return joined
}
