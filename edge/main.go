// Command edge is what runs at a factory: it publishes the messages of the
// outbox to AWS IoT Core, and it simulates factories.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/platform/config"
	"millrace/platform/logging"
	"millrace/platform/metrics"
)

const (
	program     = "edge"
	description = "Millrace at the factory: publishes the outbox to AWS IoT Core and simulates factories."
)

// commands are the edge's commands.
type commands struct {
	config.Logging
	config.Metrics

	Publish  publishCommand  `cmd:"" help:"Publish the messages of the outbox; delete each when the broker has confirmed it."`
	Simulate simulateCommand `cmd:"" help:"Simulate factories: write their messages into the outbox, and publish them with --publish."`
}

// site is what the commands share.
type site struct {
	log      *slog.Logger
	registry *prometheus.Registry
}

func main() {
	trimEnvironment()
	var cli commands
	parsed := config.Load(program, description, &cli)
	log := logging.New(os.Stderr, program, cli.Logging)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := site{log: log, registry: metrics.NewRegistry()}
	go func() {
		if err := metrics.Serve(ctx, cli.MetricsAddress, s.registry); err != nil {
			log.Error("no metrics", "error", err)
		}
	}()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run(s)
	stop()
	if err != nil {
		log.Error("edge ends", "error", err)
		os.Exit(1)
	}
}

// trimEnvironment takes the white space off the variables that the programs
// read: secrets mounted as files bring a newline with them. Empty ones count as
// not set.
func trimEnvironment() {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "MILLRACE_") && !strings.HasPrefix(name, "AEGIS_") {
			continue
		}
		trimmed := strings.TrimSpace(value)
		if trimmed == "" {
			// It fails for invalid names only, which the environment can't hold.
			_ = os.Unsetenv(name)
		} else if trimmed != value {
			_ = os.Setenv(name, trimmed)
		}
	}
}
