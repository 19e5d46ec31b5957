// Package broker is the local stack's message broker: MQTT 3.1.1 and 5 over TLS with client
// certificates, the limits and policies of AWS IoT Core, and a handler that each published
// message passes through before it is acknowledged, as AWS IoT rules see it. It keeps nothing on
// disk: what was not acknowledged is the publisher's to send again.
package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
)

// Message is one publish that passed the checks.
type Message struct {
	// Topic is the topic it was published to.
	Topic string
	// Payload is the body, byte for byte.
	Payload []byte
	// ClientID is the MQTT client id of the publisher.
	ClientID string
}

// Handler takes a message over. The publisher gets its PUBACK only after Handler returned nil;
// on an error it is disconnected, without one, and sends again. Handler is called by many
// clients at once, but one message at a time for each.
type Handler func(ctx context.Context, m Message) error

// Config describes a broker.
type Config struct {
	// Addr is the loopback host and port to listen on; port 0 chooses a free one.
	Addr string
	// TLS must require client certificates: their common name is the client's identity.
	TLS *tls.Config
	// Handle takes the messages over.
	Handle Handler
	// Refused is called with the reason for each packet or connection refused; may be nil.
	Refused func(err error)
	// Log gets one line for each connection, refusal and failure.
	Log *slog.Logger
}

// Broker is a running broker.
type Broker struct {
	server *mqtt.Server
	addr   string
	cancel context.CancelFunc
}

// Start listens and serves until Close.
func Start(cfg Config) (*Broker, error) {
	if cfg.TLS == nil || cfg.TLS.ClientAuth != tls.RequireAndVerifyClientCert {
		return nil, fmt.Errorf("start broker: client certificates must be required")
	}
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Broker{addr: listener.Addr().String(), cancel: cancel, server: mqtt.New(&mqtt.Options{
		Capabilities: capabilities(),
		// The broker's own log holds whole packets: only the hook's lines are wanted.
		Logger: slog.New(slog.DiscardHandler),
	})}
	if err := b.server.AddHook(newHook(ctx, cfg, b.server), nil); err != nil {
		cancel()
		return nil, fmt.Errorf("start broker: %w", err)
	}
	if err := b.server.AddListener(listeners.NewNet("tls", tls.NewListener(listener, cfg.TLS))); err != nil {
		cancel()
		return nil, fmt.Errorf("start broker: %w", err)
	}
	if err := b.server.Serve(); err != nil {
		cancel()
		return nil, fmt.Errorf("serve broker on %s: %w", b.addr, err)
	}
	return b, nil
}

// Addr returns the host and port that the broker listens on.
func (b *Broker) Addr() string { return b.addr }

// Close disconnects the clients and ends the messages in work without acknowledging them.
func (b *Broker) Close() error {
	b.cancel()
	if err := b.server.Close(); err != nil {
		return fmt.Errorf("stop broker: %w", err)
	}
	return nil
}

func capabilities() *mqtt.Capabilities {
	c := mqtt.NewDefaultServerCapabilities()
	c.MaximumQos = MaxQoS
	c.MaximumPacketSize = maxPacket
	c.MaximumSessionExpiryInterval = sessionExpirySeconds
	c.MinimumProtocolVersion = 4
	return c
}
