// Package observability does the work of counting signals, judging alert rules
// and checking what was counted, as workflows/observability declares it.
package observability

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"millrace/platform/awsconf"
	storage "millrace/storage/observability"
)

// failure is an error that is tried again, unless the store refused what was
// asked and not the moment.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrUncountable), awsconf.IsRequestFault(err):
		return temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
	case awsconf.IsThrottling(err):
		return temporal.NewApplicationErrorWithOptions(err.Error(), "Throttled", temporal.ApplicationErrorOptions{
			Cause: err, NextRetryDelay: awsconf.RetryAfter(err), Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	return err
}
