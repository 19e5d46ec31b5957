package uplink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
	"millrace/edge/uplink"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
)

// These tests need the local stack's broker, with its rules: run make test.

// live is a factory of its own at the local broker, whose messages go to a
// bucket and a queue of their own.
type live struct {
	id     string
	config uplink.Config
	bucket objects.Bucket
	dir    *outbox.Dir
}

func newLive(t testing.TB) *live {
	t.Helper()
	control := os.Getenv("MILLRACE_LOCAL_CONTROL")
	if control == "" {
		t.Fatal("no local stack: run make test, or bin/local exec -- go test")
	}
	l := &live{id: fmt.Sprintf("edge-test-%d", time.Now().UnixNano()), bucket: storagetest.Bucket(t)}
	_, queueURL := storagetest.Queue(t)
	var files struct {
		Cert string `json:"cert_file"`
		Key  string `json:"key_file"`
		CA   string `json:"ca_file"`
	}
	require.NoError(t, json.Unmarshal(post(t, control+"/iot/factories/"+l.id, nil), &files))
	post(t, control+"/iot/bridge", map[string]string{"factory_id": l.id, "bucket": l.bucket.Name, "queue_url": queueURL})
	l.config = uplink.Config{
		Endpoint: os.Getenv("MILLRACE_IOT_ENDPOINT"), ClientID: "publisher-of-" + l.id,
		CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key,
		KeepAlive: 30 * time.Second, Timeout: 10 * time.Second, MinDelay: 10 * time.Millisecond, MaxDelay: time.Second,
	}
	dir, err := outbox.Open(filepath.Join(t.TempDir(), "outbox"), outbox.WithoutSync())
	require.NoError(t, err)
	l.dir = dir
	return l
}

func post(t testing.TB, url string, body any) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(data))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", url, content)
	return content
}

func (l *live) link(t testing.TB) *uplink.Link {
	t.Helper()
	link, err := uplink.New(l.config, slog.New(slog.DiscardHandler))
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

// put writes n messages of the given factory.
func (l *live) put(t testing.TB, factoryID, prefix string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("%s:%04d", prefix, i)
		body, err := json.Marshal(map[string]any{
			"schema_version": "0.1.0", "message_id": id, "factory_id": factoryID, "node_id": "worker1",
			"environment_type": "vm-mac", "input_module_type": "dummy", "source_type": "factory_state",
			"source_timestamp": "2026-11-30T12:00:03Z", "published_at": nil, "data_plane_instance_id": "generator",
			"payload": map[string]any{"pad": strings.Repeat("x", 300)},
		})
		require.NoError(t, err)
		_, _, err = l.dir.Write(id, body)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

// stored are the message ids whose bodies the rules stored.
func (l *live) stored(t testing.TB) (ids []string) {
	t.Helper()
	pages := s3.NewListObjectsV2Paginator(l.bucket.Client.(s3.ListObjectsV2APIClient), &s3.ListObjectsV2Input{Bucket: &l.bucket.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, object := range page.Contents {
			ids = append(ids, strings.TrimSuffix(filepath.Base(*object.Key), ".json"))
		}
	}
	return ids
}

func (l *live) waiting(t testing.TB) int {
	t.Helper()
	entries, err := l.dir.Scan(outbox.Entry{}, 100_000)
	require.NoError(t, err)
	return len(entries)
}

func TestLiveMessagesArriveOnceEach(t *testing.T) {
	l := newLive(t)
	ids := l.put(t, l.id, "m", 100)
	result, err := l.publisher(t).Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, publisher.Result{Published: 100}, result)
	require.ElementsMatch(t, ids, l.stored(t))
	require.Zero(t, l.waiting(t))
}

func TestLiveAMessageThatThePolicyForbidsBlocksNobody(t *testing.T) {
	l := newLive(t)
	ids := l.put(t, l.id, "first", 30)
	forbidden := l.put(t, "factory-a", "forbidden", 2)
	ids = append(ids, l.put(t, l.id, "last", 30)...)
	result, err := l.publisher(t).Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, result.Published)
	require.GreaterOrEqual(t, result.Failed, len(forbidden), "those held back may be tried a second time in the pass")
	require.Subset(t, l.stored(t), ids)
	require.Len(t, l.stored(t), len(ids))
	require.Equal(t, len(forbidden), l.waiting(t))
}

func TestLiveNothingIsLostWhenConnectionsBreak(t *testing.T) {
	l := newLive(t)
	cut := l.throughProxy(t)
	ids := l.put(t, l.id, "m", 600)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	p := l.publisher(t)
	done := make(chan struct{})
	go func() { defer close(done); p.Loop(ctx) }()
	cuts := 0
	for l.waiting(t) > 0 && ctx.Err() == nil {
		time.Sleep(150 * time.Millisecond)
		if cuts < 5 {
			cut()
			cuts++
		}
	}
	stop()
	<-done
	require.Zero(t, l.waiting(t))
	require.ElementsMatch(t, ids, l.stored(t), "each at least once, under one key")
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
	ids := l.put(t, l.id, "m", 5)
	p := l.publisher(t)
	p.Config.Window = 1
	result, err := p.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, publisher.Result{Published: 5}, result)
	require.ElementsMatch(t, ids, l.stored(t))
}

func BenchmarkLiveDrain(b *testing.B) {
	const files = 2000
	l := newLive(b)
	for b.Loop() {
		b.StopTimer()
		l.put(b, l.id, fmt.Sprintf("m%d", b.N), files)
		p := l.publisher(b)
		b.StartTimer()
		result, err := p.Once(b.Context())
		require.NoError(b, err)
		require.Equal(b, files, result.Published)
	}
	b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
}
