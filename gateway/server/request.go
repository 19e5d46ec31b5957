package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"millrace/domain/monitoring"
)

// request is what the log line of a request gathers on its way.
type request struct {
	id  string
	err error
}

type requestKey struct{}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// RequestID identifies the request that ctx belongs to, in the answer's
// X-Request-Id and in the log.
func RequestID(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

func instanceOf(ctx context.Context) string {
	if id := RequestID(ctx); id != "" {
		return "urn:millrace:request:" + id
	}
	return ""
}

// noteError keeps the cause of a failure of ours for the request's log line.
func noteError(ctx context.Context, p *Problem) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok && p.Status >= http.StatusInternalServerError {
		r.err = p.cause
	}
}

// observe gives every request an id, one log line and its metrics, and turns a
// panic into a problem. The line has the path's template, never the path itself,
// the query or a header: those may hold secrets.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		state := &request{id: r.Header.Get("X-Request-Id")}
		if !harmless(state.id) {
			state.id = rand.Text()
		}
		w.Header().Set("X-Request-Id", state.id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		writer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, state))
		s.metrics.inFlight.Inc()
		defer func() {
			s.recoverPanic(writer, r, recover())
			s.metrics.inFlight.Dec()
			s.finish(writer, r, state, time.Since(started))
		}()
		next.ServeHTTP(writer, r)
	})
}

// harmless tells whether an id of a client's choice may be logged: one that looks
// like a token is none.
func harmless(id string) bool {
	_, notAToken := monitoring.ParseSecret(id)
	return notAToken != nil && requestIDPattern.MatchString(id)
}

func (s *Server) recoverPanic(w middleware.WrapResponseWriter, r *http.Request, thrown any) {
	if thrown == nil {
		return
	}
	if err, ok := thrown.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return
	}
	s.logger.ErrorContext(r.Context(), "request panicked", "request_id", RequestID(r.Context()), "panic", thrown, "stack", string(debug.Stack()))
	if w.Status() == 0 {
		writeProblem(w, r, NewProblem(http.StatusInternalServerError, "internal", "unexpected error"))
	}
}

func (s *Server) finish(w middleware.WrapResponseWriter, r *http.Request, state *request, took time.Duration) {
	status := w.Status()
	if status == 0 {
		status = http.StatusOK
	}
	route := routeOf(r)
	s.metrics.observe(r.Method, route, status, took)
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("request_id", state.id), slog.String("method", knownMethod(r.Method)), slog.String("route", route),
		slog.Int("status", status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if state.err != nil {
		attributes = append(attributes, slog.Any("error", state.err))
	}
	s.logger.LogAttrs(r.Context(), level, "request", attributes...)
}

// routeOf is the template of the route taken, so that logs and metrics have few
// different values whatever clients ask for.
func routeOf(r *http.Request) string {
	if ctx := chi.RouteContext(r.Context()); ctx != nil && ctx.RoutePattern() != "" {
		return ctx.RoutePattern()
	}
	return "none"
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
