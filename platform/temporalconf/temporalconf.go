// Package temporalconf connects to Temporal with the settings that the temporal
// CLI reads too (TEMPORAL_ADDRESS, profiles, TLS), and adds metrics, traces, the
// program's logger and, where there are keys, the encryption of payloads.
package temporalconf

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
)

// Dial connects to Temporal. The SDK's metrics go to the registry.
func Dial(ctx context.Context, logger *slog.Logger, registry prometheus.Registerer) (client.Client, error) {
	options, err := clientOptions(logger, registry)
	if err != nil {
		return nil, err
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}

// Lazy is a client that connects when it is first used, for programs that have
// something to say without Temporal too.
func Lazy(logger *slog.Logger, registry prometheus.Registerer) (client.Client, error) {
	options, err := clientOptions(logger, registry)
	if err != nil {
		return nil, err
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("make Temporal client: %w", err)
	}
	return c, nil
}

// Namespace is the namespace that clients talk to.
func Namespace() (string, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return "", fmt.Errorf("load Temporal settings: %w", err)
	}
	return cmp.Or(options.Namespace, client.DefaultNamespace), nil
}

func clientOptions(logger *slog.Logger, registry prometheus.Registerer) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return client.Options{}, fmt.Errorf("load Temporal settings: %w", err)
	}
	codec, err := LoadCodec()
	if err != nil {
		return client.Options{}, err
	}
	if codec.Enabled() {
		options.DataConverter = blocking{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)}
	}
	options.Logger = log.NewStructuredLogger(logger)
	if options.MetricsHandler, err = metricsHandler(registry); err != nil {
		return client.Options{}, err
	}
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: otel.Tracer("millrace")})
	if err != nil {
		return client.Options{}, fmt.Errorf("make tracing interceptor: %w", err)
	}
	options.Interceptors = append(options.Interceptors, interceptor.ClientInterceptor(tracing))
	return options, nil
}

func metricsHandler(registry prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make metrics exporter: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: provider.Meter("temporal")}), nil
}
