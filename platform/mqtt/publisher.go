package mqtt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Limits of AWS IoT Core (AWS IoT Core endpoints and quotas, "Message broker").
const (
	maxPayload      = 128 * 1024
	maxTopicBytes   = 256
	maxTopicSlashes = 7
)

// ErrTooLarge marks a body that AWS IoT Core does not take.
var ErrTooLarge = errors.New("message exceeds 128 KiB")

// ErrTopic marks a topic that nothing can be published to.
var ErrTopic = errors.New("no topic to publish to")

// ErrForbidden marks what the broker refuses: a subscription, or a message at
// which it ended each of several new connections, which is how AWS IoT Core
// refuses what the policy of the certificate does not allow.
var ErrForbidden = errors.New("the broker refuses it: the policy of the certificate may not allow this topic")

// Publisher publishes at QoS 1, one message at a time, over one connection that
// it makes when it is first needed and again when it was lost. Its zero value
// with a Config is ready for use by many goroutines.
type Publisher struct {
	Config Config

	// turn holds who may use the connection; it is made by the first caller.
	turn   turn
	client paho.Client
}

// freshLosses is how many new connections in a row a message may cost before it
// is held to be forbidden.
const freshLosses = 3

// Publish returns when the broker has confirmed the message. Retrying may help
// unless the error is ErrTooLarge, ErrTopic or ErrForbidden; the message may have
// been published in spite of an error.
func (p *Publisher) Publish(ctx context.Context, topic string, body []byte) error {
	if err := checkMessage(topic, body); err != nil {
		return err
	}
	if err := p.turn.take(ctx); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	defer p.turn.give()
	for losses := 0; ; {
		fresh, err := p.open(ctx)
		if err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		err = p.Config.confirmed(ctx, p.client.Publish(topic, atLeastOnce, false, body))
		if err == nil {
			return nil
		}
		p.drop()
		if !errors.Is(err, errLost) {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		if fresh {
			losses++
		}
		if losses == freshLosses {
			return fmt.Errorf("publish to %s: %w", topic, ErrForbidden)
		}
	}
}

func checkMessage(topic string, body []byte) error {
	switch {
	case len(body) > maxPayload:
		return fmt.Errorf("publish to %s: %w", topic, ErrTooLarge)
	case topic == "" || len(topic) > maxTopicBytes || strings.ContainsAny(topic, "+#\x00") || strings.Count(topic, "/") > maxTopicSlashes:
		return fmt.Errorf("publish to %q: %w", topic, ErrTopic)
	}
	return nil
}

// open makes a connection unless there is one, and tells whether it did.
func (p *Publisher) open(ctx context.Context) (fresh bool, err error) {
	if p.client != nil && p.client.IsConnectionOpen() {
		return false, nil
	}
	p.drop()
	p.client, err = p.Config.connect(ctx, nil, nil)
	return true, err
}

func (p *Publisher) drop() {
	if p.client != nil {
		p.client.Disconnect(0)
		p.client = nil
	}
}

// Close ends the connection; the next Publish makes a new one.
func (p *Publisher) Close() {
	if err := p.turn.take(context.Background()); err != nil {
		return
	}
	defer p.turn.give()
	if p.client != nil {
		p.client.Disconnect(quiesceMillis)
		p.client = nil
	}
}
