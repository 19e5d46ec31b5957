package server

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
)

type metrics struct {
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	afterUse   *prometheus.CounterVec
	overBudget *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		durations: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millrace_http_request_duration_seconds", Help: "Time to answer a request.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 12},
		}, []string{"method", "route"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "millrace_http_requests_in_flight", Help: "Requests being answered.",
		}),
		afterUse: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_token_after_use_total", Help: "Work done after a token was used, by outcome.",
		}, []string{"outcome"}),
		overBudget: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_budget_refusals_total", Help: "Requests refused because their budget was used up.",
		}, []string{"kind"}),
	}
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	method = knownMethod(method)
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(method, route).Observe(took.Seconds())
}

// CountCalls counts the requests to AWS services by service and operation; it
// goes into a client's APIOptions.
func CountCalls(registry prometheus.Registerer) func(*middleware.Stack) error {
	calls := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "millrace_aws_calls_total", Help: "Requests to AWS services.",
	}, []string{"service", "operation"})
	count := middleware.InitializeMiddlewareFunc("CountCalls",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			calls.WithLabelValues(awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)).Inc()
			return next.HandleInitialize(ctx, in)
		})
	return func(stack *middleware.Stack) error { return stack.Initialize.Add(count, middleware.After) }
}
