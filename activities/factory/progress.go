package factory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatEvery bounds how often progress is written down: encoding it costs more
// than reading an object.
const beatEvery = time.Second

// progress is what an activity did so far, by name. Its heartbeat carries it, so
// that a retry goes on from there. It is safe for concurrent use.
type progress[T any] struct {
	ctx      context.Context
	mu       sync.Mutex
	done     map[string]T
	failures []error
	beaten   time.Time
}

// resume takes up what an earlier attempt did.
func resume[T any](ctx context.Context) *progress[T] {
	p := &progress[T]{ctx: ctx}
	if activity.HasHeartbeatDetails(ctx) {
		// Details that can't be read were another version's: begin anew.
		_ = activity.GetHeartbeatDetails(ctx, &p.done)
	}
	if p.done == nil {
		p.done = map[string]T{}
	}
	return p
}

// of is what became of name, if it is done.
func (p *progress[T]) of(name string) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result, done := p.done[name]
	return result, done
}

// settle notes what became of name.
func (p *progress[T]) settle(name string, result T, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failures = append(p.failures, err)
		return
	}
	p.done[name] = result
	p.record()
}

// beat says that the activity lives.
func (p *progress[T]) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record()
}

func (p *progress[T]) record() {
	if now := time.Now(); now.Sub(p.beaten) >= beatEvery {
		p.beaten = now
		activity.RecordHeartbeat(p.ctx, p.done)
	}
}

// failed writes all progress down for the next attempt and returns what went
// wrong in this one.
func (p *progress[T]) failed() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failures) > 0 {
		activity.RecordHeartbeat(p.ctx, p.done)
	}
	return p.failures
}

// all are the results so far, in the order of their names.
func (p *progress[T]) all() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	results := make([]T, 0, len(p.done))
	for _, name := range slices.Sorted(maps.Keys(p.done)) {
		results = append(results, p.done[name])
	}
	return results
}
