package cloudinfra

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/platform/awsconf"
)

// Codes of failures that have none of their own.
const (
	codeTimeout     = "Timeout"
	codeUnreachable = "Unreachable"
	codeUnreadable  = "Unreadable"
	codeNotFound    = "NotFound"
)

// unreadableError tells that an API answered something that makes no sense.
type unreadableError struct{ what string }

// Error says what made no sense.
func (e *unreadableError) Error() string { return e.what }

// errorOf is the error object of a call that failed.
func (c Collector) errorOf(source string, err error) cloudinfra.Error {
	code, message := codeAndMessage(err)
	return cloudinfra.NewError(source, code, message, factory.MillisOf(c.Now()))
}

func codeAndMessage(err error) (code, message string) {
	var api smithy.APIError
	var status *apierrors.StatusError
	var missing *serviceerror.NotFound
	var unreadable *unreadableError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codeTimeout, "no answer in time"
	case errors.As(err, &api):
		return api.ErrorCode(), api.ErrorMessage()
	case errors.As(err, &status):
		s := status.Status()
		return string(s.Reason), fmt.Sprintf("HTTP %d %s: %s", s.Code, http.StatusText(int(s.Code)), s.Message)
	case errors.As(err, &missing):
		return codeNotFound, err.Error()
	case errors.As(err, &unreadable):
		return codeUnreadable, err.Error()
	}
	return codeUnreachable, err.Error()
}

// fail is the failure of a probe. It tells the workflow what to show, and never
// carries the cause itself: that may show a signed URL.
func (c Collector) fail(source string, err error) error {
	e := c.errorOf(source, err)
	options := temporal.ApplicationErrorOptions{NonRetryable: isFinal(e.Code), Details: []any{e}}
	if awsconf.IsThrottling(err) {
		options.NextRetryDelay = awsconf.RetryAfter(err)
	}
	return temporal.NewApplicationErrorWithOptions(source+": "+e.Message, e.Code, options)
}

// isFinal tells whether asking again within the same run is no use: the next run
// asks again anyway.
func isFinal(code string) bool {
	for _, part := range []string{"AccessDenied", "Forbidden", "NotFound", "Validation", "InvalidParameter", codeUnreadable} {
		if strings.Contains(code, part) {
			return true
		}
	}
	return false
}
