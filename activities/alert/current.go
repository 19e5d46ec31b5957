package alert

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
)

// Current tells what the newest read models raise.
type Current struct {
	Store storage.Store
	Now   func() time.Time
}

// Read models older than these say nothing: their writer may be dead. The
// refresh writes factories each minute; the others are the reader's limits for
// the cloud infrastructure.
const (
	staleFactory = 3 * time.Minute
	staleFast    = 180 * time.Second
	staleSlow    = 900 * time.Second
)

// watches tells whether an alert's end can be seen in a read model.
func (c *Current) watches(a alert.Alert) bool {
	if c == nil {
		return false
	}
	return a.SourceType == alert.SourceFactory || a.SourceType == alert.SourceFast || a.SourceType == alert.SourceSlow
}

func (c *Current) check(ctx context.Context, req workflows.CheckRequest) (workflows.CheckResult, error) {
	if c == nil {
		return workflows.CheckResult{}, nil
	}
	if req.Scope == alert.ScopeCloud {
		return c.cloud(ctx, req.Keys)
	}
	latest, err := c.Store.FactoryLatest(ctx, req.Scope)
	if err != nil || latest == nil || c.stale(latest.UpdatedAt, staleFactory) {
		return workflows.CheckResult{}, err
	}
	return workflows.CheckResult{Raised: persisting(alert.Factory(*latest), req.Keys), Readable: true}, nil
}

func (c *Current) stale(at factory.Millis, limit time.Duration) bool {
	return c.Now().Sub(at.Time) > limit
}

// cloud judges both halves. The alerts of a half that is stale or can't be read
// count as raised still: nothing is known of their end.
func (c *Current) cloud(ctx context.Context, keys []alert.Key) (workflows.CheckResult, error) {
	body, err := c.Store.CloudLatest(ctx)
	if err != nil || body == nil {
		return workflows.CheckResult{}, err
	}
	var times struct {
		Fast factory.Millis `json:"fast_updated_at"`
		Slow factory.Millis `json:"slow_updated_at"`
	}
	if err := json.Unmarshal(body, &times); err != nil {
		return workflows.CheckResult{}, nil //nolint:nilerr // an unreadable item is unreadable, no retry mends it
	}
	result := workflows.CheckResult{Readable: true}
	for _, half := range []struct {
		source alert.SourceType
		at     factory.Millis
		limit  time.Duration
		decide func([]byte, string) (alert.Decision, error)
	}{
		{alert.SourceFast, times.Fast, staleFast, alert.Fast},
		{alert.SourceSlow, times.Slow, staleSlow, alert.Slow},
	} {
		own := slices.DeleteFunc(slices.Clone(keys), func(k alert.Key) bool { return !half.source.Owns(k) })
		decision, err := half.decide(body, "")
		if err != nil || c.stale(half.at, half.limit) {
			result.Raised = append(result.Raised, own...)
			continue
		}
		result.Raised = append(result.Raised, persisting(decision, own)...)
	}
	return result, nil
}

// persisting are those of the keys whose condition goes on.
func persisting(d alert.Decision, keys []alert.Key) []alert.Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k alert.Key) bool { return !d.Persists(k) })
}
