package cloudinfra

import "testing"

func BenchmarkEvaluateFast(b *testing.B) {
	report, thresholds := healthyFast(), DefaultThresholds()
	for b.Loop() {
		if EvaluateFast(report, thresholds).Status != Normal {
			b.Fatal("not normal")
		}
	}
}

func BenchmarkEvaluateSlow(b *testing.B) {
	report, thresholds := healthySlow(), DefaultThresholds()
	for b.Loop() {
		if EvaluateSlow(report, thresholds, noon).Status != Normal {
			b.Fatal("not normal")
		}
	}
}
