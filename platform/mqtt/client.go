package mqtt

import (
	"context"
	"errors"
	"fmt"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Config are the settings of one client.
type Config struct {
	Broker
	// ClientID must be unique: the broker drops a connection when another client
	// comes with the same id.
	ClientID string
	// KeepAlive is how often an idle connection gives a sign of life; 0 stands for
	// a minute. AWS IoT Core takes 30 to 1200 s.
	KeepAlive time.Duration
	// Timeout is how long connecting and each confirmation may take; 0 stands for
	// 10 s.
	Timeout time.Duration
	// Session keeps the subscriptions and what they match for a client that is
	// away, for as long as the broker does (AWS IoT Core: an hour by default).
	Session bool
}

const (
	defaultKeepAlive = time.Minute
	defaultTimeout   = 10 * time.Second

	mqtt311       = 4
	atLeastOnce   = 1
	quiesceMillis = 250
)

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// errLost tells that a connection ended before the confirmation.
var errLost = errors.New("the connection ended before the broker confirmed")

// connect makes one connection, which is not made again when it ends. lost, where
// given, is closed then; take gets what the subscriptions match.
func (c Config) connect(ctx context.Context, lost chan<- struct{}, take paho.MessageHandler) (paho.Client, error) {
	if err := CheckClientID(c.ClientID); err != nil {
		return nil, err
	}
	url, err := c.URL()
	if err != nil {
		return nil, err
	}
	secure, err := c.TLS()
	if err != nil {
		return nil, err
	}
	keepAlive := c.KeepAlive
	if keepAlive == 0 {
		keepAlive = defaultKeepAlive
	}
	options := paho.NewClientOptions().
		AddBroker(url).SetClientID(c.ClientID).SetTLSConfig(secure).SetProtocolVersion(mqtt311).
		SetCleanSession(!c.Session).SetAutoReconnect(false).SetConnectRetry(false).SetOrderMatters(false).
		SetKeepAlive(keepAlive).SetPingTimeout(c.timeout()).SetConnectTimeout(c.timeout()).SetWriteTimeout(c.timeout()).
		SetConnectionLostHandler(func(paho.Client, error) {
			if lost != nil {
				close(lost)
			}
		})
	if take != nil {
		// What a kept session holds may come before the subscription is confirmed.
		options.SetDefaultPublishHandler(take).SetAutoAckDisabled(true)
	}
	client, err := Open(ctx, options)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("connect to %s as %s: %w", c.Endpoint, c.ClientID, err)
	}
	return client, err
}

// Open makes one connection and waits for it no longer than ctx. Its error is
// that of ctx, or as connectError tells it.
func Open(ctx context.Context, options *paho.ClientOptions) (paho.Client, error) {
	client := paho.NewClient(options)
	token := client.Connect()
	select {
	case <-ctx.Done():
		go client.Disconnect(0)
		return nil, ctx.Err()
	case <-token.Done():
	}
	if err := token.Error(); err != nil {
		return nil, connectError(token, err)
	}
	return client, nil
}

// confirmed waits for the broker's confirmation.
func (c Config) confirmed(ctx context.Context, token paho.Token) error {
	timer := time.NewTimer(c.timeout())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("the broker did not confirm within %s", c.timeout())
	case <-token.Done():
	}
	if err := token.Error(); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}
