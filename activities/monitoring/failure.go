package monitoring

import (
	"go.temporal.io/sdk/temporal"

	"millrace/platform/awsconf"
)

// kindInvalid is the error type of what trying again can't mend.
const kindInvalid = "InvalidInput"

func invalidInput(message string) error {
	return temporal.NewNonRetryableApplicationError(message, kindInvalid, nil)
}

// failure is an error that is tried again, unless the store refused what was
// asked and not the moment.
func failure(err error) error {
	if awsconf.IsRequestFault(err) {
		return temporal.NewNonRetryableApplicationError(err.Error(), kindInvalid, err)
	}
	return err
}
