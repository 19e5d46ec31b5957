package factory

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/factory"
	"millrace/platform/awsconf"
	"millrace/storage/objects"
)

// Error types that Temporal shows.
const (
	kindInvalid   = "InvalidInput"
	kindIntegrity = "ContentIntegrity"
	kindUnsettled = "Unsettled"
)

// kindOf names the kind of an error and tells whether trying again is of use.
func kindOf(err error) (kind string, final bool) {
	var invalid *factory.InvalidError
	var damaged *objects.IntegrityError
	switch {
	case errors.As(err, &invalid), awsconf.IsRequestFault(err):
		return kindInvalid, true
	case errors.As(err, &damaged), errors.Is(err, errUnreadable):
		return kindIntegrity, true
	}
	return kindUnsettled, false
}

// maxShown bounds the failures that an error lists.
const maxShown = 5

// incomplete is the error of an activity that went through many things of which
// some failed; done is what it did. It is final only when every failure is.
func incomplete(failures []error, done any) error {
	if len(failures) == 0 {
		return nil
	}
	kind, final := kindOf(failures[0])
	for _, err := range failures[1:] {
		if _, alsoFinal := kindOf(err); !alsoFinal {
			kind, final = kindUnsettled, false
		}
	}
	shown := errors.Join(failures[:min(len(failures), maxShown)]...)
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%d failed: %s", len(failures), shown), kind,
		temporal.ApplicationErrorOptions{NonRetryable: final, Details: []any{done}})
}
