// Package report has the activities of the daily report: they plan a day,
// aggregate its hours, merge them, have a model word the findings, publish what
// passed the checks and tell people.
package report
