package factory

import (
	"go.temporal.io/sdk/temporal"
)

// refusal is an error that no retry can mend: the input is wrong.
func refusal(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
}

// maxDetails bounds the lines of a run's table in the Temporal UI.
const maxDetails = 50
