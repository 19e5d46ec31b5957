package report

import (
	"errors"
	"strings"

	"millrace/domain/factory"
)

// CloudTarget is the target that is no factory.
const CloudTarget = "cloud-infra"

// CheckTarget refuses what is neither a factory id nor cloud-infra: targets are
// segments of keys.
func CheckTarget(target string) error {
	if target == CloudTarget {
		return nil
	}
	if err := factory.CheckFactoryID(target); err != nil {
		if bad, ok := errors.AsType[*factory.InvalidError](err); ok {
			return invalid("target", "must be cloud-infra or a factory id: "+bad.Rule)
		}
		return invalid("target", "must be cloud-infra or a factory id")
	}
	return nil
}

// DayPrefix is where the reports of a local day (yyyy-mm-dd) lie, such as
// reports/daily/yyyy=2026/mm=01/dd=01. The dates of keys must have passed ParseDay
// and the targets CheckTarget.
func DayPrefix(prefix, date string) string {
	year, rest, _ := strings.Cut(date, "-")
	month, day, _ := strings.Cut(rest, "-")
	return prefix + "/yyyy=" + year + "/mm=" + month + "/dd=" + day
}

// ReportPrefix is where everything about one target's day lies; it has no slash
// at its end.
func ReportPrefix(prefix, date, target string) string {
	return DayPrefix(prefix, date) + "/" + target
}

// HourKey is the key of the summary of an hour (00 to 23).
func HourKey(prefix, date, target, hour string) string {
	return ReportPrefix(prefix, date, target) + "/intermediate/hourly/hh=" + hour + ".json"
}

// DailyKey is the key of the day's summary.
func DailyKey(prefix, date, target string) string {
	name := "factory-daily-summary.json"
	if target == CloudTarget {
		name = "cloud-infra-daily-summary.json"
	}
	return ReportPrefix(prefix, date, target) + "/" + name
}

// ContextKey is the key of what a model is told about the day.
func ContextKey(prefix, date, target string) string {
	return ReportPrefix(prefix, date, target) + "/report-context.json"
}

// MarkdownKey is the key of the report as Markdown.
func MarkdownKey(prefix, date, target string) string {
	return ReportPrefix(prefix, date, target) + "/report.md"
}

// HTMLKey is the key of the report as one HTML file.
func HTMLKey(prefix, date, target string) string {
	return ReportPrefix(prefix, date, target) + "/report.html"
}

// MetadataKey is the key of how the report came about.
func MetadataKey(prefix, date, target string) string {
	return ReportPrefix(prefix, date, target) + "/generation-metadata.json"
}

// DraftKey is the key of a model's answer to an input with the given digest.
func DraftKey(prefix, date, target, digest string) string {
	return ReportPrefix(prefix, date, target) + "/drafts/" + digest + ".json"
}
