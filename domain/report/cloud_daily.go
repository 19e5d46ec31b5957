package report

import (
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// CloudDaily is the infrastructure's day, stored as
// cloud-infra-daily-summary.json (factory.md, 7.7). Everything in it follows from
// the summaries of the hours.
type CloudDaily struct {
	SchemaVersion string    `json:"schema_version"`
	SummaryType   string    `json:"summary_type"`
	Target        string    `json:"target"`
	ReportDate    string    `json:"report_date"`
	Timezone      string    `json:"timezone"`
	Window        DayWindow `json:"window"`
	// Status is success, or insufficient_data when every hour is empty.
	Status           string            `json:"status"`
	OverallStatus    Verdict           `json:"overall_status"`
	CollectionStatus CollectionStatus  `json:"collection_status"`
	DataQuality      CloudDailyQuality `json:"data_quality"`
	Figures          CloudFigures      `json:"figures"`
	// NotConfigured are the sections that there is nothing to look at of.
	NotConfigured []string `json:"not_configured_sections"`
	// Events are the worst of the day; EventCounts counts all.
	Events            []CloudEvent       `json:"events"`
	EventCounts       CloudEventCounts   `json:"event_counts"`
	EventCount        int64              `json:"event_count"`
	DangerEventCount  int64              `json:"danger_event_count"`
	RecommendedChecks []RecommendedCheck `json:"recommended_checks"`
	DataLimitations   []string           `json:"data_limitations"`
	Series            []CloudPoint       `json:"series"`
	Gaps              []CloudGap         `json:"gaps"`
}

// CloudDailyQuality tells how complete a day is.
type CloudDailyQuality struct {
	FastExpected int64 `json:"fast_expected_count"`
	FastActual   int64 `json:"fast_actual_count"`
	SlowExpected int64 `json:"slow_expected_count"`
	SlowActual   int64 `json:"slow_actual_count"`
	CloudQuality
	// MissingHourCount are hours without a summary, EmptyHourCount hours whose
	// summary found no data.
	MissingHourCount     int64 `json:"missing_hour_count"`
	EmptyHourCount       int64 `json:"empty_hour_count"`
	DuplicateRecordCount int64 `json:"duplicate_record_count"`
	InvalidRecordCount   int64 `json:"invalid_record_count"`
	UnjudgedRecordCount  int64 `json:"unjudged_record_count"`
	UnreadObjectCount    int64 `json:"unread_object_count"`
}

const (
	cloudDailyType = "cloud_infra_daily"
	// maxCloudDayEvents bounds the events that a day's summary lists.
	maxCloudDayEvents = 200
)

// MergeCloudDay is the day that its hours make, in whatever order they come. An
// hour that is not there is missing; one of another day is passed over, and of two
// summaries of one hour the first counts.
func MergeCloudDay(day Day, settings Settings, hours []CloudHourSummary) CloudDaily {
	window := day.Window()
	d := CloudDaily{
		SchemaVersion: SchemaVersion, SummaryType: cloudDailyType, Target: CloudTarget,
		ReportDate: day.Date(), Timezone: day.Timezone(), Window: DayWindow{StartUTC: window.Start, EndUTC: window.End}, Status: StatusSuccess,
	}
	kept := cloudHoursOf(day, hours)
	d.DataQuality.MissingHourCount = int64(len(day.Hours()) - len(kept))
	var events []CloudEvent
	var coverage CloudCoverage
	for _, hour := range kept {
		d.count(hour)
		d.Figures = d.Figures.merge(hour.Figures)
		events = append(events, hour.Events...)
		coverage.Fast, coverage.Slow = append(coverage.Fast, hour.Coverage.Fast...), append(coverage.Slow, hour.Coverage.Slow...)
		d.Series = append(d.Series, hour.Series...)
	}
	d.Figures, d.Series = d.Figures.trim(maxCloudEntries), mergeCloudPoints(d.Series)
	d.measure(coverage, day, settings)
	d.tell(events, day, settings)
	return d
}

// cloudHoursOf are the summaries of the day's hours in the order of the hours.
func cloudHoursOf(day Day, hours []CloudHourSummary) []CloudHourSummary {
	var kept []CloudHourSummary
	for _, hour := range day.Hours() {
		at := slices.IndexFunc(hours, func(s CloudHourSummary) bool {
			return s.Hour == hour.Label && s.ReportDate == day.Date() && s.SummaryType == cloudHourType
		})
		if at >= 0 {
			kept = append(kept, hours[at])
		}
	}
	return kept
}

func (d *CloudDaily) count(hour CloudHourSummary) {
	q := &d.DataQuality
	q.FastActual += hour.InputCounts.Fast
	q.SlowActual += hour.InputCounts.Slow
	q.DuplicateRecordCount += hour.InputCounts.DuplicateRecords
	q.InvalidRecordCount += hour.InputCounts.InvalidRecords
	q.UnjudgedRecordCount += hour.InputCounts.UnjudgedRecords
	q.UnreadObjectCount += hour.InputCounts.UnreadObjects
	if hour.Status == StatusEmpty {
		q.EmptyHourCount++
	}
}

// measure works out how complete the day is.
func (d *CloudDaily) measure(coverage CloudCoverage, day Day, settings Settings) {
	q := &d.DataQuality
	actual, expected := CloudSampleCounts{Fast: q.FastActual, Slow: q.SlowActual}, expectedCloud(day.Length(), settings)
	q.FastExpected, q.SlowExpected = expected.Fast, expected.Slow
	coverage.Fast = cloudStretches(coverage.Fast, settings.cloudGapLimit(CloudFast))
	coverage.Slow = cloudStretches(coverage.Slow, settings.cloudGapLimit(CloudSlow))
	q.CloudQuality = cloudQuality(actual, expected, coverage, day.spans(), day, settings)
	d.Gaps = slices.Concat(
		cloudGaps(CloudFast, coverage.Fast, day.spans(), settings.cloudGapLimit(CloudFast), day),
		cloudGaps(CloudSlow, coverage.Slow, day.spans(), settings.cloudGapLimit(CloudSlow), day))
	if q.FastActual+q.SlowActual == 0 {
		d.Status = StatusInsufficient
	}
	d.CollectionStatus = collectionAt(exact.Min(q.FastRate, q.SlowRate))
}

// tell works out the events of the day and what follows from them.
func (d *CloudDaily) tell(events []CloudEvent, day Day, settings Settings) {
	merged, counts := finishCloudEvents(events, day, settings, len(events))
	d.EventCounts, d.EventCount = counts, int64(len(merged))
	for _, e := range merged {
		if e.Severity == SeverityDanger {
			d.DangerEventCount++
		}
	}
	d.Events = merged[:min(len(merged), maxCloudDayEvents)]
	d.NotConfigured = d.Figures.notConfigured()
	d.OverallStatus = d.overall()
	d.RecommendedChecks, d.DataLimitations = d.checks(), d.limitations()
}

// overall is danger with any event of danger, a warning with any other event, any
// sample that was not normal, or a collector so long silent that a reader would
// have called its half stale (5.6): what nobody looked at is not normal.
func (d *CloudDaily) overall() Verdict {
	switch {
	case d.DangerEventCount > 0:
		return Danger
	case d.EventCount > 0, d.Figures.Fast.abnormal()+d.Figures.Slow.abnormal() > 0, d.stale():
		return Warning
	}
	return Normal
}

func (d *CloudDaily) stale() bool {
	return slices.ContainsFunc(d.Gaps, func(g CloudGap) bool {
		limit := cloudinfra.FastStaleAfter
		if g.Dataset == CloudSlow {
			limit = cloudinfra.SlowStaleAfter
		}
		return time.Duration(g.DurationSeconds)*time.Second > limit
	})
}
