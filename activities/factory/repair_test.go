package factory

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/factory"
	"millrace/platform/queue"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
)

// pastAPI lets a test say when objects were received, and counts LIST requests.
type pastAPI struct {
	objects.API

	mu       sync.Mutex
	received map[string]time.Time
	lists    int
}

func (p *pastAPI) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out, err := p.API.ListObjectsV2(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	for i := range out.Contents {
		if at, ok := p.received[aws.ToString(out.Contents[i].Key)]; ok {
			out.Contents[i].LastModified = &at
		}
	}
	return out, nil
}

// archive is a world whose raw objects have times of receipt.
type archive struct {
	*world
	past *pastAPI
}

func newArchive(t *testing.T) *archive {
	w := newWorld(t)
	past := &pastAPI{API: w.store.Bucket.Client, received: make(map[string]time.Time)}
	w.store.Bucket.Client = past
	return &archive{world: w, past: past}
}

// receive stores a raw body as the rule engine does.
func (a *archive) receive(e Envelope, at time.Time) Envelope {
	a.t.Helper()
	e.ReceivedAt = at.UnixMilli()
	require.NoError(a.t, a.store.Bucket.Put(a.t.Context(), e.rawKey(), objects.JSON, e.Body))
	a.past.mu.Lock()
	defer a.past.mu.Unlock()
	a.past.received[e.rawKey()] = at
	return e
}

// process stores a raw body and ingests it as it comes.
func (a *archive) process(e Envelope, at time.Time) Result {
	a.t.Helper()
	now := a.now
	a.now = at
	defer func() { a.now = now }()
	return a.take(a.receive(e, at))
}

// bodies are the objects below a prefix.
func (a *archive) bodies(prefix string) map[string]string {
	a.t.Helper()
	found := make(map[string]string)
	for _, key := range a.keys(prefix) {
		body, err := a.store.Bucket.Get(a.t.Context(), key, 1<<20)
		require.NoError(a.t, err)
		found[key] = string(body)
	}
	return found
}

// repairEnvironment runs activities without a server and without a word.
func repairEnvironment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(quiet()))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	return env
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// received takes everything out of a queue.
func received(t *testing.T, q queue.Queue) []Envelope {
	t.Helper()
	const hidden = 2 * time.Second
	var all []Envelope
	for lost := 0; ; {
		messages, err := q.Receive(t.Context(), queue.MaxBatch, 0, hidden)
		if err != nil && lost < 3 {
			// The stand-in sometimes cuts an answer off; what it held comes back.
			lost++
			time.Sleep(hidden + time.Second)
			continue
		}
		require.NoError(t, err)
		if len(messages) == 0 {
			slices.SortFunc(all, func(a, b Envelope) int { return strings.Compare(a.RawKey, b.RawKey) })
			return all
		}
		for _, m := range messages {
			e, err := decodeEnvelope(m.Body)
			require.NoError(t, err)
			all = append(all, e)
		}
		require.NoError(t, q.Delete(t.Context(), messages))
	}
}

func newQueue(t *testing.T) queue.Queue {
	client, url := storagetest.Queue(t)
	return queue.Queue{Client: client, URL: url}
}

// killAt ends the work at the nth step.
func killAt(n int) func(Step) error {
	var mu sync.Mutex
	return func(Step) error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			return errKilled
		}
		return nil
	}
}

// rawStore is a second, empty set of read models over the same raw objects.
func (a *archive) emptied(t *testing.T) storage.Store {
	t.Helper()
	target := storage.Store{Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), HistoryTTL: a.store.HistoryTTL}
	past := &pastAPI{API: target.Bucket.Client, received: a.past.received}
	target.Bucket.Client = past
	for key, body := range a.bodies(rawRoot) {
		require.NoError(t, target.Bucket.Put(t.Context(), key, objects.JSON, []byte(body)))
	}
	return target
}

func at(clock string) time.Time {
	t, err := factory.ParseInstant("2026-05-20T" + clock + "Z")
	if err != nil {
		panic(err)
	}
	return t
}
