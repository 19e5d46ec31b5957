package publisher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
)

// verdict is what the broker does with a message.
type verdict int

const (
	confirm verdict = iota
	// hangUp ends the connection, as AWS IoT Core answers what its policy forbids.
	hangUp
	// ignore never answers.
	ignore
)

var (
	errLost    = errors.New("connection lost")
	errOffline = errors.New("no route to host")
)

// broker is a transport whose broker judges each message after a while, in the
// order of arrival, as a real one does.
type broker struct {
	judge   func(messageID string) verdict
	latency time.Duration

	mu       sync.Mutex
	offline  bool
	up       bool
	connects int
	arrived  []string
	topics   []string
	bodies   map[string][]byte
	flying   []*receipt
	widest   int
}

type receipt struct {
	done chan struct{}
	err  error
}

func (r *receipt) Done() <-chan struct{} { return r.done }

func (r *receipt) Error() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

func newBroker() *broker {
	return &broker{
		judge:   func(string) verdict { return confirm },
		latency: 10 * time.Millisecond,
		bodies:  map[string][]byte{},
	}
}

func (b *broker) Connect(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case b.offline:
		return errOffline
	case !b.up:
		b.up = true
		b.connects++
	}
	return nil
}

func (b *broker) Send(topic string, body []byte) publisher.Receipt {
	var envelope struct {
		MessageID string `json:"message_id"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		panic(fmt.Sprintf("the publisher sent no JSON: %v", err))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &receipt{done: make(chan struct{})}
	b.arrived = append(b.arrived, envelope.MessageID)
	b.topics = append(b.topics, topic)
	b.bodies[envelope.MessageID] = body
	b.flying = append(b.flying, r)
	b.widest = max(b.widest, len(b.flying))
	time.AfterFunc(b.latency, func() { b.answer(r, b.judge(envelope.MessageID)) })
	return r
}

func (b *broker) answer(r *receipt, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.flying, r)
	switch {
	case i < 0, v == ignore:
	case v == hangUp:
		b.lose()
	default:
		b.flying = slices.Delete(b.flying, i, i+1)
		close(r.done)
	}
}

// lose ends the connection; b.mu is held.
func (b *broker) lose() {
	b.up = false
	for _, r := range b.flying {
		r.err = errLost
		close(r.done)
	}
	b.flying = nil
}

func (b *broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose()
}

func (b *broker) setOffline(offline bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offline = offline
	if offline {
		b.lose()
	}
}

func (b *broker) messages() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.arrived)
}

// site is a factory's outbox with a publisher.
type site struct {
	*publisher.Publisher

	t      *testing.T
	dir    *outbox.Dir
	broker *broker
	made   int
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := outbox.Open(filepath.Join(t.TempDir(), "outbox"), outbox.WithoutSync())
	require.NoError(t, err)
	config := publisher.Defaults()
	config.InstanceID = "publisher-1"
	config.Rate = 0
	b := newBroker()
	return &site{Publisher: publisher.New(config, dir, b, slog.New(slog.DiscardHandler)), t: t, dir: dir, broker: b}
}

func envelope(messageID string) map[string]any {
	return map[string]any{
		"schema_version": "0.1.0", "message_id": messageID, "factory_id": "factory-b", "node_id": "worker1",
		"environment_type": "vm-mac", "input_module_type": "dummy", "source_type": "factory_state",
		"source_timestamp": "2026-11-30T12:00:03Z", "published_at": nil, "data_plane_instance_id": "generator",
		"payload": map[string]any{"n": 1},
	}
}

// put writes messages into the outbox, each modified a second after the last.
func (s *site) put(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		body, err := json.Marshal(envelope(id))
		require.NoError(s.t, err)
		s.putRaw(id+".json", body)
	}
}

func (s *site) putRaw(name string, body []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir.Root(), name)
	require.NoError(s.t, os.WriteFile(path, body, 0o640))
	s.made++
	at := time.Date(2026, 11, 30, 0, 0, s.made, 0, time.UTC)
	require.NoError(s.t, os.Chtimes(path, at, at))
}

func (s *site) once() publisher.Result {
	s.t.Helper()
	result, err := s.Once(s.t.Context())
	require.NoError(s.t, err)
	return result
}

// waiting are the ids of the messages in the outbox.
func (s *site) waiting() []string { return s.list(".") }

func (s *site) quarantined() []string { return s.list("quarantine") }

func (s *site) list(folder string) []string {
	s.t.Helper()
	found, err := fs.Glob(os.DirFS(filepath.Join(s.dir.Root(), folder)), "*.json")
	require.NoError(s.t, err)
	ids := []string{}
	for _, name := range found {
		ids = append(ids, name[:len(name)-len(".json")])
	}
	return ids
}
