// Package report has the workflows of the daily report: one for a day, one for
// each target of it, and one that makes up for days in the past.
package report
