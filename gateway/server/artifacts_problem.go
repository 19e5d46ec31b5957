package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	workflows "millrace/workflows/artifact"
)

// artifactProblem is the problem of an error of the rules or the store; place is
// where the fields of the rules lie in the request.
func artifactProblem(place string, err error) error {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*artifact.InvalidError](err); ok {
		field := invalid.Field
		if place != "" {
			field = place + "." + field
		}
		return invalidInput(field, invalid.Rule)
	}
	switch {
	case errors.Is(err, storage.ErrTaken):
		return versionTaken("this version is being submitted, or exists already")
	case errors.Is(err, storage.ErrNotFound) || errors.Is(err, objects.ErrNotFound):
		return NewProblem(http.StatusNotFound, "not-found", "there is no such version")
	}
	return err
}

// temporalProblem is the problem of an error of a call to Temporal.
func temporalProblem(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return lifecycleProblem(refused)
	}
	if _, taken := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); taken {
		return versionTaken("this version has a lifecycle already")
	}
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return NewProblem(http.StatusNotFound, "not-found", "there is no such version")
	}
	if isUnavailable(err) {
		return NewProblem(http.StatusServiceUnavailable, "temporal-unavailable", "the lifecycle did not answer; it may take the request all the same: ask for its status").
			WithHeader("Retry-After", "5").Because(err)
	}
	return err
}

func isUnavailable(err error) bool {
	_, down := errors.AsType[*serviceerror.Unavailable](err)
	_, busy := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	return down || busy || late || cut || errors.Is(err, context.DeadlineExceeded)
}

// statusOf are the statuses of refusals that are about who asks; the others are
// about the state of the version.
var statusOf = map[artifact.Why]int{
	artifact.WhyNotApprover: http.StatusForbidden, artifact.WhyOwnApproval: http.StatusForbidden,
	artifact.WhyNotAuthor: http.StatusForbidden, artifact.WhyAssurance: http.StatusForbidden,
}

// lifecycleProblem is the problem of what a lifecycle refused, with its reason.
func lifecycleProblem(e *temporal.ApplicationError) error {
	message := e.Message()
	switch e.Type() {
	case workflows.ErrInvalid:
		field, rule, _ := strings.Cut(message, " ")
		return invalidInput("body."+field, rule).WithReason(string(artifact.WhyInvalid))
	case workflows.ErrRefused:
		return refusedProblem(message)
	case workflows.ErrForbidden:
		return NewProblem(http.StatusForbidden, "refused", message).WithReason("forbidden")
	case workflows.ErrConflict, workflows.ErrBusy, workflows.ErrSuperseded, workflows.ErrTaken, workflows.ErrIntegrity:
		return NewProblem(http.StatusConflict, "refused", message).WithReason(snake(e.Type()))
	}
	return NewProblem(http.StatusInternalServerError, "internal", "unexpected error").Because(e)
}

// refusedProblem reads the reason that a *artifact.RefusedError begins with.
func refusedProblem(message string) *Problem {
	reason, detail, _ := strings.Cut(message, ": ")
	status, personal := statusOf[artifact.Why(reason)]
	if !personal {
		status = http.StatusConflict
	}
	return NewProblem(status, "refused", detail).WithReason(reason)
}

// snake is an error type such as ContentIntegrity as a reason, content_integrity.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
