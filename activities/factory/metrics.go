package factory

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/domain/factory"
)

// Metrics are the Prometheus metrics of ingest. A nil *Metrics counts nothing.
type Metrics struct {
	messages *prometheus.CounterVec
	latency  prometheus.Histogram
	cut      prometheus.Counter
}

// NewMetrics registers the metrics of ingest.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_ingest_messages_total", Help: "Telemetry messages by source type and what became of them.",
		}, []string{"source_type", "outcome"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "millrace_ingest_latency_seconds", Help: "Time from receipt by the rule engine to the projected state.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millrace_ingest_cut_total", Help: "Nodes, workloads, devices and strings that were cut from messages.",
		}),
	}
	registry.MustRegister(m.messages, m.latency, m.cut)
	return m
}

func (m *Metrics) observe(r Result, latency time.Duration) {
	if m == nil {
		return
	}
	m.messages.WithLabelValues(string(r.Message.SourceType), string(r.Outcome)).Inc()
	if r.Outcome != Applied {
		return
	}
	m.latency.Observe(latency.Seconds())
	m.cut.Add(float64(cutFrom(r)))
}

// cutFrom is how much of an applied message was cut.
func cutFrom(r Result) int {
	switch r.Message.SourceType {
	case factory.SourceFactoryState:
		return r.Committed.FactoryState.Cut.Total()
	case factory.SourceInfraState:
		return r.Committed.InfraState.Cut.Total()
	default:
		return 0
	}
}
