package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
	"millrace/edge/simulator"
)

func quiet() site {
	return site{log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry()}
}

func messages(t *testing.T, root string) map[string]string {
	t.Helper()
	dir, err := outbox.Open(root)
	require.NoError(t, err)
	entries, err := dir.Scan(outbox.Entry{}, 100_000)
	require.NoError(t, err)
	bodies := map[string]string{}
	for _, e := range entries {
		body, err := dir.Read(e.Name, 1<<20)
		require.NoError(t, err)
		bodies[strings.TrimSuffix(e.Name, ".json")] = string(body)
	}
	return bodies
}

func simulate(t *testing.T, ctx context.Context, args ...string) error {
	t.Helper()
	cli, err := parse(t, nil, append([]string{"simulate", "--no-fsync"}, args...)...)
	require.NoError(t, err)
	return cli.Simulate.Run(ctx, quiet())
}

func TestTheSameSeedAndStartWriteTheSameFiles(t *testing.T) {
	fill := func() map[string]string {
		root := filepath.Join(t.TempDir(), "outbox")
		require.NoError(t, simulate(t, t.Context(), "--outbox", root, "--factory=factory-b", "--seed=5", "--start=2026-11-30T00:00:00Z", "--duration=30m"))
		return messages(t, root)
	}
	first := fill()
	require.GreaterOrEqual(t, len(first), 600)
	require.Equal(t, first, fill())
}

func TestManyFactoriesHaveTheirOwnOutboxesAndSequences(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "outbox")
	require.NoError(t, simulate(t, t.Context(), "--outbox", root, "--factories=3", "--rate=30", "--seed=1", "--start=2026-11-30T00:00:00Z", "--duration=2s"))
	total := 0
	for _, id := range []string{"factory-001", "factory-002", "factory-003"} {
		bodies := messages(t, filepath.Join(root, id))
		total += len(bodies)
		for messageID := range bodies {
			require.True(t, strings.HasPrefix(messageID, id+":"))
		}
		require.FileExists(t, filepath.Join(dir, id+"-publish-sequence"))
	}
	require.InDelta(t, 60, total, 6)
}

func TestTheSequenceGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "outbox")
	for range 2 {
		require.NoError(t, simulate(t, t.Context(), "--outbox", root, "--seed=1", "--start=2026-11-30T00:00:00Z", "--duration=1m"))
	}
	stored, err := os.ReadFile(filepath.Join(dir, "factory-b-publish-sequence"))
	require.NoError(t, err)
	require.Equal(t, "6\n", string(stored))
}

func TestABrokenSequenceFileIsAClearError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "factory-b-publish-sequence"), []byte("?"), 0o600))
	err := simulate(t, t.Context(), "--outbox", filepath.Join(dir, "outbox"), "--start=2026-11-30T00:00:00Z", "--duration=1m")
	require.ErrorContains(t, err, "must hold a whole number")
}

func TestADropDrillSwitchedWhileRunning(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	cli, err := parse(t, nil, "simulate", "--no-fsync", "--factory=factory-a", "--outbox", root, "--drill=drop")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cli.Simulate.Run(ctx, quiet()) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, messages(t, root))
		require.NoError(t, os.Remove(filepath.Join(root, ".drill")))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		require.Len(t, messages(t, root), 20+3)
		stop()
		require.NoError(t, <-done)
	})
}

// agreeable is a broker that confirms everything.
type agreeable struct{ sent atomic.Int64 }

type confirmed struct{ done chan struct{} }

func (c confirmed) Done() <-chan struct{} { return c.done }
func (confirmed) Error() error            { return nil }

func (*agreeable) Connect(context.Context) error { return nil }
func (*agreeable) Disconnect()                   {}
func (d *agreeable) Send(string, []byte) publisher.Receipt {
	d.sent.Add(1)
	done := make(chan struct{})
	close(done)
	return confirmed{done}
}

func TestABacklogDrillFillsTheOutboxAndItsEndDrainsIt(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	cli, err := parse(t, nil, "simulate", "--no-fsync", "--factory=factory-a", "--outbox", root, "--drill=backlog")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := quiet()
		p, err := cli.Simulate.plant("factory-a", s.log)
		require.NoError(t, err)
		box, err := outbox.Open(root)
		require.NoError(t, err)
		broker := &agreeable{}
		p.publisher = publisher.New(publisher.Defaults(), box, broker, s.log)
		watch := &drillWatch{file: simulator.NewDrillFile(root), log: s.log, last: simulator.DrillNone}
		p.publisher.Paused = func() bool { return watch.is(simulator.DrillBacklog) }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.work(ctx, ctx) }()
		time.Sleep(20*time.Minute - time.Second)
		synctest.Wait()
		require.Len(t, messages(t, root), 400+60)
		require.Zero(t, broker.sent.Load())
		require.NoError(t, simulator.NewDrillFile(root).Set(simulator.DrillNone))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Less(t, len(messages(t, root)), 5)
		stop()
		require.NoError(t, <-done)
	})
}

func TestAFiniteRunPublishesItsRest(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	cli, err := parse(t, nil, "simulate", "--no-fsync", "--factory=factory-a", "--outbox", root)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := quiet()
		p, err := cli.Simulate.plant("factory-a", s.log)
		require.NoError(t, err)
		box, err := outbox.Open(root)
		require.NoError(t, err)
		broker := &agreeable{}
		p.publisher = publisher.New(publisher.Defaults(), box, broker, s.log)
		working, stop := context.WithTimeout(t.Context(), 59*time.Second)
		defer stop()
		require.NoError(t, p.work(t.Context(), working))
		require.Empty(t, messages(t, root))
		require.EqualValues(t, 20+3, broker.sent.Load())
	})
}

func TestTwoPublishersOfOneOutboxAreRefused(t *testing.T) {
	root := filepath.Join(t.TempDir(), "outbox")
	_, unlock, err := openToPublish(root, quiet().log)
	require.NoError(t, err)
	defer unlock()
	_, _, err = openToPublish(root, quiet().log)
	require.ErrorIs(t, err, outbox.ErrLocked)
}

func TestPublishWithoutCertificatesEndsAtOnce(t *testing.T) {
	cli, err := parse(t, required(), "publish", "--outbox", filepath.Join(t.TempDir(), "outbox"))
	require.NoError(t, err)
	require.ErrorContains(t, cli.Publish.Run(t.Context(), quiet()), "CA file")
}
