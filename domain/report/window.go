package report

import (
	"fmt"
	"time"
)

const (
	dateLayout = "2006-01-02"
	hoursOfDay = 24
	// farthestZone is more than any zone's distance from UTC.
	farthestZone = 26 * time.Hour
)

// Day is a calendar day in a zone: every instant whose local date it is. That is
// 24 hours but for days on which the zone's clocks change.
type Day struct {
	date string
	zone *time.Location
}

// ParseDay is the day written yyyy-mm-dd in the IANA zone. A day that the zone
// skipped (2011-12-30 in Pacific/Apia) is refused. Its error is an *InvalidError.
func ParseDay(date, zone string) (Day, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Day{}, err
	}
	if parsed, err := time.Parse(dateLayout, date); err != nil || parsed.Format(dateLayout) != date {
		return Day{}, invalid("date", "must be a calendar day like 2006-01-02")
	}
	day := Day{date: date, zone: location}
	if len(day.spans()) == 0 {
		return Day{}, invalid("date", "must exist in the timezone")
	}
	return day, nil
}

// PreviousDay is the last day of the IANA zone that is over at now.
func PreviousDay(now time.Time, zone string) (Day, error) {
	location, err := loadZone(zone)
	if err != nil {
		return Day{}, err
	}
	year, month, number := now.In(location).Date()
	day := Day{zone: location}
	for {
		number--
		day.date = time.Date(year, month, number, 0, 0, 0, 0, time.UTC).Format(dateLayout)
		if len(day.spans()) > 0 {
			return day, nil
		}
	}
}

// loadZone refuses the names that mean the machine's own zone.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, invalid("timezone", "must be an IANA zone such as Asia/Seoul")
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("timezone", "must be an IANA zone such as Asia/Seoul")
	}
	return location, nil
}

// Date is the day as yyyy-mm-dd.
func (d Day) Date() string { return d.date }

// Timezone is the name of the day's IANA zone.
func (d Day) Timezone() string { return d.zone.String() }

// Zone is the day's zone.
func (d Day) Zone() *time.Location { return d.zone }

// Window is the span from the day's first instant to its last, in UTC.
func (d Day) Window() Span {
	spans := d.spans()
	return Span{Start: spans[0].Start, End: spans[len(spans)-1].End}
}

// Length is how long the day lasts.
func (d Day) Length() time.Duration { return totalLength(d.spans()) }

// spans are the spans with the day's date: one, but where clocks were set back
// over midnight a few minutes after it.
func (d Day) spans() []Span { return d.localSpans(0, hoursOfDay) }

// localSpans are the spans of the day whose local hours are from from up to, but
// not including, to. Each period of one UTC offset has at most one of them.
func (d Day) localSpans(from, to int) []Span {
	midnight, err := time.Parse(dateLayout, d.date)
	if err != nil {
		return nil
	}
	start, end := midnight.Add(time.Duration(from)*time.Hour), midnight.Add(time.Duration(to)*time.Hour)
	var spans []Span
	for at := start.Add(-farthestZone); at.Before(end.Add(farthestZone)); {
		local := at.In(d.zone)
		_, seconds := local.Zone()
		offset := time.Duration(seconds) * time.Second
		_, periodEnd := local.ZoneBounds()
		if periodEnd.IsZero() {
			periodEnd = end.Add(2 * farthestZone)
		}
		span := Span{Start: latest(at, start.Add(-offset)).UTC(), End: earliest(periodEnd, end.Add(-offset)).UTC()}
		spans = appendSpan(spans, span)
		at = periodEnd
	}
	return spans
}

// appendSpan adds a span that isn't empty, joined to the last one where it
// follows at once.
func appendSpan(spans []Span, span Span) []Span {
	if !span.Start.Before(span.End) {
		return spans
	}
	if last := len(spans) - 1; last >= 0 && spans[last].End.Equal(span.Start) {
		spans[last].End = span.End
		return spans
	}
	return append(spans, span)
}

// Hours are the hours of the day in the order in which they begin. An hour that
// the clocks skip is absent; one that they repeat is a single, longer hour.
func (d Day) Hours() []Hour {
	hours := make([]Hour, 0, hoursOfDay)
	for number := range hoursOfDay {
		if spans := d.localSpans(number, number+1); len(spans) > 0 {
			hours = append(hours, Hour{
				Label: fmt.Sprintf("%02d", number),
				Start: spans[0].Start, End: spans[len(spans)-1].End, Spans: spans,
			})
		}
	}
	return hours
}

// Hour is the hour of the day with a label of 00 to 23.
func (d Day) Hour(label string) (Hour, error) {
	for _, hour := range d.Hours() {
		if hour.Label == label {
			return hour, nil
		}
	}
	return Hour{}, invalid("hour", "must be an hour of the day, 00 to 23")
}

// Hour is every instant of a day whose local hour is Label, in UTC and half
// open, so that 23:59:59.999 belongs to hour 23.
type Hour struct {
	// Label is 00 to 23.
	Label string
	// Start and End enclose the hour's spans.
	Start, End time.Time
	// Spans are usually one. Where clocks go back by more than an hour
	// (Antarctica/Troll) a repeated hour comes in two parts.
	Spans []Span
}

// Contains tells whether t lies in the hour.
func (h Hour) Contains(t time.Time) bool { return spanOf(h.Spans, t) >= 0 }

// Length is how long the hour lasts.
func (h Hour) Length() time.Duration { return totalLength(h.Spans) }

// Partitions are the UTC hours that the hour touches, in order: the hh= parts of
// the keys that can have its objects.
func (h Hour) Partitions() []time.Time {
	var partitions []time.Time
	for _, span := range h.Spans {
		for at := span.Start.UTC().Truncate(time.Hour); at.Before(span.End); at = at.Add(time.Hour) {
			if last := len(partitions) - 1; last < 0 || partitions[last].Before(at) {
				partitions = append(partitions, at)
			}
		}
	}
	return partitions
}

// Contains tells whether t lies in the span.
func (s Span) Contains(t time.Time) bool { return !t.Before(s.Start) && t.Before(s.End) }

// Length is how long the span lasts.
func (s Span) Length() time.Duration { return s.End.Sub(s.Start) }

// spanOf is the index of the span that has t, -1 without any.
func spanOf(spans []Span, t time.Time) int {
	for i, span := range spans {
		if span.Contains(t) {
			return i
		}
	}
	return -1
}

func totalLength(spans []Span) time.Duration {
	var total time.Duration
	for _, span := range spans {
		total += span.Length()
	}
	return total
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// HourWindow is an hour as the documents have it. The ends are the last whole
// second, as people write them; what belongs to the hour is half open. The
// start_kst and end_kst of the original stand only where the zone is Korea's.
type HourWindow struct {
	StartLocal string `json:"start_local"`
	EndLocal   string `json:"end_local"`
	StartKST   string `json:"start_kst,omitempty"`
	EndKST     string `json:"end_kst,omitempty"`
	StartUTC   string `json:"start_utc"`
	EndUTC     string `json:"end_utc"`
}

// HourWindow is the document form of one of the day's hours.
func (d Day) HourWindow(hour Hour) HourWindow {
	last := hour.End.Add(-time.Second)
	window := HourWindow{
		StartLocal: hour.Start.In(d.zone).Format(time.RFC3339), EndLocal: last.In(d.zone).Format(time.RFC3339),
		StartUTC: hour.Start.UTC().Format(time.RFC3339), EndUTC: last.UTC().Format(time.RFC3339),
	}
	if d.zone.String() == "Asia/Seoul" {
		window.StartKST, window.EndKST = window.StartLocal, window.EndLocal
	}
	return window
}

// clockRange is a span of local time for people, such as 15:10~15:25. The end of
// the day is 24:00.
func (d Day) clockRange(span Span) string {
	end := span.End.In(d.zone)
	text := end.Format("15:04")
	if end.Format(dateLayout) > d.date {
		text = "24:00"
	}
	return span.Start.In(d.zone).Format("15:04") + "~" + text
}
