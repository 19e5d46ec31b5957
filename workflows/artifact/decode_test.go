package artifact

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// decode reads the input of the run that follows.
func decode(next *workflow.ContinueAsNewError, into any) error {
	return converter.GetDefaultDataConverter().FromPayloads(next.Input, into)
}
