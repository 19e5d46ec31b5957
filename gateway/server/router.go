package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"millrace/domain/monitoring"
)

// Routes adds the operations of one capability.
type Routes func(*Router)

// Router takes the operations of the capabilities.
type Router struct {
	server *Server
	api    huma.API
	mux    chi.Router
}

// Operation declares one operation of the API: what it is called and who may
// call it.
type Operation struct {
	// ID is unique in the API, with dashes.
	ID          string
	Method      string
	Path        string
	Tag         string
	Summary     string
	Description string

	// Scope opens the operation to tokens; it is "" only where Public is set.
	Scope  monitoring.Scope
	Public bool
	// Budget is what a request counts as; "" stands for read where the method is
	// GET and for write elsewhere.
	Budget monitoring.BudgetKind

	// Status is that of success; 0 stands for 200, or 204 without a body. Also are
	// others that it may answer with the same body, by an output's Status field.
	Status int
	Also   []int
	// MaxBody bounds the request's body in bytes; 0 stands for 64 KiB.
	MaxBody int64
	// Problems are the statuses it may answer besides those of every operation.
	Problems []int
	// Timeout bounds the operation, the sending of its answer included; 0 stands
	// for that of the server.
	Timeout time.Duration
	// Streaming lifts the timeouts, for answers that go on: their context ends
	// with the client, or when the server stops.
	Streaming bool
	// Body and Answers describe what the framework can't know: a body that the
	// handler reads itself, and answers that are no JSON.
	Body    *huma.RequestBody
	Answers map[int]*huma.Response
}

const (
	defaultMaxBody = 64 << 10
	// bodyTimeout is the time a client has to send a body.
	bodyTimeout = 10 * time.Second
)

func (op Operation) budget() monitoring.BudgetKind {
	switch {
	case op.Budget != "":
		return op.Budget
	case op.Method == http.MethodGet:
		return monitoring.BudgetRead
	}
	return monitoring.BudgetWrite
}

func (op Operation) maxBody() int64 {
	if op.MaxBody > 0 {
		return op.MaxBody
	}
	return defaultMaxBody
}

// Handle adds one operation. Input and output are structs as huma reads them:
// fields with path, query or header tags, and Body. Errors of the handler become
// problems: return a *Problem, or an error that problemOf knows.
func Handle[I, O any](r *Router, op Operation, handler func(context.Context, *I) (*O, error)) {
	if (op.Scope == "") != op.Public {
		panic(fmt.Sprintf("operation %s must either have a scope or be public", op.ID))
	}
	described := r.describe(op)
	huma.Register(r.api, described, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err == nil {
			return out, nil
		}
		problem := *problemOf(err)
		problem.Instance = instanceOf(ctx)
		noteError(ctx, &problem)
		return nil, &problem
	})
	if op.Body != nil {
		r.operation(op).RequestBody = op.Body // told before, the framework would read it
	}
	responses := described.Responses
	for _, status := range op.Also {
		responses[strconv.Itoa(status)] = responses[strconv.Itoa(max(op.Status, http.StatusOK))]
	}
}

// operation is an operation in the contract.
func (r *Router) operation(op Operation) *huma.Operation {
	item := r.api.OpenAPI().Paths[op.Path]
	if op.Method == http.MethodPut {
		return item.Put
	}
	return item.Post
}

// Mount adds a handler outside the API that needs no token, such as the pages of
// the web interface.
func (r *Router) Mount(pattern string, handler http.Handler) { r.mux.Handle(pattern, handler) }

func (r *Router) describe(op Operation) huma.Operation {
	described := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
		Tags: []string{op.Tag}, DefaultStatus: op.Status, MaxBodyBytes: op.maxBody() + 1, BodyReadTimeout: bodyTimeout, // the framework refuses its bound itself
		Responses: map[string]*huma.Response{},
	}
	limit := r.server.limitTime
	switch {
	case op.Streaming:
		limit = r.server.liftLimits
	case op.Timeout > 0:
		limit = limitTo(op.Timeout)
	}
	described.Middlewares = append(described.Middlewares, limit)
	problems := []int{http.StatusBadRequest, http.StatusInternalServerError}
	if op.Method != http.MethodGet && op.Method != http.MethodDelete {
		problems = append(problems, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if op.Public {
		described.Security = []map[string][]string{}
	} else {
		described.Security = []map[string][]string{{securityScheme: {string(op.Scope)}}}
		described.Extensions = map[string]any{"x-scope": string(op.Scope), "x-budget": string(op.budget())}
		described.Middlewares = append(described.Middlewares, r.server.guard(op))
		problems = append(problems, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusGatewayTimeout)
	}
	for _, status := range append(problems, op.Problems...) {
		described.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: problemSchema}}},
		}
	}
	for status, answer := range op.Answers {
		described.Responses[strconv.Itoa(status)] = answer
	}
	return described
}

const (
	securityScheme = "bearer"
	problemSchema  = "#/components/schemas/Problem"
)

// limitTime ends an operation that takes too long; waiting for the store counts.
func (s *Server) limitTime(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), s.timeout)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}

// limitTo ends an operation that takes longer than a time of its own, and has the
// connection wait as long.
func limitTo(timeout time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humachi.Unwrap(ctx)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout + writeTimeout)) // a writer without deadlines has none to move
		limited, cancel := context.WithTimeout(ctx.Context(), timeout)
		defer cancel()
		next(huma.WithContext(ctx, limited))
	}
}

// liftLimits lets an answer go on until its client leaves or the server stops.
func (s *Server) liftLimits(ctx huma.Context, next func(huma.Context)) {
	_, w := humachi.Unwrap(ctx)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a writer without deadlines has none to lift
	streaming, cancel := context.WithCancel(ctx.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	next(huma.WithContext(ctx, streaming))
}
