package server

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Check tells whether something that the server depends on answers.
type Check func(context.Context) error

const (
	// checkTimeout is what a dependency has to answer a check.
	checkTimeout = 2 * time.Second
	// checkAge is how long the outcome of checks is good for: probes need no
	// token, and must not cost more than this.
	checkAge = time.Second
)

// health answers probes. A stopping server is alive but not ready, so that no
// new requests are sent to it.
type health struct {
	checks   map[string]Check
	stopping context.Context //nolint:containedctx // the life of the server, not of a call
	now      func() time.Time

	lock      sync.Mutex
	checkedAt time.Time
	outcome   map[string]string
}

// Live says that the process answers.
type Live struct {
	Status string `json:"status" enum:"ok"`
}

// Ready says whether the server can do its work.
type Ready struct {
	Status       string            `json:"status" enum:"ok,degraded,stopping"`
	Dependencies map[string]string `json:"dependencies" doc:"ok or unavailable, by dependency."`
}

type liveOutput struct {
	Body Live
}

type readyOutput struct {
	Status int
	Body   Ready
}

func (h *health) routes(r *Router) {
	Handle(r, Operation{
		ID: "healthz", Method: http.MethodGet, Path: "/healthz", Tag: "health", Public: true,
		Summary: "Tell whether the process answers",
	}, func(context.Context, *struct{}) (*liveOutput, error) {
		return &liveOutput{Body: Live{Status: "ok"}}, nil
	})
	Handle(r, Operation{
		ID: "readyz", Method: http.MethodGet, Path: "/readyz", Tag: "health", Public: true,
		Summary: "Tell whether the dependencies answer", Also: []int{http.StatusServiceUnavailable},
		Description: "Answers 503 with status degraded when a dependency does not answer within two seconds, and with status stopping while the server stops.",
	}, func(ctx context.Context, _ *struct{}) (*readyOutput, error) {
		ready := h.ready(ctx)
		out := &readyOutput{Status: http.StatusOK, Body: ready}
		if ready.Status != "ok" {
			out.Status = http.StatusServiceUnavailable
		}
		return out, nil
	})
}

func (h *health) ready(ctx context.Context) Ready {
	ready := Ready{Status: "ok", Dependencies: h.check(ctx)}
	for _, outcome := range ready.Dependencies {
		if outcome != "ok" {
			ready.Status = "degraded"
		}
	}
	if h.stopping.Err() != nil {
		ready.Status = "stopping"
	}
	return ready
}

// check asks all dependencies at once. Probes that come meanwhile wait for the
// same outcome.
func (h *health) check(ctx context.Context) map[string]string {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.outcome != nil && h.now().Sub(h.checkedAt) < checkAge {
		return maps.Clone(h.outcome)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	var wait sync.WaitGroup
	outcomes := make(chan [2]string, len(h.checks))
	for name, check := range h.checks {
		wait.Go(func() {
			outcome := "ok"
			if check(ctx) != nil {
				outcome = "unavailable"
			}
			outcomes <- [2]string{name, outcome}
		})
	}
	wait.Wait()
	close(outcomes)
	h.outcome = make(map[string]string, len(h.checks))
	for o := range outcomes {
		h.outcome[o[0]] = o[1]
	}
	h.checkedAt = h.now()
	return maps.Clone(h.outcome)
}
