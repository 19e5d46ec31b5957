package report

import (
	"slices"
	"time"

	"millrace/domain/exact"
)

// CloudHour gathers the snapshots of one local hour. The order of adding changes
// nothing. It is not safe for concurrent use.
type CloudHour struct {
	day      Day
	hour     Hour
	settings Settings
	samples  map[cloudSampleKey]cloudSample

	invalid, duplicates, unread int64
}

type cloudSampleKey struct {
	half string
	at   time.Time
}

// NewCloudHour is an hour without snapshots.
func NewCloudHour(day Day, hour Hour, settings Settings) *CloudHour {
	return &CloudHour{day: day, hour: hour, settings: settings, samples: map[cloudSampleKey]cloudSample{}}
}

// Add takes a snapshot object of a half, fast or slow. One that can't be read, is
// of another schema, or lacks its half is counted as invalid; one outside the hour
// is ignored; of two with the same updated_at one is counted as a duplicate.
func (h *CloudHour) Add(half string, body []byte) { h.take(half, body, true) }

// AddShared is Add for an object of a partition that begins in an earlier hour,
// which counts those that can't be read.
func (h *CloudHour) AddShared(half string, body []byte) { h.take(half, body, false) }

func (h *CloudHour) take(half string, body []byte, counts bool) {
	sample, ok := readCloudSample(half, body, h.settings)
	if !ok || !slices.Contains(cloudHalves, half) {
		h.invalid += oneIf(counts)
		return
	}
	if !h.hour.Contains(sample.at) {
		return
	}
	key := cloudSampleKey{half: half, at: sample.at}
	if have, taken := h.samples[key]; taken {
		h.duplicates++
		if have.before(sample) {
			return
		}
	}
	h.samples[key] = sample
}

// Unread notes objects that were left out for their number.
func (h *CloudHour) Unread(count int) { h.unread += int64(count) }

// CloudHourSummary is the aggregate of one hour, stored as
// intermediate/hourly/hh=HH.json of the target cloud-infra (factory.md, 7.7).
type CloudHourSummary struct {
	SchemaVersion string     `json:"schema_version"`
	SummaryType   string     `json:"summary_type"`
	Target        string     `json:"target"`
	ReportDate    string     `json:"report_date"`
	Timezone      string     `json:"timezone"`
	Hour          string     `json:"hour"`
	HourWindow    HourWindow `json:"hour_window"`
	// Status is success or empty.
	Status         string            `json:"status"`
	InputCounts    CloudInputCounts  `json:"input_counts"`
	ExpectedCounts CloudSampleCounts `json:"expected_counts"`
	DataQuality    CloudQuality      `json:"data_quality"`
	Figures        CloudFigures      `json:"figures"`
	// Events are the worst of the hour; EventCounts counts all.
	Events      []CloudEvent     `json:"events"`
	EventCounts CloudEventCounts `json:"event_counts"`
	Series      []CloudPoint     `json:"series"`
	// Coverage says where there are samples, so that the gaps of a day are exact.
	Coverage CloudCoverage `json:"coverage"`
}

// CloudSampleCounts are numbers of samples by half.
type CloudSampleCounts struct {
	Fast int64 `json:"fast"`
	Slow int64 `json:"slow"`
}

// CloudInputCounts are what figures were computed from. Unjudged samples have
// something in them that the alert rules can't read; unread objects were left out
// for their number.
type CloudInputCounts struct {
	CloudSampleCounts
	InvalidRecords   int64 `json:"invalid_records"`
	DuplicateRecords int64 `json:"duplicate_records"`
	UnjudgedRecords  int64 `json:"unjudged_records"`
	UnreadObjects    int64 `json:"unread_objects"`
}

// CloudCoverage are the stretches of each half.
type CloudCoverage struct {
	Fast []CloudStretch `json:"fast"`
	Slow []CloudStretch `json:"slow"`
}

const (
	cloudHourType = "cloud_infra_hour"
	// maxCloudHourEvents bounds the events that an hour hands on to its day.
	maxCloudHourEvents = 64
)

// Summary is the aggregate of what was added.
func (h *CloudHour) Summary() CloudHourSummary {
	samples := h.sorted()
	s := CloudHourSummary{
		SchemaVersion: SchemaVersion, SummaryType: cloudHourType, Target: CloudTarget,
		ReportDate: h.day.Date(), Timezone: h.day.Timezone(), Hour: h.hour.Label, HourWindow: h.day.HourWindow(h.hour), Status: StatusSuccess,
		InputCounts:    h.counts(samples),
		ExpectedCounts: expectedCloud(h.hour.Length(), h.settings),
		Coverage:       CloudCoverage{Fast: h.stretches(samples, CloudFast), Slow: h.stretches(samples, CloudSlow)},
		Series:         cloudSeries(samples),
	}
	if len(samples) == 0 {
		s.Status = StatusEmpty
	}
	var events []CloudEvent
	for i, figures := range figuresOfSamples(samples) {
		sample := samples[i]
		s.Figures = s.Figures.merge(figures)
		for _, a := range sample.events {
			events = append(events, sample.event(a, h.settings.cloudInterval(sample.half)))
		}
	}
	s.Figures = s.Figures.trim(maxCloudEntries)
	s.Events, s.EventCounts = finishCloudEvents(events, h.day, h.settings, maxCloudHourEvents)
	s.DataQuality = cloudQuality(s.InputCounts.CloudSampleCounts, s.ExpectedCounts, s.Coverage, h.hour.Spans, h.day, h.settings)
	return s
}

func (h *CloudHour) sorted() []cloudSample {
	samples := make([]cloudSample, 0, len(h.samples))
	for _, sample := range h.samples {
		samples = append(samples, sample)
	}
	slices.SortFunc(samples, func(a, b cloudSample) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		if a.half < b.half {
			return -1
		}
		return 1
	})
	return samples
}

func (h *CloudHour) counts(samples []cloudSample) CloudInputCounts {
	counts := CloudInputCounts{InvalidRecords: h.invalid, DuplicateRecords: h.duplicates, UnreadObjects: h.unread}
	for _, sample := range samples {
		if sample.half == CloudFast {
			counts.Fast++
		} else {
			counts.Slow++
		}
		if !sample.judged {
			counts.UnjudgedRecords++
		}
	}
	return counts
}

// expectedCloud are the samples that a time should have: 60 and 12 an hour.
func expectedCloud(length time.Duration, settings Settings) CloudSampleCounts {
	return CloudSampleCounts{
		Fast: int64(length / settings.CloudFastInterval), Slow: int64(length / settings.CloudSlowInterval),
	}
}

func (h *CloudHour) stretches(samples []cloudSample, half string) []CloudStretch {
	var points []CloudStretch
	for _, sample := range samples {
		if sample.half == half {
			points = append(points, CloudStretch{First: sample.at, Last: sample.at})
		}
	}
	return cloudStretches(points, h.settings.cloudGapLimit(half))
}

// counterWindow is what the counters of a snapshot cover, whatever its interval.
const counterWindow = 5 * time.Minute

// figuresOfSamples are the figures of each sample. Of each counter the last sample
// of its half in five minutes that has it counts: adding up every sample would
// count each minute five times, and the last one may lack what could not be
// measured.
func figuresOfSamples(samples []cloudSample) []CloudFigures {
	figures := make([]CloudFigures, len(samples))
	counted := map[cloudSampleKey]map[string]bool{}
	for i, sample := range slices.Backward(samples) {
		window := cloudSampleKey{half: sample.half, at: sample.at.Truncate(counterWindow)}
		if counted[window] == nil {
			counted[window] = map[string]bool{}
		}
		figures[i] = sample.figures(counted[window])
	}
	return figures
}

// finishCloudEvents joins events and keeps the worst of them.
func finishCloudEvents(events []CloudEvent, day Day, settings Settings, limit int) ([]CloudEvent, CloudEventCounts) {
	merged := mergeCloudEvents(events, settings.EventMergeGap)
	for i, e := range merged {
		merged[i] = e.finish(day)
	}
	counts := countCloudEvents(merged)
	slices.SortFunc(merged, worstCloudFirst)
	return merged[:min(len(merged), limit)], counts
}

func cloudQuality(actual, expected CloudSampleCounts, coverage CloudCoverage, spans []Span, day Day, settings Settings) CloudQuality {
	gaps := slices.Concat(
		cloudGaps(CloudFast, coverage.Fast, spans, settings.cloudGapLimit(CloudFast), day),
		cloudGaps(CloudSlow, coverage.Slow, spans, settings.cloudGapLimit(CloudSlow), day))
	q := CloudQuality{FastRate: cloudRate(actual.Fast, expected.Fast), SlowRate: cloudRate(actual.Slow, expected.Slow), GapCount: int64(len(gaps))}
	slices.SortFunc(gaps, CloudGap.compare)
	if len(gaps) > 0 {
		q.MaxGapSeconds = gaps[0].DurationSeconds
	}
	q.GapWindows = gaps[:min(len(gaps), maxCloudGaps)]
	return q
}

// cloudRate is what share of the expected samples is there, with four decimals.
func cloudRate(actual, expected int64) exact.Decimal {
	if expected <= 0 {
		return exact.Decimal{}
	}
	return exact.FromInt(actual).Quo(exact.FromInt(expected), 4)
}
