package awsconf

import (
	"errors"

	"github.com/aws/smithy-go"
)

// requestFaults are the error codes by which AWS says that this very request can
// never succeed, whoever makes it and whenever.
var requestFaults = map[string]bool{
	"ValidationException": true, "KeyTooLongError": true, "InvalidArgument": true, "EntityTooLarge": true,
	"ItemCollectionSizeLimitExceededException": true, "InvalidMessageContents": true,
}

// IsRequestFault tells whether AWS refused the request for what it says, and not
// for want of capacity, access, a table or a network: trying it again is no use,
// and other requests are not affected.
func IsRequestFault(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && requestFaults[api.ErrorCode()]
}
