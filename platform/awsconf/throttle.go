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
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && throttlingCodes[api.ErrorCode()]
}

// RetryAfter is how long the service asked to wait, 0 when it did not say.
func RetryAfter(err error) time.Duration {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || response.Response == nil {
		return 0
	}
	wait, err := time.ParseDuration(response.Response.Header.Get("Retry-After") + "s")
	if err != nil {
		return 0
	}
	return wait
}
