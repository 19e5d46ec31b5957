package artifact

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	workflows "millrace/workflows/artifact"
)

// Beater is the part of the Temporal client that is needed.
type Beater interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

// RunActivity is the activity of an executor: its heartbeats go to the server
// one by one, so that each is known to be acknowledged or not.
func RunActivity(e Executor, server Beater) func(context.Context, workflows.RunRequest) (workflows.RunResult, error) {
	return func(ctx context.Context, r workflows.RunRequest) (workflows.RunResult, error) {
		token := activity.GetInfo(ctx).TaskToken
		own := e
		own.Stopping = activity.GetWorkerStopChannel(ctx)
		own.Heartbeat = func(ctx context.Context) error {
			err := server.RecordActivityHeartbeat(ctx, token)
			if temporal.IsCanceledError(err) || isNotFound(err) {
				return ErrCancelled
			}
			return err
		}
		return own.Execute(ctx, r)
	}
}
