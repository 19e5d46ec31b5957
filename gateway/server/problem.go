package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/aws/smithy-go"
	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/factory"
	"millrace/domain/monitoring"
	"millrace/storage/table"
)

// problemType is the prefix of the stable type URIs of problems.
const problemType = "urn:millrace:problem:"

// Problem is an error as clients see it: problem details of RFC 9457 with a
// stable type. It never repeats what the client sent.
type Problem struct {
	Type     string       `json:"type" format:"uri" doc:"Stable identifier of the kind of problem." example:"urn:millrace:problem:invalid-input"`
	Title    string       `json:"title" doc:"Short text of the kind of problem."`
	Status   int          `json:"status" doc:"HTTP status code."`
	Detail   string       `json:"detail,omitempty" doc:"What went wrong this time."`
	Instance string       `json:"instance,omitempty" format:"uri" doc:"Identifies the request; it is in the server's log too."`
	Reason   string       `json:"reason,omitempty" doc:"Stable word for why a state or a rule does not allow it." example:"not_an_approver"`
	Errors   []FieldError `json:"errors,omitempty" doc:"Fields that break a rule."`

	cause   error
	headers http.Header
}

// FieldError is a field and the rule that it breaks.
type FieldError struct {
	Field string `json:"field" example:"body.name" doc:"Path of the field, beginning with path, query, header or body."`
	Rule  string `json:"rule" doc:"The rule that it breaks."`
}

// NewProblem is a problem with a stable code (a word or several, with dashes).
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: problemType + code, Title: http.StatusText(status), Status: status, Detail: detail}
}

// WithField names a field that breaks a rule.
func (p *Problem) WithField(field, rule string) *Problem {
	p.Errors = append(p.Errors, FieldError{Field: field, Rule: rule})
	return p
}

// WithReason adds a stable word for why it is refused.
func (p *Problem) WithReason(reason string) *Problem {
	p.Reason = reason
	return p
}

// WithHeader adds a response header.
func (p *Problem) WithHeader(name, value string) *Problem {
	if p.headers == nil {
		p.headers = http.Header{}
	}
	p.headers.Set(name, value)
	return p
}

// Because keeps the cause for the server's log; clients do not see it.
func (p *Problem) Because(cause error) *Problem {
	p.cause = cause
	return p
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// Unwrap is the cause.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus is the HTTP status code.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are the problem's own response headers.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType is that of problem details.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// codes are the problem codes of statuses that the framework itself answers.
var codes = map[int]string{
	http.StatusBadRequest:            "invalid-input",
	http.StatusUnauthorized:          "unauthenticated",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not-found",
	http.StatusMethodNotAllowed:      "method-not-allowed",
	http.StatusRequestTimeout:        "request-timeout",
	http.StatusConflict:              "conflict",
	http.StatusPreconditionFailed:    "precondition-failed",
	http.StatusRequestEntityTooLarge: "body-too-large",
	http.StatusUnsupportedMediaType:  "unsupported-media-type",
	http.StatusTooManyRequests:       "budget-exceeded",
	http.StatusInternalServerError:   "internal",
	http.StatusServiceUnavailable:    "unavailable",
	http.StatusGatewayTimeout:        "store-unavailable",
}

// The framework makes its errors through these variables. Its values of bad
// fields, which may hold secrets, are left out; its 422 is our 400.
func init() { //nolint:gochecknoinits // the framework knows no other way
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		return frameworkProblem(status, detail, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
		p := frameworkProblem(status, detail, errs)
		p.Instance = instanceOf(ctx.Context())
		return p
	}
}

func frameworkProblem(status int, detail string, errs []error) *Problem {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	if status == http.StatusRequestEntityTooLarge {
		detail = "the request body is too large" // the framework names a bound that is one byte off
	}
	code := codes[status]
	if code == "" {
		code = strconv.Itoa(status)
	}
	p := NewProblem(status, code, detail)
	if status >= http.StatusInternalServerError {
		return p
	}
	for _, err := range errs {
		var detailer huma.ErrorDetailer
		if errors.As(err, &detailer) {
			field := detailer.ErrorDetail()
			p = p.WithField(field.Location, field.Message)
		}
	}
	return p
}

// problemOf is the problem of an error of a handler.
func problemOf(err error) *Problem {
	var (
		problem        *Problem
		badMonitoring  *monitoring.InvalidError
		badFactory     *factory.InvalidError
		exceeded       *monitoring.BudgetExceededError
		storeOperation *smithy.OperationError
	)
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &badMonitoring):
		return invalidInput(badMonitoring.Field, badMonitoring.Rule)
	case errors.As(err, &badFactory):
		return invalidInput(badFactory.Field, badFactory.Rule)
	case errors.Is(err, table.ErrBadCursor):
		return invalidInput("query.cursor", "must be the nextCursor of this list")
	case errors.As(err, &exceeded):
		return NewProblem(http.StatusTooManyRequests, "budget-exceeded", exceeded.Error()).
			WithHeader("Retry-After", strconv.Itoa(int(exceeded.RetryAfter.Seconds())))
	case errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusGatewayTimeout, "store-unavailable", "the store did not answer in time").Because(err)
	case errors.As(err, &storeOperation):
		return NewProblem(http.StatusGatewayTimeout, "store-unavailable", "the store did not answer").Because(err)
	}
	return NewProblem(http.StatusInternalServerError, "internal", "unexpected error").Because(err)
}

func invalidInput(field, rule string) *Problem {
	return NewProblem(http.StatusBadRequest, "invalid-input", fmt.Sprintf("%s %s", field, rule)).WithField(field, rule)
}

// writeProblem answers outside the framework's operations.
func writeProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	answer := *p
	answer.Instance = instanceOf(r.Context())
	noteError(r.Context(), p)
	maps.Copy(w.Header(), p.headers)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(answer) // the client is gone when this fails
}
