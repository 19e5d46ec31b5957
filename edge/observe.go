package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"millrace/edge/publisher"
)

// observer counts what passes over the outbox did.
func observer(registry *prometheus.Registry) func(publisher.Result) {
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millrace_edge_messages_total", Help: "Messages of the outbox by what became of them in a pass.",
	}, []string{"result"})
	passes := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "millrace_edge_passes_total", Help: "Passes over the outbox.",
	})
	last := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "millrace_edge_last_published_timestamp_seconds", Help: "End of the last pass that published something.",
	})
	registry.MustRegister(messages, passes, last)
	return func(r publisher.Result) {
		passes.Inc()
		messages.WithLabelValues("published").Add(float64(r.Published))
		messages.WithLabelValues("quarantined").Add(float64(r.Quarantined))
		messages.WithLabelValues("failed").Add(float64(r.Failed))
		if r.Published > 0 {
			last.SetToCurrentTime()
		}
	}
}
