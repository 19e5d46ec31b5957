// Package publisher sends the messages of an outbox to the cloud and deletes
// each only after the broker has confirmed it. Delivery is at least once: a
// crash between the two sends a message again, with the same message_id.
//
// Messages leave in the order of the outbox (modification time, then name),
// the oldest first, with a bounded number unconfirmed. A message that can't be
// delivered stays where it is and never holds up those behind it.
package publisher

import (
	"context"
	"log/slog"
	"time"

	"millrace/edge/outbox"
)

// Outbox is what the publisher needs of the directory of messages.
type Outbox interface {
	Scan(after outbox.Entry, limit int) ([]outbox.Entry, error)
	Read(name string, limit int64) ([]byte, error)
	Remove(name string) error
	Quarantine(name string, now time.Time) (string, error)
}

// Receipt tells when a message was confirmed or can't be any more: Done is
// closed then, and Error is nil if it was confirmed.
type Receipt interface {
	Done() <-chan struct{}
	Error() error
}

// Transport delivers messages at QoS 1.
type Transport interface {
	// Connect returns when there is a connection; it is cheap while there is one.
	// After a failure it waits longer before each further attempt.
	Connect(ctx context.Context) error
	// Send sends a message without waiting for its confirmation. When the
	// connection is lost, the receipt of every unconfirmed message fails.
	Send(topic string, body []byte) Receipt
	// Disconnect ends the connection; the next Connect makes a new one.
	Disconnect()
}

// Config are the settings of a publisher; see Defaults.
type Config struct {
	// InstanceID is written into each message as data_plane_instance_id.
	InstanceID string
	// Timeout is how long a confirmation may take.
	Timeout time.Duration
	// Backoff is the delay between passes; it doubles up to MaxBackoff while
	// nothing is published.
	Backoff    time.Duration
	MaxBackoff time.Duration
	// Window is the greatest number of unconfirmed messages; AWS IoT Core allows
	// 100 on a connection.
	Window int
	// Rate is the greatest number of messages a second, 0 for no limit; AWS IoT
	// Core discards what exceeds 100 on a connection.
	Rate int
	// Chunk is how many directory entries are held in memory.
	Chunk int
}

// Defaults are the settings that suit AWS IoT Core.
func Defaults() Config {
	return Config{
		Timeout:    10 * time.Second,
		Backoff:    5 * time.Second,
		MaxBackoff: time.Minute,
		Window:     20,
		Rate:       90,
		Chunk:      4096,
	}
}

// Publisher publishes an outbox. Its methods must not be called concurrently.
type Publisher struct {
	Config    Config
	Outbox    Outbox
	Transport Transport
	Log       *slog.Logger
	// Now is the clock that stamps messages.
	Now func() time.Time
	// Paused makes the publisher leave the outbox alone while it is true.
	Paused func() bool
	// Observe is told the result of each pass.
	Observe func(Result)

	held held
	pace pace
}

// Result is what one pass over the outbox did: how many messages it published,
// moved to quarantine, and left in the outbox because they weren't confirmed or
// couldn't be handled.
type Result struct {
	Published   int
	Quarantined int
	Failed      int
}

// New is a publisher with the given parts, the system's clock and no pauses.
func New(config Config, box Outbox, transport Transport, log *slog.Logger) *Publisher {
	return &Publisher{
		Config:    config,
		Outbox:    box,
		Transport: transport,
		Log:       log,
		Now:       time.Now,
		Paused:    func() bool { return false },
		Observe:   func(Result) {},
		held:      held{first: config.Backoff, longest: config.MaxBackoff, files: map[string]hold{}},
		pace:      pace{rate: config.Rate},
	}
}

// pausedPoll is how often a paused publisher looks whether it may go on.
const pausedPoll = time.Second

// Loop publishes until the context ends; then it finishes the messages that are
// on their way and returns.
func (p *Publisher) Loop(ctx context.Context) {
	delay := p.Config.Backoff
	for ctx.Err() == nil {
		if p.Paused() {
			sleep(ctx, pausedPoll)
			continue
		}
		result, err := p.Once(ctx)
		if err != nil {
			p.Log.Error("pass over the outbox ended early", "error", err, "published", result.Published, "failed", result.Failed)
		}
		if err == nil && result.Published > 0 {
			delay = p.Config.Backoff
		} else {
			delay = min(2*delay, p.Config.MaxBackoff)
		}
		sleep(ctx, delay)
	}
	p.Transport.Disconnect()
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
