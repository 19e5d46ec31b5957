package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/platform/awsconf"
	"millrace/platform/metrics"
	"millrace/platform/temporalconf"
	alertstore "millrace/storage/alert"
	cloudinfrastore "millrace/storage/cloudinfra"
	factorystore "millrace/storage/factory"
	monitoringstore "millrace/storage/monitoring"
	observabilitystore "millrace/storage/observability"
	reportstore "millrace/storage/report"
)

func run(ctx context.Context, cfg settings, logger *slog.Logger) error {
	ring, err := monitoringstore.LoadKeyRing(cfg.TokenKeysFile)
	if err != nil {
		return err
	}
	if ring.Current == "" {
		logger.WarnContext(ctx, "no key ring: tokens are made without a saved copy and can't be revealed")
	}
	aws, err := awsconf.Load(ctx)
	if err != nil {
		return err
	}
	registry := metrics.NewRegistry()
	b, err := newBackends(ctx, cfg, aws, registry, logger)
	if err != nil {
		return err
	}
	s, err := newServer(cfg, ring, b, registry, logger)
	if err != nil {
		return err
	}
	warmUp(ctx, cfg, b.tables, logger)
	listener, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	logger.InfoContext(ctx, "gateway listens", "address", listener.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Serve(ctx, listener) })
	group.Go(func() error { return metrics.Serve(ctx, cfg.MetricsAddress, registry) })
	return group.Wait()
}

// warmUp opens connections to the tables, so that the first requests need not
// wait for them. A table that does not answer yet is for /readyz to tell.
func warmUp(ctx context.Context, cfg settings, client *dynamodb.Client, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, tableConnectTimeout)
	defer cancel()
	if _, err := (factorystore.Store{Table: factorystore.StatusTable(client, cfg.FactoryStatusTable)}).BatchLatest(ctx, cfg.FactoryIDs); err != nil {
		logger.WarnContext(ctx, "the tables do not answer yet", "error", err)
	}
}

// backends are what the routes rest on.
type backends struct {
	tables    *dynamodb.Client
	artifacts server.ArtifactConfig
	reports   reportstore.Store
}

func newBackends(ctx context.Context, cfg settings, aws aws.Config, registry prometheus.Registerer, logger *slog.Logger) (backends, error) {
	b := backends{tables: tableClient(aws, registry), reports: reports(cfg, aws)}
	var err error
	b.artifacts, err = newArtifacts(ctx, cfg, aws, b.tables, registry, logger)
	return b, err
}

// newServer wires the capabilities: each is one Routes.
func newServer(cfg settings, ring monitoring.KeyRing, b backends, registry *prometheus.Registry, logger *slog.Logger) (*server.Server, error) {
	store := monitoringstore.New(b.tables, cfg.MonitoringTable)
	store.MinuteRetention = cfg.MinuteRetention
	factories := factorystore.Store{Table: factorystore.StatusTable(b.tables, cfg.FactoryStatusTable)}
	signals := observabilitystore.New(b.tables, cfg.GovernanceTable)
	prices, err := loadPrices(cfg.PriceTableFile)
	if err != nil {
		return nil, err
	}
	codec, err := temporalconf.LoadCodec()
	if err != nil {
		return nil, err
	}
	alerts := alertstore.New(b.tables, cfg.FactoryStatusTable, cfg.GovernanceTable)
	routes := []server.Routes{
		server.Tokens(store, ring, time.Now),
		server.Sources(store, registry, time.Now),
		server.Activities(store, time.Now),
		server.Memories(store, time.Now),
		server.Statistics(store),
		server.Factories(factories, cfg.FactoryIDs, time.Now),
		server.Alerts(alerts, cfg.FactoryIDs, time.Now),
		server.CloudInfra(cloudinfrastore.Store{Table: factories.Table}, time.Now),
		server.Signals(signals, prices, registry, time.Now),
		server.Aggregates(signals, time.Now),
		server.Traces(signals, time.Now),
		server.SignalAlerts(signals, time.Now),
		server.AlertRules(signals, time.Now),
		server.Artifacts(b.artifacts),
		server.Reports(b.reports),
		server.Codec(codec),
	}
	if cfg.SlackSinkFile != "" {
		sink, err := server.NewSlackSink(cfg.SlackSinkFile, time.Now)
		if err != nil {
			return nil, err
		}
		routes = append(routes, sink.Routes)
	}
	return server.New(server.Config{
		Tokens: store, Ring: ring, Limits: cfg.Budgets.limits(), Origins: cfg.CORSOrigins, Logger: logger, Registry: registry,
		Checks: map[string]server.Check{"dynamodb": func(ctx context.Context) error {
			_, _, err := store.Grant(ctx, "readiness")
			return err
		}},
	}, routes...)
}

// Limits of the connections to the tables: a slow table must not hold the
// requests of its callers.
const (
	tableConnectTimeout = 2 * time.Second
	tableReadTimeout    = 5 * time.Second
	tablePool           = 20
)

func tableClient(cfg aws.Config, registry prometheus.Registerer) *dynamodb.Client {
	bound, count := server.Bound(server.StoreConcurrency), server.CountCalls(registry)
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.HTTPClient = awshttp.NewBuildableClient().
			WithTimeout(tableReadTimeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = tableConnectTimeout }).
			WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = tablePool })
		o.APIOptions = append(o.APIOptions, bound, count)
	})
}
