package alert

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"millrace/platform/slack"
	workflows "millrace/workflows/alert"
)

// Error types of failed deliveries that are tried again.
const (
	errUnavailable = "SlackUnavailable"
	errLimited     = "SlackLimited"
	errSecret      = "SecretUnavailable"
)

// sendError says what a failed delivery means for the next attempt. Slack's
// errors hold no URL and no token.
func sendError(err error) error {
	var e *slack.Error
	if !errors.As(err, &e) {
		return temporal.NewApplicationError(err.Error(), errSecret)
	}
	switch e.Failure {
	case slack.Unknown:
		return temporal.NewNonRetryableApplicationError(e.Error(), workflows.ErrAmbiguous, nil)
	case slack.Rejected:
		return temporal.NewNonRetryableApplicationError(e.Error(), workflows.ErrRejected, nil)
	case slack.Limited:
		return temporal.NewApplicationErrorWithOptions(e.Error(), errLimited, temporal.ApplicationErrorOptions{
			NextRetryDelay: e.RetryAfter, Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	return temporal.NewApplicationError(e.Error(), errUnavailable)
}
