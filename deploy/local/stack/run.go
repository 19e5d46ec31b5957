package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"millrace/deploy/local/supervise"
	"millrace/deploy/local/sweep"
	"millrace/deploy/local/toolchain"
)

// RunOptions describe the stack that a person works with.
type RunOptions struct {
	// Dir keeps everything; it survives restarts.
	Dir string
	// BinDir is where the programs and tools are.
	BinDir string
	// Ports are where the parts listen.
	Ports Ports
	// StandInsOnly leaves our own programs out.
	StandInsOnly bool
	// Say shows progress.
	Say func(format string, args ...any)
}

// Run starts the stack and keeps it running until it is interrupted, which returns nil, or until
// a part cannot live, which returns why.
func Run(ctx context.Context, o RunOptions) error {
	s, err := newRunStack(o)
	if err != nil {
		return err
	}
	unlock, err := lock(s.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.Ports.Resolve(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	if err := s.writeEnv(s.path("env")); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = s.run(ctx, o.StandInsOnly)
	interrupted := ctx.Err() != nil
	stop()
	s.shutdown()
	if interrupted && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

func newRunStack(o RunOptions) (*Stack, error) {
	dir, err := absDir(o.Dir)
	if err != nil {
		return nil, err
	}
	self, err := Self()
	if err != nil {
		return nil, err
	}
	tools, err := toolchain.Find(o.BinDir)
	if err != nil {
		return nil, err
	}
	binDir, err := filepath.Abs(o.BinDir)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", o.BinDir, err)
	}
	if !o.StandInsOnly {
		if err := checkPrograms(binDir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	return &Stack{Dir: dir, Self: self, Tools: tools, Ports: o.Ports, BinDir: binDir, Durable: true, Say: o.Say}, nil
}

func checkPrograms(binDir string) error {
	var errs []error
	for _, name := range binaries {
		if _, err := os.Stat(filepath.Join(binDir, name)); err != nil {
			errs = append(errs, fmt.Errorf("program %s is not in %s: run `make build`", name, binDir))
		}
	}
	return errors.Join(errs...)
}

// run starts everything in order and waits for the end.
func (s *Stack) run(ctx context.Context, standInsOnly bool) error {
	began := time.Now()
	s.Say("data in %s, logs in %s", s.Dir, s.path("logs"))
	if err := s.startStandIns(ctx); err != nil {
		return err
	}
	control, err := s.serveControl(ctx)
	if err != nil {
		return err
	}
	defer control()
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := s.tables(ctx)
	if err != nil {
		return err
	}
	if err := s.stopStreams(ctx, client); err != nil {
		return err
	}
	background.Go(func() { sweep.Run(ctx, client, sweep.Every, slog.Default()) })
	if !standInsOnly {
		if err := s.startPrograms(ctx); err != nil {
			return err
		}
		background.Go(func() { s.watchLive(ctx, client, began) })
	}
	s.welcome(standInsOnly, time.Since(began))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.supervisor.Failed():
		return err
	}
}

func (s *Stack) startStandIns(ctx context.Context) error {
	parts, err := s.standIns()
	if err != nil {
		return err
	}
	return s.startAll(ctx, parts)
}

func (s *Stack) startPrograms(ctx context.Context) error {
	err := s.finish(ctx, s.provision())
	if err != nil {
		return fmt.Errorf("%w\ntables of another version? `make clean` starts afresh; it deletes %s", err, s.Dir)
	}
	if err := s.finish(ctx, s.schedules()); err != nil {
		return err
	}
	if s.readyToken, err = s.token(ctx); err != nil {
		return err
	}
	if err := s.writeEnv(s.path("env")); err != nil {
		return err
	}
	if err := s.startAll(ctx, s.programs()); err != nil {
		return err
	}
	if err := s.finish(ctx, s.workflows()); err != nil {
		return err
	}
	return s.startAll(ctx, s.edges())
}

// finish runs a part to its end.
func (s *Stack) finish(ctx context.Context, part supervise.Part) error {
	began := time.Now()
	if err := s.supervisor.Run(ctx, part); err != nil {
		return err
	}
	s.Say("%-14s done after %s", part.Name, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// shutdown stops all parts. A further interrupt kills what is still running.
func (s *Stack) shutdown() {
	began := time.Now()
	s.Say("stopping all parts (once more to kill them)")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s.close(ctx)
	s.Say("stopped after %s; the data stays in %s", time.Since(began).Round(10*time.Millisecond), s.Dir)
}
