// Command gateway is the HTTP interface of Millrace: it answers reads from the
// read models, takes in what clients send, and guards every door with tokens.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"millrace/platform/config"
	"millrace/platform/logging"
)

func main() {
	var cfg settings
	config.Load("gateway", "HTTP interface of Millrace.", &cfg)
	logger := logging.New(os.Stderr, "gateway", cfg.Logging)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, logger); err != nil {
		logger.ErrorContext(ctx, "gateway failed", "error", err)
		stop()
		os.Exit(1)
	}
}
