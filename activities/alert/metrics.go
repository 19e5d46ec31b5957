package alert

import (
	"github.com/prometheus/client_golang/prometheus"

	"millrace/domain/alert"
)

// Metrics are the Prometheus metrics of alerts. A nil *Metrics counts nothing.
type Metrics struct {
	outcomes *prometheus.CounterVec
	signals  prometheus.Counter
	raised   prometheus.Counter
}

// NewMetrics registers the metrics of alerts.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_alerts_total", Help: "Alerts by source, severity, outcome and reason of the outcome.",
		}, []string{"source_type", "severity", "outcome", "why"}),
		signals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millrace_alert_signals_total", Help: "Signals sent to RiskAlert entities.",
		}),
		raised: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millrace_alerts_signalled_total", Help: "Alerts carried by the signals.",
		}),
	}
	registry.MustRegister(m.outcomes, m.signals, m.raised)
	return m
}

// count counts an outcome. The reasons of rules carry a name after a colon,
// which would make a label without bounds.
func (m *Metrics) count(r alert.Record) {
	if m == nil {
		return
	}
	m.outcomes.WithLabelValues(string(r.SourceType), string(r.Severity), string(r.Outcome), r.WhyToken()).Inc()
}

func (m *Metrics) signal(alerts int) {
	if m == nil {
		return
	}
	m.signals.Inc()
	m.raised.Add(float64(alerts))
}
