package storagetest

import (
	"context"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Calls counts the AWS operations that clients made from its configuration
// send, and can make them fail.
type Calls struct {
	mu     sync.Mutex
	counts map[string]int
	fail   func(operation string) error
}

// Watch is a copy of cfg whose clients are counted.
func (c *Calls) Watch(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("count calls", c.observe), middleware.Before)
	})
	return cfg
}

func (c *Calls) observe(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	operation := awsmiddleware.GetOperationName(ctx)
	c.mu.Lock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[operation]++
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		if err := fail(operation); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, err
		}
	}
	return next.HandleFinalize(ctx, in)
}

// Take returns the counts by operation and starts again from none.
func (c *Calls) Take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := maps.Clone(c.counts)
	clear(c.counts)
	return counts
}

// Fail has every operation fail with what f says; nil ends that.
func (c *Calls) Fail(f func(operation string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = f
}
