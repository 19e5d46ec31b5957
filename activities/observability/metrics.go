package observability

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	workflows "millrace/workflows/observability"
)

// Metrics are the Prometheus metrics of rollups and checks. A nil *Metrics
// counts nothing.
type Metrics struct {
	signals      *prometheus.CounterVec
	transactions prometheus.Counter
	traceRows    prometheus.Counter
	delay        prometheus.Histogram
	rules        *prometheus.CounterVec
	drift        *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	factory := promauto.With(registry)
	return &Metrics{
		signals: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_rollup_signals_total", Help: "Pending signals dealt with, by outcome: counted, dropped, stuck.",
		}, []string{"outcome"}),
		transactions: factory.NewCounter(prometheus.CounterOpts{
			Name: "millrace_rollup_transactions_total", Help: "Transactions tried to count signals.",
		}),
		traceRows: factory.NewCounter(prometheus.CounterOpts{
			Name: "millrace_rollup_trace_rows_total", Help: "Trace rows written.",
		}),
		delay: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "millrace_rollup_delay_seconds", Help: "Time from the receipt of a page's oldest signal to its counting.",
			Buckets: []float64{60, 300, 600, 1200, 3600, 6 * 3600, 24 * 3600},
		}),
		rules: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_alert_rules_total", Help: "Alert rules judged, by what became of them: judged, firing, new, raised, resolved.",
		}, []string{"outcome"}),
		drift: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millrace_signal_drift", Help: "Counters found wrong by the last check, by comparison; pending are signals of the day still not counted.",
		}, []string{"comparison"}),
	}
}

func (m *Metrics) counted(c workflows.Counts, delay time.Duration) {
	if m == nil {
		return
	}
	for outcome, n := range map[string]int64{"counted": c.Signals, "dropped": c.Dropped, "stuck": c.Stuck} {
		m.signals.WithLabelValues(outcome).Add(float64(n))
	}
	m.transactions.Add(float64(c.Transactions))
	m.traceRows.Add(float64(c.TraceRows))
	m.delay.Observe(delay.Seconds())
}

func (m *Metrics) judged(r workflows.EvaluateResult) {
	if m == nil {
		return
	}
	for outcome, n := range map[string]int64{"judged": r.Rules, "firing": r.Firing, "new": r.New, "raised": r.Raised, "resolved": r.Resolved} {
		m.rules.WithLabelValues(outcome).Add(float64(n))
	}
}

func (m *Metrics) checked(r workflows.DayResult, byComparison map[string]int64) {
	if m == nil {
		return
	}
	for _, comparison := range []string{workflows.RawAgainstDay, workflows.HoursAgainstDay, workflows.DaysAgainstMon} {
		m.drift.WithLabelValues(comparison).Set(float64(byComparison[comparison]))
	}
	m.drift.WithLabelValues("pending").Set(float64(r.Pending))
}
