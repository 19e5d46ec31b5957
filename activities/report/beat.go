package report

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatEvery is how often an activity shows that it lives.
const beatEvery = 5 * time.Second

// beating has an activity beat from a goroutine of its own, with what progress
// says, until the function that it returns is called.
func beating(ctx context.Context, progress ...func() any) func() {
	beat := func() {
		var details []any
		for _, p := range progress {
			details = append(details, p())
		}
		activity.RecordHeartbeat(ctx, details...)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			beat()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
