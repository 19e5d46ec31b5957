package uplink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"millrace/edge/publisher"
	"millrace/platform/mqtt"
)

// Link keeps one connection at a time. Its methods must not be called
// concurrently. It is a publisher.Transport.
type Link struct {
	config Config
	log    *slog.Logger

	current *connection
	// failures counts attempts and connections in a row that confirmed nothing.
	failures int
	// brief counts connections in a row that ended soon after they began.
	brief int
	ended time.Time
}

var _ publisher.Transport = (*Link)(nil)

// New checks the settings and the certificate files; it does not connect yet.
func New(config Config, log *slog.Logger) (*Link, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("connection to the broker: %w", err)
	}
	return &Link{config: config, log: log.With("endpoint", config.Endpoint, "client_id", config.ClientID)}, nil
}

// connection is one MQTT connection; the library's own reconnecting is off,
// because it would send a message that the broker refuses by disconnecting
// again and again.
type connection struct {
	client paho.Client
	since  time.Time
	// proven is set once a message was confirmed.
	proven atomic.Bool
}

// Connect returns when there is a connection. A broker that refuses is a
// *RefusedError.
func (l *Link) Connect(ctx context.Context) error {
	if l.current != nil && l.current.client.IsConnectionOpen() {
		if !l.config.PerMessage {
			return nil
		}
		l.current.client.Disconnect(quiesceMillis)
		l.current = nil
	}
	l.end()
	if err := l.wait(ctx); err != nil {
		return err
	}
	conn, err := l.open(ctx)
	if err != nil {
		l.failures++
		l.ended = time.Now()
		return fmt.Errorf("connect to %s as %s: %w", l.config.Endpoint, l.config.ClientID, err)
	}
	l.log.Info("connected")
	l.current = conn
	return nil
}

func (l *Link) wait(ctx context.Context) error {
	if l.failures == 0 {
		return nil
	}
	delay := l.config.MinDelay
	for range l.failures - 1 {
		if delay = 2 * delay; delay >= l.config.MaxDelay {
			break
		}
	}
	timer := time.NewTimer(time.Until(l.ended.Add(min(delay, l.config.MaxDelay))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (l *Link) open(ctx context.Context) (*connection, error) {
	options, err := l.options()
	if err != nil {
		return nil, err
	}
	client, err := mqtt.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return &connection{client: client, since: time.Now()}, nil
}

func (l *Link) options() (*paho.ClientOptions, error) {
	url, err := l.config.broker().URL()
	if err != nil {
		return nil, err
	}
	secure, err := l.config.broker().TLS()
	if err != nil {
		return nil, err
	}
	const mqtt311 = 4
	return paho.NewClientOptions().
		AddBroker(url).
		SetClientID(l.config.ClientID).
		SetTLSConfig(secure).
		SetProtocolVersion(mqtt311).
		SetCleanSession(true).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetOrderMatters(false).
		SetKeepAlive(l.config.KeepAlive).
		SetPingTimeout(l.config.Timeout).
		SetConnectTimeout(l.config.Timeout).
		SetWriteTimeout(l.config.Timeout).
		SetConnectionLostHandler(func(_ paho.Client, err error) {
			l.log.Warn("connection lost", "error", err)
		}), nil
}

// Send publishes at QoS 1.
func (l *Link) Send(topic string, body []byte) publisher.Receipt {
	conn := l.current
	if conn == nil {
		return failed{}
	}
	const atLeastOnce = 1
	token := conn.client.Publish(topic, atLeastOnce, false, body)
	go func() {
		<-token.Done()
		if token.Error() == nil {
			conn.proven.Store(true)
		}
	}()
	return token
}

const quiesceMillis = 250

// Disconnect ends the connection; unconfirmed messages fail.
func (l *Link) Disconnect() {
	if l.current != nil {
		l.current.client.Disconnect(quiesceMillis)
		l.end()
	}
}

// A connection shorter than briefConnection is suspicious when it happens
// briefLimit times in a row.
const (
	briefConnection = 10 * time.Second
	briefLimit      = 3
)

// end takes stock of the connection that there was.
func (l *Link) end() {
	conn := l.current
	if conn == nil {
		return
	}
	l.current = nil
	l.ended = time.Now()
	l.failures++
	if conn.proven.Load() {
		l.failures = 1
	}
	l.brief++
	if l.ended.Sub(conn.since) > briefConnection {
		l.brief = 0
	}
	if l.brief >= briefLimit {
		l.log.Error("connections keep ending soon after they began: another client may use the same client id, or the policy refuses the messages",
			"connections", l.brief)
	}
}

var errNotConnected = errors.New("not connected")

// failed is the receipt of a message that could not be sent.
type failed struct{}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (failed) Done() <-chan struct{} { return closed }

func (failed) Error() error { return errNotConnected }
