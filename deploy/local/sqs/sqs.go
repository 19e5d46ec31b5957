// Package sqs serves the local stack's queues, and the other AWS APIs that collectors read, with
// kumo. kumo listens on a port of its own choice and names every queue by port 4566: a proxy in
// front of it gives a fixed address and corrects the names. Redrive does not work in kumo, and a
// kill loses what came after its last snapshot (FlushEvery); the reconcile job heals both.
package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sivchari/kumo"
)

const (
	// DataDirEnv and flushEnv are kumo's own settings. It reads the first while its packages
	// are initialised, so it must be in the environment before the process starts.
	DataDirEnv = "KUMO_DATA_DIR"
	flushEnv   = "KUMO_PERSIST_FLUSH_INTERVAL_MS"

	// FlushEvery is how often kumo writes its whole state when it changed: what a kill may lose,
	// against the cost of a long backlog written each time.
	FlushEvery = 500 * time.Millisecond
	// HealthPath answers 200 when kumo is up.
	HealthPath = "/health"
	// Account is the account id in the queue URLs that kumo makes.
	Account = "000000000000"

	stopTimeout = 2 * time.Second
)

// Config says where the queues listen and where they are kept.
type Config struct {
	// Addr is the loopback host and port to listen on.
	Addr string
	// Dir keeps the queues across restarts; empty keeps them in memory.
	Dir string
}

// Env returns the variables that a process serving cfg needs from its start.
func (c Config) Env() ([]string, error) {
	if c.Dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve queue directory %q: %w", c.Dir, err)
	}
	return []string{
		DataDirEnv + "=" + dir,
		flushEnv + "=" + strconv.FormatInt(FlushEvery.Milliseconds(), 10),
	}, nil
}

// CheckEnv reports whether the running process was started with the variables of cfg.Env.
func (c Config) CheckEnv() (bool, error) {
	want, err := c.Env()
	if err != nil {
		return false, err
	}
	if len(want) == 0 {
		return os.Getenv(DataDirEnv) == "", nil
	}
	return DataDirEnv+"="+os.Getenv(DataDirEnv) == want[0], nil
}

// QueueURL returns the URL of the queue called name at addr.
func QueueURL(addr, name string) string {
	return "http://" + addr + "/" + Account + "/" + name
}

// Serve runs the queues until ctx ends. It then stops taking requests and leaves kumo the time
// to write its last snapshot.
func Serve(ctx context.Context, cfg Config) error {
	if ok, err := cfg.CheckEnv(); err != nil || !ok {
		return errors.Join(err, fmt.Errorf("%s must be set for %q before the process starts", DataDirEnv, cfg.Dir))
	}
	if cfg.Dir != "" {
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return fmt.Errorf("create queue directory: %w", err)
		}
	}
	backend := kumo.NewServer()
	defer backend.Close()
	proxy, err := newProxy(backend.URL, cfg.Addr)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("serve queues: %w", err)
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	slog.Info("queues ready", "addr", cfg.Addr, "dir", cfg.Dir)
	select {
	case err := <-done:
		return fmt.Errorf("serve queues on %s: %w", cfg.Addr, err)
	case <-ctx.Done():
	}
	return stop(server, cfg.Dir != "")
}

func stop(server *http.Server, flush bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	// Long polls would hold a graceful stop for their whole wait: they are cut off.
	if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
		if err != nil {
			return fmt.Errorf("close queue connections: %w", err)
		}
	}
	if flush {
		time.Sleep(FlushEvery + FlushEvery/2)
	}
	return nil
}
