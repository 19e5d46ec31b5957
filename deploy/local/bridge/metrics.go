package bridge

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the bridge's work, so that a test can prove that nothing was lost: published
// equals stored plus raw error records, and queued plus telemetry error records, plus what was
// not acknowledged.
type Metrics struct {
	published    prometheus.Counter
	stored       prometheus.Counter
	queued       prometheus.Counter
	jobResults   prometheus.Counter
	failed       *prometheus.CounterVec
	errorRecords prometheus.Counter
	lost         prometheus.Counter
	seconds      prometheus.Histogram
}

// NewMetrics registers the bridge's metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "millrace_local_bridge_" + name, Help: help})
		reg.MustRegister(c)
		return c
	}
	m := &Metrics{
		published:    counter("published_total", "Messages that matched a rule."),
		stored:       counter("stored_total", "Bodies stored under raw/."),
		queued:       counter("queued_total", "Envelopes sent to the telemetry queue."),
		jobResults:   counter("job_results_total", "Envelopes sent to the job results queue."),
		errorRecords: counter("error_records_total", "Error records sent by error actions."),
		lost:         counter("unacknowledged_total", "Rule actions whose error action failed too, so that the message was not acknowledged."),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_local_bridge_failed_total", Help: "Rule actions that failed after their retries.",
		}, []string{"rule"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "millrace_local_bridge_seconds", Help: "Time from receipt to acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
		}),
	}
	reg.MustRegister(m.failed, m.seconds)
	for _, rule := range []string{RuleRaw, RuleTelemetry, RuleJobResults} {
		m.failed.WithLabelValues(rule) // shown as 0 from the start
	}
	return m
}

func (m *Metrics) done(rule string) {
	switch rule {
	case RuleRaw:
		m.stored.Inc()
	case RuleTelemetry:
		m.queued.Inc()
	case RuleJobResults:
		m.jobResults.Inc()
	}
}
