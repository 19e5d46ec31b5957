// Command worker hosts workflows and activities on Temporal task queues.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"millrace/platform/config"
	"millrace/platform/logging"
	"millrace/platform/metrics"
	"millrace/platform/temporalconf"
	monitoring "millrace/storage/monitoring"
)

const program = "worker"

func main() {
	var s settings
	config.Load(program, "Hosts Millrace's workflows and activities.", &s)
	logger := logging.New(os.Stderr, program, s.Logging)
	slog.SetDefault(logger)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, logger)
	stop()
	if err != nil {
		logger.Error("worker ends", "error", err)
		os.Exit(1)
	}
	logger.Info("worker stopped")
}

// run works until ctx ends, then finishes what it holds within the stop timeout.
func run(ctx context.Context, s settings, logger *slog.Logger) error {
	registry := metrics.NewRegistry()
	clients, err := newClients(ctx)
	if err != nil {
		return err
	}
	keys, err := monitoring.LoadKeyRing(s.Monitoring.TokenKeysFile)
	if err != nil {
		return err
	}
	temporal, err := temporalconf.Dial(ctx, logger, registry)
	if err != nil {
		return err
	}
	defer temporal.Close()
	h := newHost(temporal, s)
	d := dependencies{settings: s, clients: clients, temporal: temporal, keys: keys, registry: registry, logger: logger}
	d.alerting = newAlerting(d)
	for _, register := range capabilities {
		register(h, d)
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return metrics.Serve(ctx, s.MetricsAddress, registry) })
	work.Go(func() error { return h.run(ctx, logger) })
	if err := work.Wait(); err != nil {
		return fmt.Errorf("work on %v: %w", s.TaskQueues.Names, err)
	}
	return nil
}
