package uplink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/edge/edgetest"
	"millrace/edge/outbox"
	"millrace/edge/publisher"
	"millrace/edge/uplink"
)

// These tests need the local stack's broker, with its rules: run make test.

// live is a factory of the test's own with an outbox.
type live struct {
	*edgetest.Factory

	config uplink.Config
	dir    *outbox.Dir
	log    *slog.Logger
}

func newLive(t testing.TB) *live {
	t.Helper()
	f := edgetest.New(t)
	dir, err := outbox.Open(filepath.Join(t.TempDir(), "outbox"), outbox.WithoutSync())
	require.NoError(t, err)
	return &live{Factory: f, dir: dir, log: slog.New(slog.DiscardHandler), config: uplink.Config{
		Endpoint: f.Endpoint, ClientID: "publisher-of-" + f.ID, CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile,
		KeepAlive: 30 * time.Second, Timeout: 10 * time.Second, MinDelay: 10 * time.Millisecond, MaxDelay: time.Second,
	}}
}

func (l *live) link(t testing.TB) *uplink.Link {
	t.Helper()
	link, err := uplink.New(l.config, l.log)
	require.NoError(t, err)
	t.Cleanup(link.Disconnect)
	return link
}

func (l *live) publisher(t testing.TB) *publisher.Publisher {
	t.Helper()
	config := publisher.Defaults()
	config.InstanceID = "live-test"
	config.Rate = 0
	config.Backoff, config.MaxBackoff = 50*time.Millisecond, 200*time.Millisecond
	return publisher.New(config, l.dir, l.link(t), slog.New(slog.DiscardHandler))
}

func TestLiveMessagesArriveOnceEach(t *testing.T) {
	l := newLive(t)
	ids := edgetest.Put(t, l.dir, l.ID, "m", 100)
	result, err := l.publisher(t).Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, publisher.Result{Published: 100}, result)
	require.ElementsMatch(t, ids, l.Stored(t))
	require.Zero(t, edgetest.Waiting(t, l.dir))
}

func TestLiveAMessageThatThePolicyForbidsBlocksNobody(t *testing.T) {
	l := newLive(t)
	ids := edgetest.Put(t, l.dir, l.ID, "first", 30)
	forbidden := edgetest.Put(t, l.dir, "factory-a", "forbidden", 2)
	ids = append(ids, edgetest.Put(t, l.dir, l.ID, "last", 30)...)
	result, err := l.publisher(t).Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, result.Published)
	require.GreaterOrEqual(t, result.Failed, len(forbidden), "those held back may be tried a second time in the pass")
	require.Subset(t, l.Stored(t), ids)
	require.Len(t, l.Stored(t), len(ids))
	require.Equal(t, len(forbidden), edgetest.Waiting(t, l.dir))
}

func TestLiveNothingIsLostWhenConnectionsBreak(t *testing.T) {
	l := newLive(t)
	cut := l.throughProxy(t)
	ids := edgetest.Put(t, l.dir, l.ID, "m", 600)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	p := l.publisher(t)
	done := make(chan struct{})
	go func() { defer close(done); p.Loop(ctx) }()
	cuts := 0
	for edgetest.Waiting(t, l.dir) > 0 && ctx.Err() == nil {
		time.Sleep(150 * time.Millisecond)
		if cuts < 5 {
			cut()
			cuts++
		}
	}
	stop()
	<-done
	require.Zero(t, edgetest.Waiting(t, l.dir))
	require.ElementsMatch(t, ids, l.Stored(t), "each at least once, under one key")
	require.Positive(t, cuts)
}

// throughProxy puts a proxy before the broker; the function returned cuts all
// connections through it.
func (l *live) throughProxy(t *testing.T) (cut func()) {
	t.Helper()
	broker := l.config.Endpoint
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	l.config.Endpoint = listener.Addr().String()
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", broker)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			go func() { io.Copy(server, client); server.Close() }()
			go func() { io.Copy(client, server); client.Close() }()
		}
	}()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			conn.Close()
		}
		open = nil
	}
}

func TestLiveARefusalIsToldFromANetworkError(t *testing.T) {
	holder, other := newLive(t), newLive(t)
	require.NoError(t, holder.link(t).Connect(t.Context()))
	other.config.ClientID = holder.config.ClientID
	err := other.link(t).Connect(t.Context())
	var refused *uplink.RefusedError
	require.ErrorAs(t, err, &refused, "the client id is another identity's")
	require.ErrorContains(t, err, "broker refused the connection")

	other.config.Endpoint = "127.0.0.1:1"
	err = other.link(t).Connect(t.Context())
	require.Error(t, err)
	require.False(t, errors.As(err, &refused))
}

func TestLiveTwoClientsWithOneIDAreReported(t *testing.T) {
	l := newLive(t)
	var lines bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelError}))
	first := l.link(t)
	l.log = slog.New(slog.DiscardHandler)
	second := l.link(t)
	for range 4 {
		require.NoError(t, first.Connect(t.Context()))
		require.NoError(t, second.Connect(t.Context()))
		receipt := first.Send("aegis/"+l.ID+"/factory_state", []byte("{}"))
		<-receipt.Done()
		require.Eventually(t, func() bool { return first.Send("aegis/x/y", nil).Error() != nil }, 10*time.Second, 10*time.Millisecond)
	}
	require.Contains(t, lines.String(), "another client may use the same client id")
}

func TestLiveACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	l := newLive(t)
	l.config.CertFile, l.config.KeyFile, _ = selfSigned(t)
	require.Error(t, l.link(t).Connect(t.Context()))
}

func TestLiveABrokerOfAnotherAuthorityIsNotTrusted(t *testing.T) {
	l := newLive(t)
	_, _, l.config.CAFile = selfSigned(t)
	require.ErrorContains(t, l.link(t).Connect(t.Context()), "certificate")
}

func TestLiveOneConnectionForEachMessage(t *testing.T) {
	l := newLive(t)
	l.config.PerMessage = true
	ids := edgetest.Put(t, l.dir, l.ID, "m", 5)
	p := l.publisher(t)
	p.Config.Window = 1
	result, err := p.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, publisher.Result{Published: 5}, result)
	require.ElementsMatch(t, ids, l.Stored(t))
}

func BenchmarkLiveDrain(b *testing.B) {
	const files = 2000
	l := newLive(b)
	for b.Loop() {
		b.StopTimer()
		edgetest.Put(b, l.dir, l.ID, fmt.Sprintf("m%d", b.N), files)
		p := l.publisher(b)
		b.StartTimer()
		result, err := p.Once(b.Context())
		require.NoError(b, err)
		require.Equal(b, files, result.Published)
	}
	b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}
