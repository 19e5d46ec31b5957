package cloudinfra

import (
	"golang.org/x/sync/errgroup"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

// atOnce bounds the calls that a probe of several things makes side by side.
const atOnce = 8

// gather looks at several things side by side, and once more at one that failed
// for now: an error of a single call is an alert, a blip must not be. One that
// fails does not hide the others; the probe fails only when all of them do.
func gather[In, T any](things []In, source string, c Collector, look func(In) (T, error)) (workflows.Found[[]T], error) {
	values, failures := make([]T, len(things)), make([]error, len(things))
	var work errgroup.Group
	work.SetLimit(atOnce)
	for i, thing := range things {
		work.Go(func() error {
			values[i], failures[i] = look(thing)
			if passing(failures[i]) {
				values[i], failures[i] = look(thing)
			}
			return nil
		})
	}
	_ = work.Wait() // failures has what failed
	result := workflows.Found[[]T]{Value: []T{}, Errors: []cloudinfra.Error{}}
	var last error
	for i, err := range failures {
		if err != nil {
			last = err
			result.Errors = append(result.Errors, c.errorOf(source, err))
			continue
		}
		result.Value = append(result.Value, values[i])
	}
	if last != nil && len(result.Value) == 0 {
		return workflows.Found[[]T]{}, c.fail(source, last)
	}
	return result, nil
}

// passing tells a failure that may be gone at the next look.
func passing(err error) bool {
	if err == nil {
		return false
	}
	code, _ := codeAndMessage(err)
	return !isFinal(code)
}
