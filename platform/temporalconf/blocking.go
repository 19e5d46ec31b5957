package temporalconf

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/monitoring"
)

// blocking has a workflow wait for a worker that can read its payloads. The SDK
// drops a signal that it can't read and goes on; a worker with another key ring
// would take the signal when it replays, and the workflow could never go on
// again. A panic in workflow code fails the workflow task only, which is tried
// again until the key is there.
type blocking struct {
	converter.DataConverter
	inWorkflow bool
}

var _ workflow.ContextAware = blocking{}

// WithContext is for clients and activities: an error is theirs to handle.
func (b blocking) WithContext(context.Context) converter.DataConverter { return b }

// WithWorkflowContext is for workflow code.
func (b blocking) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return blocking{DataConverter: b.DataConverter, inWorkflow: true}
}

// FromPayload reads one value.
func (b blocking) FromPayload(payload *commonpb.Payload, value any) error {
	return b.check(b.DataConverter.FromPayload(payload, value))
}

// FromPayloads reads several values.
func (b blocking) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	return b.check(b.DataConverter.FromPayloads(payloads, values...))
}

func (b blocking) check(err error) error {
	if b.inWorkflow && (errors.Is(err, monitoring.ErrUnknownKey) || errors.Is(err, errPayloadBroken)) {
		panic(err)
	}
	return err
}
