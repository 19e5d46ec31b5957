package server

import (
	"context"

	"github.com/aws/smithy-go/middleware"
)

// StoreConcurrency is how many store operations run at once; more of them wait,
// within the timeout of their request.
const StoreConcurrency = 10

// Bound lets at most limit operations of a client run at once; the others wait
// until one ends or their context does. It goes into a client's APIOptions.
func Bound(limit int) func(*middleware.Stack) error {
	slots := make(chan struct{}, limit)
	wait := middleware.InitializeMiddlewareFunc("Bound",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return middleware.InitializeOutput{}, middleware.Metadata{}, ctx.Err()
			}
			defer func() { <-slots }()
			return next.HandleInitialize(ctx, in)
		})
	return func(stack *middleware.Stack) error { return stack.Initialize.Add(wait, middleware.After) }
}
