package server

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Check tells whether something that the server depends on answers.
type Check func(context.Context) error

// checkTimeout is what a dependency has to answer a check.
const checkTimeout = 2 * time.Second

// health answers probes. A stopping server is alive but not ready, so that no
// new requests are sent to it.
type health struct {
	checks   map[string]Check
	stopping atomic.Bool
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
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	ready := Ready{Status: "ok", Dependencies: map[string]string{}}
	var lock sync.Mutex
	var wait sync.WaitGroup
	for name, check := range h.checks {
		wait.Go(func() {
			err := check(ctx)
			lock.Lock()
			defer lock.Unlock()
			ready.Dependencies[name] = "ok"
			if err != nil {
				ready.Status, ready.Dependencies[name] = "degraded", "unavailable"
			}
		})
	}
	wait.Wait()
	if h.stopping.Load() {
		ready.Status = "stopping"
	}
	return ready
}
