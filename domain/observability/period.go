package observability

import (
	"strings"
	"time"
)

// Granularity is the length of an aggregate's period.
type Granularity string

// The granularities.
const (
	Hourly  Granularity = "hourly"
	Daily   Granularity = "daily"
	Monthly Granularity = "monthly"
)

// Granularities are all of them, finest first.
var Granularities = []Granularity{Hourly, Daily, Monthly}

// Retention of the seed's table 7.3. Monthly aggregates never expire.
const (
	SignalTTL = 30 * 24 * time.Hour
	HourlyTTL = 90 * 24 * time.Hour
	DailyTTL  = 365 * 24 * time.Hour
	AlertTTL  = 90 * 24 * time.Hour
)

// hourLayout and monthLayout write the parts of keys.
const (
	hourLayout  = "15"
	monthLayout = "2006-01"
)

// Period is one hour, day or month, in UTC.
type Period struct {
	Granularity Granularity
	Start       time.Time
}

// PeriodOf is the period that an instant belongs to.
func PeriodOf(g Granularity, at time.Time) Period {
	at = at.UTC()
	switch g {
	case Hourly:
		return Period{g, at.Truncate(time.Hour)}
	case Daily:
		return Period{g, time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)}
	}
	return Period{Monthly, time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)}
}

// End is the first instant after the period.
func (p Period) End() time.Time {
	switch p.Granularity {
	case Hourly:
		return p.Start.Add(time.Hour)
	case Daily:
		return p.Start.AddDate(0, 0, 1)
	}
	return p.Start.AddDate(0, 1, 0)
}

// Next is the period after this one.
func (p Period) Next() Period { return Period{p.Granularity, p.End()} }

// Within are the periods of a granularity that a longer one consists of.
func (p Period) Within(g Granularity) []Period {
	var all []Period
	for q := PeriodOf(g, p.Start); q.Start.Before(p.End()); q = q.Next() {
		all = append(all, q)
	}
	return all
}

// SK is the sort key of the period's aggregate under APP#{app_id}.
func (p Period) SK() string {
	switch p.Granularity {
	case Hourly:
		return "AGG#HOURLY#" + p.Start.Format(time.DateOnly) + "#" + p.Start.Format(hourLayout)
	case Daily:
		return "AGG#DAILY#" + p.Start.Format(time.DateOnly)
	}
	return "AGG#MONTHLY#" + p.Start.Format(monthLayout)
}

// GSI1 are the keys of an application's aggregate in GSI1.
func (p Period) GSI1(appID string) (pk, sk string) {
	switch p.Granularity {
	case Hourly:
		return "AGG#" + p.Start.Format(time.DateOnly), AppPK(appID) + "#" + p.Start.Format(hourLayout)
	case Daily:
		return "AGG#" + p.Start.Format(time.DateOnly), AppPK(appID)
	}
	return "AGG#" + p.Start.Format(monthLayout), AppPK(appID)
}

// ExpiresAt is when the period's aggregate expires, false for never.
func (p Period) ExpiresAt() (time.Time, bool) {
	switch p.Granularity {
	case Hourly:
		return p.End().Add(HourlyTTL), true
	case Daily:
		return p.End().Add(DailyTTL), true
	}
	return time.Time{}, false
}

// ParsePeriodSK reads the sort key of an aggregate.
func ParsePeriodSK(sk string) (Period, bool) {
	for prefix, format := range map[string]struct {
		granularity Granularity
		layout      string
	}{
		"AGG#HOURLY#":  {Hourly, time.DateOnly + "#" + hourLayout},
		"AGG#DAILY#":   {Daily, time.DateOnly},
		"AGG#MONTHLY#": {Monthly, monthLayout},
	} {
		if text, found := strings.CutPrefix(sk, prefix); found {
			start, err := time.Parse(format.layout, text)
			return Period{format.granularity, start}, err == nil
		}
	}
	return Period{}, false
}
