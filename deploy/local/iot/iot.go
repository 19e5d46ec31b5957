// Package iot is the local stand-in for AWS IoT Core: the message broker with the rules behind
// it, and a loopback interface with metrics and the rules' destinations.
package iot

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"millrace/deploy/local/bridge"
	"millrace/deploy/local/broker"
	"millrace/deploy/local/loopback"
	"millrace/deploy/local/pki"
)

// connections bounds the idle connections kept to each stand-in; every connected client may have
// one action in work.
const connections = 256

// Config describes the stand-in. The stores are found by the AWS SDK's own environment.
type Config struct {
	// Addr is where MQTT over TLS listens, AdminAddr where the loopback interface does.
	Addr, AdminAddr string
	// Certs is the directory of the certificate authority.
	Certs string
	// To says where the rules put things at first.
	To bridge.Destinations
	// RoutesFile keeps changes of the destinations; empty forgets them on restart.
	RoutesFile string
}

// Serve runs broker, rules and interface until ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	rules, registry, err := newBridge(ctx, cfg)
	if err != nil {
		return err
	}
	authority, err := pki.Open(cfg.Certs, time.Now)
	if err != nil {
		return err
	}
	serverTLS, err := authority.ServerTLS()
	if err != nil {
		return err
	}
	admin, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.AdminAddr)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w", err)
	}
	b, err := broker.Start(broker.Config{
		Addr: cfg.Addr, TLS: serverTLS, Handle: rules.Handle, Log: slog.Default(),
		Refused: refusals(registry),
	})
	if err != nil {
		return err
	}
	slog.Info("message broker ready", "addr", b.Addr(), "admin", admin.Addr().String())
	err = loopback.Serve(ctx, admin, handler(rules.Routes, registry))
	if closeErr := b.Close(); err == nil {
		err = closeErr
	}
	return err
}

func newBridge(ctx context.Context, cfg Config) (*bridge.Bridge, *prometheus.Registry, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	})
	// The bridge retries by itself, within what a publisher waits.
	aws, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithRetryMaxAttempts(1))
	if err != nil {
		return nil, nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	routes, err := bridge.NewRoutes(cfg.To, cfg.RoutesFile)
	if err != nil {
		return nil, nil, err
	}
	registry := prometheus.NewRegistry()
	return &bridge.Bridge{
		Objects: s3.NewFromConfig(aws), Queues: sqs.NewFromConfig(aws),
		Routes: routes, Metrics: bridge.NewMetrics(registry), Log: slog.Default(),
		Now: time.Now, Retry: bridge.DefaultRetry,
	}, registry, nil
}

func refusals(reg prometheus.Registerer) func(error) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "millrace_local_broker_refused_total", Help: "Connections and packets refused by limit or policy.",
	})
	reg.MustRegister(counter)
	return func(error) { counter.Inc() }
}

func handler(routes *bridge.Routes, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("POST /bridge", func(w http.ResponseWriter, r *http.Request) {
		var change bridge.Change
		if err := loopback.Read(r, &change); err != nil {
			loopback.Fail(w, http.StatusBadRequest, err)
			return
		}
		if err := routes.Apply(change); err != nil {
			loopback.Fail(w, http.StatusInternalServerError, err)
			return
		}
		loopback.Answer(w, http.StatusOK, routes.Of(change.Factory))
	})
	return mux
}
