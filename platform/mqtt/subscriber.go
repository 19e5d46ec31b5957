package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Subscriber takes the messages of one topic filter, at QoS 1, and publishes on
// the same connection. It connects again whenever the connection ends.
type Subscriber struct {
	Config Config
	Filter string
	// Take gets each message, several at once. What it gave no error for is
	// acknowledged; the rest comes again after the next connection.
	Take func(topic string, body []byte) error
	// MinDelay is the time before the first attempt to connect again; it doubles up
	// to MaxDelay while attempts fail. 0 stands for 1 s, and for 60 s.
	MinDelay, MaxDelay time.Duration
	Log                *slog.Logger

	mu     sync.Mutex
	client paho.Client
}

// subscriptionRefused is SUBACK's return code for a failure (MQTT 3.1.1, 3.9.3).
const subscriptionRefused = 0x80

// ErrNotConnected tells that there is no connection just now.
var ErrNotConnected = errors.New("not connected to the broker")

// Run takes messages until ctx ends.
func (s *Subscriber) Run(ctx context.Context) {
	least, most := s.MinDelay, s.MaxDelay
	if least == 0 {
		least = time.Second
	}
	if most == 0 {
		most = time.Minute
	}
	for delay := least; ctx.Err() == nil; {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > most {
			delay = least
		}
		s.Log.Warn("subscription ended", "filter", s.Filter, "again_in", delay, "error", err)
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		delay = min(2*delay, most)
	}
}

// once is one connection from its beginning to its end.
func (s *Subscriber) once(ctx context.Context) error {
	lost := make(chan struct{})
	client, err := s.Config.connect(ctx, lost, s.take)
	if err != nil {
		return err
	}
	defer client.Disconnect(quiesceMillis)
	token := client.Subscribe(s.Filter, atLeastOnce, nil)
	if err := s.Config.confirmed(ctx, token); err != nil {
		return fmt.Errorf("subscribe to %s: %w", s.Filter, err)
	}
	if answer, ok := token.(*paho.SubscribeToken); ok && answer.Result()[s.Filter] == subscriptionRefused {
		return fmt.Errorf("subscribe to %s: %w", s.Filter, ErrForbidden)
	}
	s.set(client)
	defer s.set(nil)
	s.Log.Info("subscribed", "filter", s.Filter)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return errLost
	}
}

func (s *Subscriber) take(_ paho.Client, m paho.Message) {
	if err := s.Take(m.Topic(), m.Payload()); err != nil {
		s.Log.Error("message not taken, it comes again", "topic", m.Topic(), "error", err)
		return
	}
	m.Ack()
}

func (s *Subscriber) set(client paho.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

// Publish returns when the broker has confirmed the message. Without a
// connection it is ErrNotConnected at once.
func (s *Subscriber) Publish(ctx context.Context, topic string, body []byte) error {
	if err := checkMessage(topic, body); err != nil {
		return err
	}
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client == nil {
		return fmt.Errorf("publish to %s: %w", topic, ErrNotConnected)
	}
	if err := s.Config.confirmed(ctx, client.Publish(topic, atLeastOnce, false, body)); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}
