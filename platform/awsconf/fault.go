package awsconf

import (
	"errors"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// throttlingCodes are the error codes by which AWS asks for patience.
var throttlingCodes = map[string]bool{
	"ThrottlingException": true, "Throttling": true, "ThrottledException": true, "TooManyRequestsException": true,
	"ProvisionedThroughputExceededException": true, "RequestLimitExceeded": true, "SlowDown": true,
	"TransactionInProgressException": true, "TransactionConflictException": true, "RequestThrottled": true,
}

// IsThrottling tells whether AWS refused a request only because there were too
// many.
func IsThrottling(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && throttlingCodes[api.ErrorCode()]
}

// RetryAfter is how long the service asked to wait, 0 when it did not say.
func RetryAfter(err error) time.Duration {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil {
		return 0
	}
	seconds, parseErr := time.ParseDuration(response.Response.Header.Get("Retry-After") + "s")
	if parseErr != nil {
		return 0
	}
	return seconds
}
