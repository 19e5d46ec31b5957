package artifact

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// JobMetrics are the Prometheus metrics of devices' replies. A nil *JobMetrics
// counts nothing.
type JobMetrics struct {
	replies *prometheus.CounterVec
	latency prometheus.Histogram
}

// NewJobMetrics registers the metrics.
func NewJobMetrics(registry prometheus.Registerer) *JobMetrics {
	factory := promauto.With(registry)
	return &JobMetrics{
		replies: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_job_results_total", Help: "Replies of devices by what became of them: finished, duplicate, late, quarantined.",
		}, []string{"outcome"}),
		latency: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "millrace_job_result_latency_seconds", Help: "Time from receipt of a reply by the rule engine until its lifecycle was told.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
	}
}

func (m *JobMetrics) count(outcome string, latency time.Duration) {
	if m == nil {
		return
	}
	m.replies.WithLabelValues(outcome).Inc()
	if outcome == jobFinished {
		m.latency.Observe(latency.Seconds())
	}
}
