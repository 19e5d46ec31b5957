// Package edgetest gives tests a factory of their own at the local stack's
// broker: a client certificate, and rules that store its messages in a bucket
// and a queue of their own.
package edgetest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/platform/queue"
	"millrace/storage/objects"
	"millrace/storage/storagetest"
)

// Factory is a factory at the local broker.
type Factory struct {
	ID string
	// Endpoint is the broker's host:port.
	Endpoint                  string
	CAFile, CertFile, KeyFile string
	// Bucket gets the bodies of its messages, Queue their envelopes.
	Bucket   objects.Bucket
	QueueURL string
}

// New makes a factory. It fails the test when there is no local stack.
func New(t testing.TB) *Factory {
	t.Helper()
	control := os.Getenv("MILLRACE_LOCAL_CONTROL")
	require.NotEmpty(t, control, "no local stack: run make test, or bin/local exec -- go test")
	f := &Factory{
		ID:       "edge-test-" + strings.ToLower(rand.Text()),
		Endpoint: os.Getenv("MILLRACE_IOT_ENDPOINT"),
		Bucket:   storagetest.Bucket(t),
	}
	_, f.QueueURL = storagetest.Queue(t)
	var files struct {
		Cert string `json:"cert_file"`
		Key  string `json:"key_file"`
		CA   string `json:"ca_file"`
	}
	require.NoError(t, json.Unmarshal(post(t, control+"/iot/factories/"+f.ID, nil), &files))
	f.CAFile, f.CertFile, f.KeyFile = files.CA, files.Cert, files.Key
	post(t, control+"/iot/bridge", map[string]string{"factory_id": f.ID, "bucket": f.Bucket.Name, "queue_url": f.QueueURL})
	return f
}

// JobResults is a queue of its own that the rules send the factory's answers to
// jobs to.
func (f *Factory) JobResults(t testing.TB) queue.Queue {
	t.Helper()
	client, url := storagetest.Queue(t)
	post(t, os.Getenv("MILLRACE_LOCAL_CONTROL")+"/iot/bridge", map[string]string{"factory_id": f.ID, "job_results_queue_url": url})
	return queue.Queue{Client: client, URL: url}
}

func post(t testing.TB, url string, body any) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(data))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", url, content)
	return content
}

// Stored are the ids of the messages whose bodies the rules stored.
func (f *Factory) Stored(t testing.TB) []string {
	t.Helper()
	var ids []string
	for _, key := range f.keys(t) {
		ids = append(ids, messageOf(key))
	}
	return ids
}

// Body is the stored body of a message.
func (f *Factory) Body(t testing.TB, messageID string) []byte {
	t.Helper()
	for _, key := range f.keys(t) {
		if messageOf(key) != messageID {
			continue
		}
		object, err := f.client(t).GetObject(t.Context(), &s3.GetObjectInput{Bucket: &f.Bucket.Name, Key: &key})
		require.NoError(t, err)
		body, err := io.ReadAll(object.Body)
		require.NoError(t, err)
		require.NoError(t, object.Body.Close())
		return body
	}
	require.Fail(t, "message not stored", messageID)
	return nil
}

func messageOf(key string) string { return strings.TrimSuffix(path.Base(key), ".json") }

func (f *Factory) keys(t testing.TB) []string {
	t.Helper()
	pages := s3.NewListObjectsV2Paginator(f.client(t), &s3.ListObjectsV2Input{Bucket: &f.Bucket.Name})
	var keys []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, object := range page.Contents {
			keys = append(keys, *object.Key)
		}
	}
	return keys
}

func (f *Factory) client(t testing.TB) *s3.Client {
	t.Helper()
	client, ok := f.Bucket.Client.(*s3.Client)
	require.True(t, ok, "the local bucket has the SDK's own client")
	return client
}

// Put writes n valid messages of a factory into an outbox and returns their
// ids, {prefix}:0000 and on.
func Put(t testing.TB, dir *outbox.Dir, factoryID, prefix string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s:%04d", prefix, i)
		body, err := json.Marshal(map[string]any{
			"schema_version": "0.1.0", "message_id": ids[i], "factory_id": factoryID, "node_id": "worker1",
			"environment_type": "vm-mac", "input_module_type": "dummy", "source_type": "factory_state",
			"source_timestamp": "2026-11-30T12:00:03Z", "published_at": nil, "data_plane_instance_id": "generator",
			"payload": map[string]any{"pad": strings.Repeat("x", 300)},
		})
		require.NoError(t, err)
		_, _, err = dir.Write(ids[i], body)
		require.NoError(t, err)
	}
	return ids
}

// Waiting is the number of messages in an outbox.
func Waiting(t testing.TB, dir *outbox.Dir) int {
	t.Helper()
	const all = 1_000_000
	entries, err := dir.Scan(outbox.Entry{}, all)
	require.NoError(t, err)
	return len(entries)
}
