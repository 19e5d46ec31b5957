package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/platform/queue"
	"millrace/storage/storagetest"
)

// recorder is a handler that notes what it was given; bodies are "lane/number".
type recorder struct {
	mu     sync.Mutex
	seen   map[string][]int
	fail   func(body string) error
	finish func(body string) error
	idle   atomic.Int64
}

func (r *recorder) Lane(m queue.Message) string {
	lane, _, _ := strings.Cut(m.Body, "/")
	return lane
}

func (r *recorder) Handle(_ context.Context, m queue.Message) (func(context.Context) error, error) {
	lane, number, _ := strings.Cut(m.Body, "/")
	if r.fail != nil {
		if err := r.fail(m.Body); err != nil {
			return nil, err
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[string][]int)
	}
	r.seen[lane] = append(r.seen[lane], n)
	if r.finish == nil {
		return nil, nil
	}
	return func(context.Context) error { return r.finish(m.Body) }, nil
}

func (r *recorder) Idle(context.Context, string) { r.idle.Add(1) }

func (r *recorder) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, seen := range r.seen {
		total += len(seen)
	}
	return total
}

// drainUntil runs a drain until the condition holds, then stops it.
func drainUntil(t *testing.T, q queue.Queue, handler queue.Handler, settings queue.Settings, done func(queue.Counts) bool) queue.Counts {
	t.Helper()
	settings.Poll = time.Second
	d := &queue.Drainer{Queue: q, Handler: handler, Settings: settings, Logger: slog.New(slog.DiscardHandler)}
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	finished := make(chan struct{})
	go func() {
		d.Run(t.Context(), stop)
		close(finished)
	}()
	require.Eventually(t, func() bool { return done(d.Counts()) }, 30*time.Second, 5*time.Millisecond)
	cancel()
	<-finished
	return d.Counts()
}

func newQueue(t *testing.T) queue.Queue {
	client, url := storagetest.Queue(t)
	return queue.Queue{Client: client, URL: url}
}

func send(t *testing.T, q queue.Queue, lanes, each int) {
	t.Helper()
	var bodies []string
	for n := range each {
		for lane := range lanes {
			bodies = append(bodies, fmt.Sprintf("lane-%d/%d", lane, n))
		}
	}
	require.NoError(t, q.Send(t.Context(), bodies))
}

func TestDrainHandlesAndDeletesEveryMessage(t *testing.T) {
	q := newQueue(t)
	send(t, q, 5, 40)
	handler := &recorder{finish: func(string) error { return nil }}
	counts := drainUntil(t, q, handler, queue.Settings{}, func(c queue.Counts) bool { return c.Deleted == 200 })
	require.Equal(t, queue.Counts{Received: 200, Deleted: 200}, counts)
	require.Equal(t, 200, handler.total())
	require.NotZero(t, handler.idle.Load())
	depth, err := q.Depth(t.Context())
	require.NoError(t, err)
	require.Zero(t, depth)
}

func TestAMessageWhoseFinishFailsComesBack(t *testing.T) {
	q := newQueue(t)
	send(t, q, 1, 1)
	var tries atomic.Int64
	handler := &recorder{finish: func(string) error {
		if tries.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	}}
	counts := drainUntil(t, q, handler, queue.Settings{Visibility: time.Second}, func(c queue.Counts) bool { return c.Deleted == 1 })
	require.EqualValues(t, 2, counts.Received)
	require.EqualValues(t, 1, counts.Abandoned)
	require.Zero(t, counts.Outages)
}

func TestAnOutagePausesReceivingAndLosesNothing(t *testing.T) {
	q := newQueue(t)
	send(t, q, 3, 20)
	var out atomic.Bool
	out.Store(true)
	time.AfterFunc(2*time.Second, func() { out.Store(false) })
	handler := &recorder{fail: func(string) error {
		if out.Load() {
			return fmt.Errorf("table: %w", queue.ErrOutage)
		}
		return nil
	}}
	settings := queue.Settings{Visibility: time.Second, MinBackoff: 50 * time.Millisecond, MaxBackoff: 400 * time.Millisecond}
	counts := drainUntil(t, q, handler, settings, func(c queue.Counts) bool { return c.Deleted == 60 })
	require.Equal(t, 60, handler.total())
	require.NotZero(t, counts.Outages)
	require.Equal(t, counts.Received, counts.Deleted+counts.Abandoned)
}

func TestVisibilityIsRenewedWhileAMessageIsHeld(t *testing.T) {
	q := newQueue(t)
	send(t, q, 1, 1)
	handler := &recorder{finish: func(string) error {
		time.Sleep(4 * time.Second)
		return nil
	}}
	counts := drainUntil(t, q, handler, queue.Settings{Visibility: 2 * time.Second}, func(c queue.Counts) bool { return c.Deleted == 1 })
	require.EqualValues(t, 1, counts.Received, "nobody else was given the message")
}

func TestHeldMessagesAreBounded(t *testing.T) {
	q := newQueue(t)
	send(t, q, 40, 2)
	var held, most atomic.Int64
	handler := &recorder{
		fail: func(string) error {
			if n := held.Add(1); n > most.Load() {
				most.Store(n)
			}
			return nil
		},
		finish: func(string) error {
			time.Sleep(20 * time.Millisecond)
			held.Add(-1)
			return nil
		},
	}
	drainUntil(t, q, handler, queue.Settings{InFlight: 20}, func(c queue.Counts) bool { return c.Deleted == 80 })
	require.LessOrEqual(t, most.Load(), int64(20))
}

func TestSendSplitsWhatIsTooLargeForOneRequest(t *testing.T) {
	q := newQueue(t)
	bodies := make([]string, 25)
	for i := range bodies {
		bodies[i] = "lane-0/" + strings.Repeat("1", 60*1024)
	}
	require.NoError(t, q.Send(t.Context(), bodies))
	depth, err := q.Depth(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 25, depth.Visible)
}
