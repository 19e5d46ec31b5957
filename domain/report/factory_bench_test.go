package report

import (
	"fmt"
	"testing"
	"time"
)

// busyHour has 2,580 objects with values that differ.
func busyHour(start time.Time) []sample {
	var samples []sample
	for i := range 1200 {
		at := start.Add(time.Duration(i) * 3 * time.Second)
		m := calm()
		m.temperature, m.humidity, m.pressure = fmt.Sprintf("24.%04d", i*7%10_000), fmt.Sprintf("45.%04d", i*13%10_000), fmt.Sprintf("1013.%02d", i%100)
		m.fire, m.fall = fmt.Sprintf("0.%02d", i%50), fmt.Sprintf("0.%02d", i%90)
		samples = append(samples, stateSample(factoryA, at, m), riskSample(factoryA, at, fmt.Sprintf("%d.%02d", 60+i%40, i%100), "normal", "temperature", "humidity", "fall_score"))
	}
	for i := range 180 {
		samples = append(samples, infraSample(factoryA, start.Add(time.Duration(i)*20*time.Second), cluster{restarts: i / 60}))
	}
	return samples
}

func BenchmarkFactoryHour(b *testing.B) {
	day, hour, start := newYear(b)
	samples := busyHour(start)
	bodies := make([][]byte, len(samples))
	var size int64
	for i, one := range samples {
		bodies[i] = []byte(one.body)
		size += int64(len(one.body))
	}
	settings := DefaultSettings()
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		gathered := NewFactoryHour(factoryA, day, hour, settings)
		for i, body := range bodies {
			gathered.Add(samples[i].dataset, body)
		}
		gathered.Summary()
	}
	b.ReportMetric(float64(len(bodies))*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

func BenchmarkFactoryHourSummary(b *testing.B) {
	day, hour, start := newYear(b)
	gathered := NewFactoryHour(factoryA, day, hour, DefaultSettings())
	for _, one := range busyHour(start) {
		one.addTo(gathered)
	}
	b.ReportAllocs()
	for b.Loop() {
		gathered.Summary()
	}
	b.ReportMetric(float64(len(asJSON(b, gathered.Summary()))), "summary-bytes")
}

func BenchmarkMergeFactoryDay(b *testing.B) {
	day, settings := parseDay(b, "2026-01-01", "Asia/Seoul"), DefaultSettings()
	var hours []FactoryHourSummary
	for _, hour := range day.Hours() {
		hours = append(hours, summarise(factoryA, day, hour, settings, busyHour(hour.Start)))
	}
	b.ReportAllocs()
	for b.Loop() {
		daily := MergeFactoryDay(factoryA, day, settings, hours)
		daily.Context(settings)
		daily.Document(Korean)
	}
	b.ReportMetric(float64(len(asJSON(b, MergeFactoryDay(factoryA, day, settings, hours)))), "daily-bytes")
}
