package bedrock

import (
	"errors"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"millrace/platform/awsconf"
)

// Error is a failed request. It holds nothing of what was asked.
type Error struct {
	// Code is the service's own word, such as ThrottlingException; RequestTimeout
	// and NoAnswer are ours.
	Code    string
	Message string
	// Retryable tells that the same request may succeed later.
	Retryable bool
	// RetryAfter is how long to wait before that; 0 leaves it to the caller.
	RetryAfter time.Duration
	// Sent tells that the model may have worked on the request, so that it may have
	// to be paid for: there was no answer, or none that could be read.
	Sent  bool
	Cause error
}

// Error names the code and what the service said.
func (e *Error) Error() string {
	if e.Message == "" {
		return "bedrock " + e.Code
	}
	return "bedrock " + e.Code + ": " + e.Message
}

// Unwrap is the SDK's error.
func (e *Error) Unwrap() error { return e.Cause }

// waits are what codes ask for that come without a Retry-After. A quota frees up
// by the minute; a model that is being made ready takes minutes.
var waits = map[string]time.Duration{
	"ThrottlingException":           10 * time.Second,
	"ServiceQuotaExceededException": time.Minute,
	"ModelNotReadyException":        30 * time.Second,
	"ServiceUnavailableException":   10 * time.Second,
}

// lasting are the codes whose request never succeeds as it stands, and passing
// those that may although their status is the client's fault.
var (
	lasting = map[string]bool{
		"ValidationException": true, "AccessDeniedException": true, "ResourceNotFoundException": true, "ConflictException": true,
	}
	passing = map[string]bool{
		"ThrottlingException": true, "ServiceQuotaExceededException": true, "ModelNotReadyException": true, "ModelTimeoutException": true,
		"ModelErrorException": true, "InternalServerException": true, "ServiceUnavailableException": true, "ExpiredTokenException": true,
	}
)

// failure reads what the service said. Where it named no error, the status
// decides; without a status the request never got an answer.
func failure(err error) *Error {
	e := &Error{Code: "NoAnswer", Message: "the request got no answer", Retryable: true, Cause: err, RetryAfter: awsconf.RetryAfter(err)}
	status := 0
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPStatusCode() != 0 {
		status = response.HTTPStatusCode()
		e.Code, e.Message = "UnreadableAnswer", http.StatusText(status)
	}
	api, named := errors.AsType[smithy.APIError](err)
	if named {
		e.Code, e.Message = api.ErrorCode(), api.ErrorMessage()
	}
	switch {
	case passing[e.Code]:
	case lasting[e.Code]:
		e.Retryable = false
	case status >= 400 && status < 500:
		e.Retryable = status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
	dial, dialled := errors.AsType[*net.OpError](err)
	switch {
	case named:
		e.Sent = e.Code == "ModelTimeoutException" || e.Code == "ModelErrorException"
	case status == 0:
		e.Sent = !dialled || dial.Op != "dial"
	default:
		e.Sent = status < 300
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = waits[e.Code]
	}
	if e.RetryAfter == 0 && status == http.StatusTooManyRequests {
		e.RetryAfter = waits["ThrottlingException"]
	}
	return e
}
