package report

import (
	"fmt"
	"strings"
	"time"

	"millrace/domain/exact"
)

// Size of a chart and of its plot, in SVG units.
const (
	chartWidth  = 760
	chartHeight = 236
	plotLeft    = 56
	plotTop     = 18
	plotWidth   = 680
	plotHeight  = 180
	// stripHeight is the plot of a chart that only tells when there were data.
	stripHeight = 22

	labelEvery = 3 * time.Hour
	// chartColours is how many colours and dashes the style sheet has.
	chartColours = 4
)

// pageChart is a chart as it is drawn. Coordinates are decimal text.
type pageChart struct {
	ID, Title, Description string
	Width, Height          int
	Left, Right, Top       int
	Bottom                 int
	Curves                 []pageCurve
	Limits                 []mark
	Values                 []mark
	Times                  []mark
	Gaps                   []bar
	Empty                  string
	// Strip tells that the chart is a band of the day with its gaps.
	Strip bool
	// HasData and NoData name the band and its gaps.
	HasData, NoData string
}

type pageCurve struct {
	Name  string
	Class int
	// Path is broken where there are no data; Dots are points without a neighbour.
	Path string
	Dots []dot
}

type dot struct{ X, Y string }

// mark is a labelled line across the plot: At is its x or y, Label at LabelAt.
type mark struct{ At, Label, LabelAt string }

type bar struct{ X, Width, Label string }

// draw lays a chart out.
func draw(chart Chart, timezone string, w phrases) pageChart {
	zone := zoneOf(timezone)
	c := pageChart{
		ID: chart.ID, Title: titleOf(chart), Width: chartWidth, Height: chartHeight,
		Left: plotLeft, Right: plotLeft + plotWidth, Top: plotTop, Bottom: plotTop + plotHeight,
	}
	if chart.Start.Before(chart.End) && len(chart.Lines) == 0 {
		return strip(chart, c, zone, w)
	}
	low, high, some := extent(chart)
	if !some || !chart.Start.Before(chart.End) {
		c.Empty, c.Description = w.noData, c.Title+": "+w.noData
		return c
	}
	a := axes{start: chart.Start, end: chart.End, low: low, high: high}
	for i, line := range chart.Lines {
		c.Curves = append(c.Curves, a.curve(line, chart.Gaps, i%chartColours))
	}
	for _, limit := range chart.Limits {
		c.Limits = append(c.Limits, mark{At: a.y(limit.Value), Label: limit.Name + " " + limit.Value.String()})
	}
	for _, value := range []exact.Decimal{low, high} {
		c.Values = append(c.Values, mark{At: a.y(value), Label: value.String()})
	}
	c.Times, c.Gaps = a.times(zone), a.gaps(chart.Gaps, zone, w)
	c.Description = describe(chart, c, zone, w)
	return c
}

// strip is a chart without lines: a band of the day with its gaps.
func strip(chart Chart, c pageChart, zone *time.Location, w phrases) pageChart {
	c.Strip, c.HasData, c.NoData = true, w.hasData, w.gap
	c.Height -= plotHeight - stripHeight
	c.Bottom = c.Top + stripHeight
	a := axes{start: chart.Start, end: chart.End}
	c.Times, c.Gaps = a.times(zone), a.gaps(chart.Gaps, zone, w)
	c.Description = describe(chart, c, zone, w)
	if len(c.Gaps) == 0 {
		c.Description += "; " + w.noGap
	}
	return c
}

// zoneOf is the zone of a name that was checked long before.
func zoneOf(name string) *time.Location {
	if zone, err := loadZone(name); err == nil {
		return zone
	}
	return time.UTC
}

func titleOf(chart Chart) string {
	if chart.Unit == "" {
		return chart.Title
	}
	return chart.Title + " (" + chart.Unit + ")"
}

// extent is the span of values that a chart shows, with its limits in view.
func extent(chart Chart) (low, high exact.Decimal, some bool) {
	include := func(value exact.Decimal) {
		if !some {
			low, high, some = value, value, true
		}
		low, high = exact.Min(low, value), exact.Max(high, value)
	}
	for _, line := range chart.Lines {
		for _, point := range line.Points {
			include(point.Value)
		}
	}
	if !some {
		return low, high, false
	}
	for _, limit := range chart.Limits {
		include(limit.Value)
	}
	if low.Equal(high) {
		low, high = low.Sub(exact.FromInt(1)), high.Add(exact.FromInt(1))
	}
	return low, high, true
}

// axes turn times and values into coordinates.
type axes struct {
	start, end time.Time
	low, high  exact.Decimal
}

func (a axes) x(at time.Time) string {
	along := exact.FromInt(int64(at.Sub(a.start) / time.Second)).Mul(exact.FromInt(plotWidth))
	return along.Quo(exact.FromInt(int64(a.end.Sub(a.start)/time.Second)), 1).Add(exact.FromInt(plotLeft)).String()
}

func (a axes) y(value exact.Decimal) string {
	down := a.high.Sub(value).Mul(exact.FromInt(plotHeight))
	return down.Quo(a.high.Sub(a.low), 1).Add(exact.FromInt(plotTop)).String()
}

// curve draws a line, broken at each gap and wherever points are missing.
func (a axes) curve(line Line, gaps []Span, class int) pageCurve {
	c := pageCurve{Name: line.Name, Class: class}
	var path strings.Builder
	for _, run := range runs(line.Points, gaps) {
		if len(run) == 1 {
			c.Dots = append(c.Dots, dot{a.x(run[0].At), a.y(run[0].Value)})
			continue
		}
		for i, point := range run {
			command := "L"
			if i == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%s %s", command, a.x(point.At), a.y(point.Value))
		}
	}
	c.Path = path.String()
	return c
}

// runs cuts points where a gap lies between two of them, or where they are more
// than one and a half times further apart than the nearest two.
func runs(points []Point, gaps []Span) [][]Point {
	step := time.Duration(0)
	for i := 1; i < len(points); i++ {
		if d := points[i].At.Sub(points[i-1].At); d > 0 && (step == 0 || d < step) {
			step = d
		}
	}
	var all [][]Point
	for i, point := range points {
		if i == 0 || point.At.Sub(points[i-1].At) > step*3/2 || gapBetween(points[i-1].At, point.At, gaps) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], point)
	}
	return all
}

// gapBetween tells whether a gap covers all of the time between two points, but for
// what belongs to the points themselves.
func gapBetween(from, to time.Time, gaps []Span) bool {
	for _, gap := range gaps {
		if !gap.Start.After(from) && !gap.End.Before(to) {
			return true
		}
	}
	return false
}

// times are the labels of the time axis, in local time.
func (a axes) times(zone *time.Location) []mark {
	var marks []mark
	for at := a.start; !at.After(a.end); at = at.Add(labelEvery) {
		label := at.In(zone).Format("15:04")
		if at.Equal(a.end) && label == "00:00" {
			label = "24:00"
		}
		marks = append(marks, mark{At: a.x(at), Label: label})
	}
	return marks
}

func (a axes) gaps(gaps []Span, zone *time.Location, w phrases) []bar {
	var bars []bar
	for _, gap := range gaps {
		from, to := latest(gap.Start, a.start), earliest(gap.End, a.end)
		if !from.Before(to) {
			continue
		}
		width := exact.FromInt(int64(to.Sub(from)/time.Second)).Mul(exact.FromInt(plotWidth)).
			Quo(exact.FromInt(int64(a.end.Sub(a.start)/time.Second)), 1)
		bars = append(bars, bar{X: a.x(from), Width: exact.Max(width, exact.FromInt(1)).String(), Label: w.gap + " " + spanLabel(Span{from, to}, zone)})
	}
	return bars
}

func spanLabel(span Span, zone *time.Location) string {
	return span.Start.In(zone).Format("15:04") + "–" + span.End.In(zone).Format("15:04")
}

// maxDescribedGaps bounds what a screen reader has to read.
const maxDescribedGaps = 5

// describe says in words what a chart shows.
func describe(chart Chart, c pageChart, zone *time.Location, w phrases) string {
	parts := []string{c.Title + ", " + spanLabel(Span{chart.Start, chart.End}, zone)}
	for _, line := range chart.Lines {
		if len(line.Points) == 0 {
			parts = append(parts, line.Name+": "+w.noData)
			continue
		}
		low, high := line.Points[0], line.Points[0]
		for _, point := range line.Points {
			if point.Value.Less(low.Value) {
				low = point
			}
			if high.Value.Less(point.Value) {
				high = point
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %s %s (%s), %s %s (%s)", line.Name,
			w.lowest, low.Value, low.At.In(zone).Format("15:04"), w.highest, high.Value, high.At.In(zone).Format("15:04")))
	}
	for i, gap := range c.Gaps {
		if i == maxDescribedGaps {
			break
		}
		parts = append(parts, gap.Label)
	}
	return strings.Join(parts, "; ")
}
