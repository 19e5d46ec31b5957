package reporttest

import (
	"context"
	"iter"
	"sync"
)

// Putter stores objects, as objects.Bucket does.
type Putter interface {
	Put(ctx context.Context, key, contentType string, body []byte) error
}

// Write stores objects, at most workers at a time, and counts them. It stops at
// the first failure.
func Write(ctx context.Context, to Putter, all iter.Seq[Object], workers int) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan Object)
	var writers sync.WaitGroup
	for range workers {
		writers.Go(func() {
			for object := range queue {
				if err := to.Put(ctx, object.Key, "application/json", object.Body); err != nil {
					cancel(err)
				}
			}
		})
	}
	written := 0
	for object := range all {
		if ctx.Err() != nil {
			break
		}
		queue <- object
		written++
	}
	close(queue)
	writers.Wait()
	return written, context.Cause(ctx)
}
