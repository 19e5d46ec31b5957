package report

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
)

// maxShown bounds the text of an error in a result, in bytes.
const maxShown = 400

// causeOf is what went wrong without the history of who passed it on.
func causeOf(err error) string {
	var application *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &timeout) && timeout.Unwrap() != nil:
		return shortened(fmt.Sprintf("timed out (%s); last: %s", timeout.TimeoutType(), causeOf(timeout.Unwrap())))
	case errors.As(err, &timeout):
		return fmt.Sprintf("timed out (%s)", timeout.TimeoutType())
	case errors.As(err, &application):
		return shortened(application.Message())
	}
	return shortened(err.Error())
}

func shortened(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// failureOf is the result that the error of a TargetReport carries; one without,
// such as of a run that was terminated, is made of what is known.
func failureOf(in TargetInput, err error) TargetResult {
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.Type() == ErrorTargetFailed && application.HasDetails() {
		var result TargetResult
		if application.Details(&result) == nil && result.Status == TargetFailed {
			return result
		}
	}
	result := TargetResult{Target: in.Target, Date: in.Date, Status: TargetFailed, Stage: StageRun, Error: causeOf(err)}
	if errors.As(err, &application) && application.Type() == ErrorUnsupportedTarget {
		result.Stage = StagePlan
	}
	return result
}
