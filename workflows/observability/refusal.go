package observability

import (
	"go.temporal.io/sdk/temporal"
)

// refusal is an error that no retry can mend: the input is wrong.
func refusal(message string) error {
	return temporal.NewNonRetryableApplicationError(message, "InvalidInput", nil)
}
