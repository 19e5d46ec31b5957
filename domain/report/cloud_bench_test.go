package report

import (
	"slices"
	"testing"
)

// BenchmarkCloudHour reads the 72 snapshots of an hour.
func BenchmarkCloudHour(b *testing.B) {
	day := seoulDay(b, "2026-01-01")
	hour := day.Hours()[10]
	var bodies []cloudBody
	var size int64
	for _, body := range cloudBodiesOf(slices.Collect(cloudDay(day).Objects())) {
		if s, ok := readCloudSample(body.half, body.body, DefaultSettings()); ok && hour.Contains(s.at) {
			bodies, size = append(bodies, body), size+int64(len(body.body))
		}
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if s := cloudSummaryOf(day, hour, bodies); s.InputCounts.Fast != 60 {
			b.Fatal("samples are missing")
		}
	}
}

// BenchmarkCloudDay merges the 24 hours of a day and makes its document.
func BenchmarkCloudDay(b *testing.B) {
	day := seoulDay(b, "2026-01-01")
	hours := cloudHourSummaries(day, DefaultSettings(), cloudDay(day).Objects())
	b.ReportAllocs()
	for b.Loop() {
		d := MergeCloudDay(day, DefaultSettings(), hours)
		if d.Context(DefaultSettings()); len(d.Document(Korean).Sections) != 9 {
			b.Fatal("sections are missing")
		}
	}
}
