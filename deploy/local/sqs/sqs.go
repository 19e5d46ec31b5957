// Package sqs serves the local stack's queues, and the other AWS APIs that collectors read, with
// kumo. kumo listens on a port of its own choice and names every queue by port 4566: a proxy in
// front of it gives a fixed address, corrects the names, and keeps a journal of the messages that
// were received and not deleted, which kumo itself would lose at every end. A kill still loses what
// was sent after kumo's last snapshot (FlushEvery).
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
	inflight, err := cfg.restored(ctx, backend.URL)
	if err != nil {
		return err
	}
	if inflight != nil { // after the last request is cut off
		defer func() { _ = inflight.close() }() // each write was checked
	}
	proxy, err := newProxy(backend.URL, cfg.Addr, inflight)
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

// restored returns the journal of messages in flight after those of the last run are in their queues
// again. There is none without a directory.
func (c Config) restored(ctx context.Context, backend string) (*journal, error) {
	if c.Dir == "" {
		return nil, nil
	}
	has, err := waiting(c.Dir)
	if err != nil { // kumo ignores it too, and begins with no queues
		slog.Warn("look for messages that need not be sent again", "error", err)
	}
	inflight, err := openJournal(filepath.Join(c.Dir, journalFile))
	if err != nil {
		return nil, err
	}
	if err := inflight.restore(ctx, backend, has); err != nil {
		return nil, errors.Join(err, inflight.close())
	}
	return inflight, nil
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
