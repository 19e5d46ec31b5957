package mqtt

import (
	"context"
	"sync"
)

// turn is a lock that can be waited for with a context; its zero value is free.
type turn struct {
	once sync.Once
	free chan struct{}
}

func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.free:
		return nil
	}
}

func (t *turn) give() { t.free <- struct{}{} }
