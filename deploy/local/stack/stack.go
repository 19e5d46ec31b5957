// Package stack puts the local stack together: which parts it has, how they find each other, and
// the two ways to run it. Run is the stack a person works with, kept in a directory; Exec is a
// fresh one around a single command, for tests.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/deploy/local/broker"
	"millrace/deploy/local/pki"
	"millrace/deploy/local/supervise"
	"millrace/deploy/local/toolchain"
)

const workerIdentity = broker.WorkerIdentity

// Factories are the simulated factories.
var Factories = []string{"factory-a", "factory-b", "factory-c"}

// Stack is one local stack.
type Stack struct {
	// Dir is the absolute directory that holds everything the stack writes.
	Dir string
	// Self is the absolute path of this program, which serves some of the parts.
	Self string
	// BinDir is the absolute directory of our own programs.
	BinDir string
	// Tools are the programs that others made.
	Tools toolchain.Tools
	// Ports are resolved.
	Ports Ports
	// Durable keeps Temporal, tables and queues in files, so that they survive a restart of
	// their part. Objects are files in any case.
	Durable bool
	// Headless leaves the Temporal web UI out.
	Headless bool
	// KeepRoutes keeps changes of the rules' destinations over a restart of the broker.
	KeepRoutes bool
	// Say shows a line of progress to the person.
	Say func(format string, args ...any)

	certMu     sync.Mutex // guards making certificates
	authority  *pki.Authority
	supervisor *supervise.Supervisor
	readyToken string // opens the gateway to the person; empty before it is made
}

// open makes the directory and the certificates, and the supervisor that will run the parts.
func (s *Stack) open() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("create %s: %w", s.Dir, err)
	}
	var err error
	if s.authority, err = pki.Open(s.certs(), time.Now); err != nil {
		return err
	}
	if _, err := s.authority.Server(); err != nil {
		return err
	}
	for _, id := range append([]string{broker.WorkerIdentity, broker.BridgeIdentity}, Factories...) {
		if _, err := s.authority.Client(id); err != nil {
			return err
		}
	}
	s.supervisor = supervise.New(s.path("logs"), supervise.DefaultPolicy, slog.Default())
	return nil
}

// startAll starts parts at the same time and waits until all are up.
func (s *Stack) startAll(ctx context.Context, parts []supervise.Part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return s.start(ctx, part) })
	}
	return group.Wait()
}

func (s *Stack) start(ctx context.Context, part supervise.Part) error {
	began := time.Now()
	if err := s.supervisor.Start(ctx, part); err != nil {
		// The reason that the supervisor gave up says more than that the part is not up.
		select {
		case failure := <-s.supervisor.Failed():
			return failure
		default:
			return err
		}
	}
	s.Say("%-14s up after %s", part.Name, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// close stops all parts; a second interrupt, which ends ctx, kills them.
func (s *Stack) close(ctx context.Context) {
	s.supervisor.Close(ctx)
}

// Self returns the absolute path of the running program.
func Self() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return self, nil
}

// absDir returns dir as an absolute path and refuses one that cannot hold the stack.
func absDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %q: %w", dir, err)
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s: %w", abs, errors.New("not a directory"))
	}
	return abs, nil
}
