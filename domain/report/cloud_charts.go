package report

import "millrace/domain/exact"

// charts are the curves of the day: status, 5xx answers, nodes and pods, and what
// was collected. A value that was not measured is a hole in its curve.
func (w *cloudWriter) charts() []Chart {
	fast, slow := w.gaps(CloudFast), w.gaps(CloudSlow)
	status := w.chart("status", fast, w.line("status", func(p CloudPoint) *exact.Decimal { return chartCount(p.Status) }))
	status.Limits = []Limit{
		{Name: w.say("limit.warning"), Value: exact.FromInt(2)},
		{Name: w.say("limit.critical"), Value: exact.FromInt(3)},
	}
	return []Chart{
		status,
		w.chart("5xx", fast, Line{Name: "5xx", Points: w.points(func(p CloudPoint) *exact.Decimal { return p.Alb5xx })}),
		w.chart("kubernetes", slow,
			w.line("nodes", func(p CloudPoint) *exact.Decimal { return chartCount(p.NodesNotReady) }),
			w.line("pods", func(p CloudPoint) *exact.Decimal { return chartCount(p.PodsNotOK) })),
		w.chart("collection", fast, w.line("samples", func(p CloudPoint) *exact.Decimal { return chartCount(&p.Samples) })),
	}
}

func (w *cloudWriter) chart(id string, gaps []Span, lines ...Line) Chart {
	return Chart{
		ID: id, Title: w.say("chart." + id), Start: w.day.Window.StartUTC, End: w.day.Window.EndUTC, Lines: lines, Gaps: gaps,
	}
}

func (w *cloudWriter) line(id string, value func(CloudPoint) *exact.Decimal) Line {
	return Line{Name: w.say("line." + id), Points: w.points(value)}
}

func (w *cloudWriter) points(value func(CloudPoint) *exact.Decimal) []Point {
	points := []Point{}
	for _, p := range w.day.Series {
		if v := value(p); v != nil {
			points = append(points, Point{At: p.At, Value: *v})
		}
	}
	return points
}

func (w *cloudWriter) gaps(half string) []Span {
	var spans []Span
	for _, gap := range w.day.Gaps {
		if gap.Dataset == half {
			spans = append(spans, Span{Start: gap.Start, End: gap.End})
		}
	}
	return spans
}

func chartCount(n *int64) *exact.Decimal {
	if n == nil {
		return nil
	}
	d := exact.FromInt(*n)
	return &d
}
