package mqtt

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
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

	"github.com/stretchr/testify/require"

	"millrace/storage/storagetest"
)

// These tests need the local stack's broker: run make test.

// workerConfig is the client of the worker, by the variables that it has.
func workerConfig(t testing.TB) Config {
	t.Helper()
	require.NotEmpty(t, os.Getenv("MILLRACE_IOT_ENDPOINT"), "no local stack: run make test, or bin/local exec -- go test")
	return Config{ClientID: UniqueID("mqtt-test"), Timeout: 5 * time.Second, Broker: Broker{
		Endpoint: os.Getenv("MILLRACE_IOT_ENDPOINT"), CAFile: os.Getenv("MILLRACE_IOT_CA_FILE"),
		CertFile: os.Getenv("MILLRACE_IOT_CERT_FILE"), KeyFile: os.Getenv("MILLRACE_IOT_KEY_FILE"),
	}}
}

// factoryConfig is the client of a factory of the test's own.
func factoryConfig(t testing.TB) (id string, c Config) {
	t.Helper()
	c = workerConfig(t)
	id = "mqtt-test-" + strings.ToLower(rand.Text())
	var files struct {
		Cert string `json:"cert_file"`
		Key  string `json:"key_file"`
	}
	require.NoError(t, json.Unmarshal(post(t, "/iot/factories/"+id, nil), &files))
	c.ClientID, c.CertFile, c.KeyFile = "device-of-"+id, files.Cert, files.Key
	return id, c
}

// post tells the local stack something.
func post(t testing.TB, path string, body any) []byte {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, os.Getenv("MILLRACE_LOCAL_CONTROL")+path, bytes.NewReader(data))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s", content)
	return content
}

type message struct{ topic, body string }

// listen subscribes a factory to its jobs, and gives what comes.
func listen(t testing.TB, id string, c Config, take func(message) error) *Subscriber {
	t.Helper()
	s := &Subscriber{
		Config: c, Filter: "aegis/" + id + "/jobs/+", MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Take: func(topic string, body []byte) error { return take(message{topic, string(body)}) },
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	require.Eventually(t, s.connected, 10*time.Second, 5*time.Millisecond)
	return s
}

func (s *Subscriber) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client != nil
}

func publisher(t testing.TB) *Publisher {
	p := &Publisher{Config: workerConfig(t)}
	t.Cleanup(p.Close)
	return p
}

func next(t *testing.T, messages <-chan message) message {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
		return message{}
	}
}

func TestLiveAMessageReachesItsSubscriber(t *testing.T) {
	id, config := factoryConfig(t)
	messages := make(chan message, 10)
	listen(t, id, config, func(m message) error { messages <- m; return nil })
	p := publisher(t)
	require.NoError(t, p.Publish(t.Context(), "aegis/"+id+"/jobs/1", []byte("one")))
	require.Equal(t, message{"aegis/" + id + "/jobs/1", "one"}, next(t, messages))
	require.NoError(t, p.Publish(t.Context(), "aegis/"+id+"/jobs/2", bytes.Repeat([]byte("x"), maxPayload)))
	require.Len(t, next(t, messages).body, maxPayload)
}

func TestLiveManyPublishAtOnceOverOneConnection(t *testing.T) {
	id, config := factoryConfig(t)
	messages := make(chan message, 100)
	listen(t, id, config, func(m message) error { messages <- m; return nil })
	p := publisher(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { require.NoError(t, p.Publish(t.Context(), "aegis/"+id+"/jobs/1", []byte("x"))) })
	}
	group.Wait()
	for range 20 {
		next(t, messages)
	}
}

func TestLiveAMessageThatWasNotTakenComesAgain(t *testing.T) {
	id, config := factoryConfig(t)
	config.Session = true
	cut := throughProxy(t, &config)
	messages := make(chan message, 10)
	refuse := make(chan struct{}, 1)
	refuse <- struct{}{}
	listen(t, id, config, func(m message) error {
		messages <- m
		select {
		case <-refuse:
			return errors.New("no room")
		default:
			return nil
		}
	})
	require.NoError(t, publisher(t).Publish(t.Context(), "aegis/"+id+"/jobs/1", []byte("x")))
	next(t, messages)
	cut()
	require.Equal(t, "x", next(t, messages).body)
}

func TestLiveASessionKeepsWhatComesWhileItsClientIsAway(t *testing.T) {
	id, config := factoryConfig(t)
	config.Session = true
	first := &Subscriber{
		Config: config, Filter: "aegis/" + id + "/jobs/+", Log: slog.New(slog.DiscardHandler),
		Take: func(string, []byte) error { return nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); first.Run(ctx) }()
	require.Eventually(t, first.connected, 10*time.Second, 5*time.Millisecond)
	stop()
	<-done
	require.NoError(t, publisher(t).Publish(t.Context(), "aegis/"+id+"/jobs/1", []byte("x")))
	messages := make(chan message, 10)
	listen(t, id, config, func(m message) error { messages <- m; return nil })
	require.Equal(t, "x", next(t, messages).body)
}

func TestLiveTheSubscribersConnectionPublishesToo(t *testing.T) {
	id, config := factoryConfig(t)
	s := listen(t, id, config, func(message) error { return nil })
	_, queue := storagetest.Queue(t)
	post(t, "/iot/bridge", map[string]string{"factory_id": id, "job_results_queue_url": queue})
	require.NoError(t, s.Publish(t.Context(), "aegis/"+id+"/jobs/1/result", []byte("{}")))
	require.ErrorIs(t, s.Publish(t.Context(), "a/+", nil), ErrTopic)
	require.ErrorIs(t, (&Subscriber{}).Publish(t.Context(), "a/b", nil), ErrNotConnected)
}

func TestLiveATopicThatThePolicyForbidsIsFinal(t *testing.T) {
	p := publisher(t)
	err := p.Publish(t.Context(), "aegis/factory-a/factory_state", []byte("{}"))
	require.ErrorIs(t, err, ErrForbidden)
	require.NoError(t, p.Publish(t.Context(), "aegis/factory-a/jobs/1", []byte("{}")), "others go on")
}

func TestLiveAForeignSubscriptionIsRefused(t *testing.T) {
	_, config := factoryConfig(t)
	s := &Subscriber{Config: config, Filter: "aegis/factory-a/jobs/+", Take: func(string, []byte) error { return nil }, Log: slog.New(slog.DiscardHandler)}
	require.Error(t, s.once(t.Context()))
	require.False(t, s.connected())
}

func TestLiveALostConnectionIsMadeAgain(t *testing.T) {
	p := publisher(t)
	cut := throughProxy(t, &p.Config)
	for range 5 {
		require.NoError(t, p.Publish(t.Context(), "aegis/factory-a/jobs/1", []byte("{}")))
		cut()
	}
	p.Close()
	require.NoError(t, p.Publish(t.Context(), "aegis/factory-a/jobs/1", []byte("{}")))
}

func TestLiveABrokerThatDoesNotAnswerIsAnErrorInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	p := publisher(t)
	p.Config.Endpoint, p.Config.Timeout = listener.Addr().String(), 300*time.Millisecond
	began := time.Now()
	err = p.Publish(t.Context(), "aegis/factory-a/jobs/1", nil)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrForbidden)
	require.Less(t, time.Since(began), 10*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p.Config.Timeout = time.Minute
	require.ErrorIs(t, p.Publish(ctx, "aegis/factory-a/jobs/1", nil), context.DeadlineExceeded)
}

func TestMessagesThatNoBrokerTakesAreFinal(t *testing.T) {
	p := &Publisher{}
	require.ErrorIs(t, p.Publish(t.Context(), "a/b", make([]byte, maxPayload+1)), ErrTooLarge)
	for _, topic := range []string{"", "a/+", "#", "a/\x00", "1/2/3/4/5/6/7/8/9", strings.Repeat("x", 257)} {
		require.ErrorIs(t, p.Publish(t.Context(), topic, nil), ErrTopic, topic)
	}
}

func TestSettingsThatCanNotConnectAreErrors(t *testing.T) {
	for want, config := range map[string]Config{
		"client id":            {},
		"endpoint":             {ClientID: "x"},
		"CA file":              {ClientID: "x", Broker: Broker{Endpoint: "host:8883"}},
		"is no number":         {ClientID: "x", Broker: Broker{Endpoint: "host:mqtt"}},
		"is out of range":      {ClientID: "x", Broker: Broker{Endpoint: "host", Port: 70000}},
		"client id: must have": {ClientID: strings.Repeat("x", 129)},
	} {
		p := &Publisher{Config: config}
		require.ErrorContains(t, p.Publish(t.Context(), "a/b", nil), want)
	}
	missing := Broker{Endpoint: "host:443", CAFile: filepath.Join(t.TempDir(), "none")}
	_, err := missing.TLS()
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLivePort443SpeaksMQTT(t *testing.T) {
	b := workerConfig(t).Broker
	b.Endpoint = "host:443"
	config, err := b.TLS()
	require.NoError(t, err)
	require.Equal(t, []string{mqttALPN}, config.NextProtos)
}

func TestUniqueIDsDiffer(t *testing.T) {
	require.NotEqual(t, UniqueID("x"), UniqueID("x"))
	require.Regexp(t, `^x-[0-9a-f]{8}$`, UniqueID("x"))
}

// throughProxy puts a proxy before the broker; the function returned cuts all
// connections through it.
func throughProxy(t *testing.T, config *Config) (cut func()) {
	t.Helper()
	broker := config.Endpoint
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	config.Endpoint = listener.Addr().String()
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

func BenchmarkLivePublish(b *testing.B) {
	p := publisher(b)
	body := bytes.Repeat([]byte("x"), 1000)
	for b.Loop() {
		require.NoError(b, p.Publish(b.Context(), "aegis/factory-a/jobs/1", body))
	}
}
