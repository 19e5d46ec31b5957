package awsconf

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"
)

func apiError(code string) error {
	return fmt.Errorf("put item: %w", &smithy.GenericAPIError{Code: code})
}

func TestFaultsAreToldApart(t *testing.T) {
	cases := []struct {
		err                 error
		fault, isThrottling bool
	}{
		{apiError("ValidationException"), true, false},
		{apiError("KeyTooLongError"), true, false},
		{apiError("ThrottlingException"), false, true},
		{apiError("SlowDown"), false, true},
		{apiError("AccessDeniedException"), false, false},
		{apiError("ResourceNotFoundException"), false, false},
		{errors.New("connection refused"), false, false},
		{nil, false, false},
	}
	for _, c := range cases {
		require.Equal(t, c.fault, IsRequestFault(c.err), "%v", c.err)
		require.Equal(t, c.isThrottling, IsThrottling(c.err), "%v", c.err)
	}
}

func TestRetryAfterIsWhatTheServiceAskedFor(t *testing.T) {
	response := func(header string) error {
		return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{Header: http.Header{"Retry-After": {header}}}},
			Err:      errors.New("throttled"),
		}}
	}
	require.Equal(t, 7*time.Second, RetryAfter(response("7")))
	require.Zero(t, RetryAfter(response("tomorrow")))
	require.Zero(t, RetryAfter(errors.New("no answer")))
}
