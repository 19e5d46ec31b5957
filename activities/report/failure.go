package report

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/report"
	"millrace/platform/awsconf"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Error types that Temporal shows besides those of the workflows.
const (
	kindIntegrity = "ContentIntegrity"
	kindThrottled = "Throttled"
)

// failure is an error as Temporal sees it: one that trying again can't mend is
// final, and throttling says how long to wait.
func failure(err error) error {
	var invalid *report.InvalidError
	var damaged *objects.IntegrityError
	var already *temporal.ApplicationError
	switch {
	case err == nil, errors.As(err, &already), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &invalid), awsconf.IsRequestFault(err):
		return temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrorInvalidInput, err)
	case errors.As(err, &damaged), errors.Is(err, objects.ErrTooLarge), errors.Is(err, storage.ErrDamaged):
		return temporal.NewNonRetryableApplicationError(err.Error(), kindIntegrity, err)
	case awsconf.IsThrottling(err):
		return temporal.NewApplicationErrorWithOptions(err.Error(), kindThrottled, temporal.ApplicationErrorOptions{
			NextRetryDelay: max(awsconf.RetryAfter(err), leastThrottled), Category: temporal.ApplicationErrorCategoryBenign, Cause: err,
		})
	}
	return err
}

// leastThrottled is how long a store that throttles is left alone at least.
const leastThrottled = 2 * time.Second
