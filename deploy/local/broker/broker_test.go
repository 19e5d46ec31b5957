package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/pki"
)

const patience = 5 * time.Second

// site is a broker with its certificates and what it was given.
type site struct {
	t         testing.TB
	broker    *Broker
	authority *pki.Authority

	mu       sync.Mutex
	messages []Message
	refused  []error
	handle   Handler
}

func newSite(t testing.TB) *site {
	t.Helper()
	authority, err := pki.Open(t.TempDir(), time.Now)
	require.NoError(t, err)
	serverTLS, err := authority.ServerTLS()
	require.NoError(t, err)
	s := &site{t: t, authority: authority}
	s.broker, err = Start(Config{
		Addr: "127.0.0.1:0", TLS: serverTLS, Handle: s.take, Refused: s.refuse, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.broker.Close()) })
	return s
}

func (s *site) take(ctx context.Context, m Message) error {
	s.mu.Lock()
	handle := s.handle
	s.mu.Unlock()
	if handle != nil {
		if err := handle(ctx, m); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, m)
	return nil
}

func (s *site) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, err)
}

func (s *site) taken() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

func (s *site) lastRefusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return ""
	}
	return s.refused[len(s.refused)-1].Error()
}

// device is a client whose lost connection can be waited for.
type device struct {
	paho.Client
	lost chan error
}

func (s *site) options(identity, clientID string) (*paho.ClientOptions, chan error) {
	s.t.Helper()
	files, err := s.authority.Client(identity)
	require.NoError(s.t, err)
	clientTLS, err := pki.ClientTLS(files)
	require.NoError(s.t, err)
	lost := make(chan error, 1)
	return paho.NewClientOptions().AddBroker("ssl://" + s.broker.Addr()).SetTLSConfig(clientTLS).
		SetClientID(clientID).SetAutoReconnect(false).SetConnectTimeout(patience).SetProtocolVersion(4).
		SetConnectionLostHandler(func(_ paho.Client, err error) { lost <- err }), lost
}

func (s *site) connect(identity, clientID string) device {
	s.t.Helper()
	options, lost := s.options(identity, clientID)
	d := device{Client: paho.NewClient(options), lost: lost}
	token := d.Connect()
	require.True(s.t, token.WaitTimeout(patience))
	require.NoError(s.t, token.Error())
	s.t.Cleanup(func() { d.Disconnect(0) })
	return d
}

func (d device) requireLost(t *testing.T) {
	t.Helper()
	select {
	case <-d.lost:
	case <-time.After(patience):
		t.Fatal("the connection was kept")
	}
}

func publish(t testing.TB, d device, topic string, payload []byte) {
	t.Helper()
	token := d.Publish(topic, 1, false, payload)
	require.True(t, token.WaitTimeout(patience), "no PUBACK")
	require.NoError(t, token.Error())
}

func TestPublishedMessageIsHandedOverUnmodified(t *testing.T) {
	s := newSite(t)
	body := []byte("{\"a\": 1.50,\n\t\"b\":\"\x00\xff\"}")
	publish(t, s.connect("factory-a", "edge-1"), "aegis/factory-a/factory_state", body)
	require.Equal(t, []Message{{Topic: "aegis/factory-a/factory_state", Payload: body, ClientID: "edge-1"}}, s.taken())
}

func TestAcknowledgementWaitsForTheHandler(t *testing.T) {
	s := newSite(t)
	release := make(chan struct{})
	s.handle = func(context.Context, Message) error { <-release; return nil }
	token := s.connect("factory-a", "edge-1").Publish("aegis/factory-a/infra_state", 1, false, "{}")
	require.False(t, token.WaitTimeout(100*time.Millisecond), "acknowledged before it was taken over")
	close(release)
	require.True(t, token.WaitTimeout(patience))
	require.NoError(t, token.Error())
}

func TestMessageNotTakenOverIsNotAcknowledgedAndEndsTheConnection(t *testing.T) {
	s := newSite(t)
	s.handle = func(context.Context, Message) error { return errors.New("stores are down") }
	d := s.connect("factory-a", "edge-1")
	token := d.Publish("aegis/factory-a/factory_state", 1, false, "{}")
	d.requireLost(t)
	require.True(t, token.WaitTimeout(patience))
	require.Error(t, token.Error())

	s.mu.Lock()
	s.handle = nil
	s.mu.Unlock()
	publish(t, s.connect("factory-a", "edge-1"), "aegis/factory-a/factory_state", []byte("{}"))
	require.Len(t, s.taken(), 1)
}

func TestPacketsBeyondLimitOrPolicyEndTheConnection(t *testing.T) {
	publishing := func(topic string, qos byte, size int) func(device) {
		return func(d device) { d.Publish(topic, qos, false, bytes.Repeat([]byte("x"), size)) }
	}
	subscribing := func(qos byte, filters ...string) func(device) {
		return func(d device) {
			m := make(map[string]byte)
			for _, f := range filters {
				m[f] = qos
			}
			d.SubscribeMultiple(m, nil)
		}
	}
	var nine []string
	for i := range MaxFiltersPerPacket + 1 {
		nine = append(nine, fmt.Sprintf("aegis/factory-a/jobs/%d", i))
	}
	const own = "aegis/factory-a/factory_state"
	tests := map[string]struct {
		do     func(device)
		reason string
	}{
		"topic of another factory":      {publishing("aegis/factory-b/factory_state", 1, 2), "policy"},
		"the same with QoS 0":           {publishing("aegis/factory-b/factory_state", 0, 2), "policy"},
		"topic outside the policy":      {publishing("aegis/factory-a/other", 1, 2), "policy"},
		"QoS 2":                         {publishing(own, 2, 2), "QoS 2"},
		"payload of 128 KiB and a byte": {publishing(own, 1, MaxPayload+1), "131073 bytes"},
		"eight slashes":                 {publishing("aegis/factory-a/1/2/3/4/5/6/7", 1, 2), "8 slashes"},
		"topic of 257 bytes":            {publishing("aegis/"+strings.Repeat("x", 251), 1, 2), "257 bytes"},
		"all topics":                    {subscribing(1, "#"), "policy"},
		"jobs of another factory":       {subscribing(1, "aegis/factory-b/jobs/+"), "policy"},
		"jobs of all factories":         {subscribing(1, "aegis/+/jobs/+"), "policy"},
		"subscription with QoS 2":       {subscribing(2, "aegis/factory-a/jobs/+"), "QoS 2"},
		"nine filters at once":          {subscribing(1, nine...), "9 topic filters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			d := s.connect("factory-a", "edge-1")
			test.do(d)
			d.requireLost(t)
			require.Contains(t, s.lastRefusal(), test.reason)
			require.Empty(t, s.taken())
		})
	}
}

func TestOversizedPacketEndsTheConnectionUnread(t *testing.T) {
	s := newSite(t)
	d := s.connect("factory-a", "edge-1")
	d.Publish("aegis/factory-a/factory_state", 1, false, make([]byte, 2*MaxPayload))
	d.requireLost(t)
	require.Empty(t, s.taken())
}

func TestLargestPayloadPasses(t *testing.T) {
	s := newSite(t)
	publish(t, s.connect("factory-a", "edge-1"), "aegis/factory-a/factory_state", make([]byte, MaxPayload))
	require.Len(t, s.taken()[0].Payload, MaxPayload)
}

func TestMoreThanFiftySubscriptionsEndTheConnection(t *testing.T) {
	s := newSite(t)
	d := s.connect("factory-a", "edge-1")
	for i := range MaxSubscriptions {
		token := d.Subscribe(fmt.Sprintf("aegis/factory-a/jobs/%d", i), 1, nil)
		require.True(t, token.WaitTimeout(patience))
		require.NoError(t, token.Error())
	}
	d.Subscribe("aegis/factory-a/jobs/one-more", 1, nil)
	d.requireLost(t)
}

func TestJobDocumentReachesItsFactoryOnly(t *testing.T) {
	s := newSite(t)
	received := make(chan string, 2)
	for _, factory := range []string{"factory-a", "factory-b"} {
		d := s.connect(factory, "edge-"+factory)
		token := d.Subscribe("aegis/"+factory+"/jobs/+", 1, func(_ paho.Client, m paho.Message) {
			received <- factory + " " + m.Topic() + " " + string(m.Payload())
		})
		require.True(t, token.WaitTimeout(patience))
		require.NoError(t, token.Error())
	}
	publish(t, s.connect("worker", "worker-1"), "aegis/factory-b/jobs/run-1", []byte("reboot"))
	require.Equal(t, "factory-b aegis/factory-b/jobs/run-1 reboot", <-received)
	require.Empty(t, received)
}

func TestSameClientIDDropsTheOlderConnection(t *testing.T) {
	s := newSite(t)
	older := s.connect("factory-a", "edge-1")
	newer := s.connect("factory-a", "edge-1")
	older.requireLost(t)
	publish(t, newer, "aegis/factory-a/factory_state", []byte("{}"))
}

func TestClientIDOfAnotherIdentityCannotBeTakenOver(t *testing.T) {
	s := newSite(t)
	owner := s.connect("factory-a", "edge-1")
	options, _ := s.options("factory-b", "edge-1")
	token := paho.NewClient(options).Connect()
	require.True(t, token.WaitTimeout(patience))
	require.Error(t, token.Error())
	require.Contains(t, s.lastRefusal(), "in use by another identity")
	publish(t, owner, "aegis/factory-a/factory_state", []byte("{}"))
}

func TestConnectionsThatAreRefused(t *testing.T) {
	tests := map[string]func(*paho.ClientOptions){
		"no certificate": func(o *paho.ClientOptions) { o.TLSConfig.Certificates = nil },
		"TLS 1.1": func(o *paho.ClientOptions) {
			o.TLSConfig.MinVersion, o.TLSConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		},
		"client id too long": func(o *paho.ClientOptions) { o.SetClientID(strings.Repeat("x", MaxClientIDBytes+1)) },
		"no client id":       func(o *paho.ClientOptions) { o.SetClientID("").SetCleanSession(true) },
		"last will":          func(o *paho.ClientOptions) { o.SetWill("aegis/factory-a/factory_state", "x", 1, false) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			options, _ := s.options("factory-a", "edge-1")
			change(options)
			token := paho.NewClient(options).Connect()
			require.True(t, token.WaitTimeout(patience))
			require.Error(t, token.Error())
		})
	}
}

func TestManyClientsAreServedAtOnce(t *testing.T) {
	s := newSite(t)
	const clients, each = 10, 30
	var wg sync.WaitGroup
	for i := range clients {
		id := fmt.Sprintf("factory-%d", i)
		d := s.connect(id, "edge-"+id)
		wg.Go(func() {
			for range each {
				token := d.Publish("aegis/"+id+"/factory_state", 1, false, "{}")
				token.WaitTimeout(patience)
			}
		})
	}
	wg.Wait()
	require.Len(t, s.taken(), clients*each)
}

func TestCloseEndsMessagesInWork(t *testing.T) {
	s := newSite(t)
	began := make(chan struct{})
	s.handle = func(ctx context.Context, _ Message) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}
	token := s.connect("factory-a", "edge-1").Publish("aegis/factory-a/factory_state", 1, false, "{}")
	<-began
	s.broker.cancel()
	require.True(t, token.WaitTimeout(patience))
	require.Error(t, token.Error())
}

func TestStartRefusesAConfigurationWithoutClientCertificates(t *testing.T) {
	_, err := Start(Config{Addr: "127.0.0.1:0", TLS: &tls.Config{}})
	require.ErrorContains(t, err, "client certificates")
}

func BenchmarkPublishQoS1(b *testing.B) {
	s := newSite(b)
	d := s.connect("factory-a", "edge-1")
	body := bytes.Repeat([]byte("x"), 900)
	for b.Loop() {
		publish(b, d, "aegis/factory-a/factory_state", body)
	}
}
