package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/names"
)

// host has one Temporal worker for each task queue that is worked on and for
// which a capability registered something.
type host struct {
	temporal client.Client
	settings settings
	workers  map[string]worker.Worker
	fatal    chan error
	// ends are what is left to do when no worker works any more.
	ends []func()
}

func newHost(temporal client.Client, s settings) *host {
	return &host{temporal: temporal, settings: s, workers: map[string]worker.Worker{}, fatal: make(chan error, 1)}
}

// on lets register add workflows and activities to the worker of a task queue,
// unless this process was told not to work on it.
func (h *host) on(taskQueue string, register func(worker.Registry)) {
	if !slices.Contains(h.settings.TaskQueues.Names, taskQueue) {
		return
	}
	w, ok := h.workers[taskQueue]
	if !ok {
		w = worker.New(h.temporal, taskQueue, h.options(taskQueue))
		h.workers[taskQueue] = w
	}
	register(w)
}

// atEnd has something done when no worker works any more.
func (h *host) atEnd(end func()) { h.ends = append(h.ends, end) }

func (h *host) options(taskQueue string) worker.Options {
	options := worker.Options{
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		ActivityTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		WorkerStopTimeout:          h.settings.TaskQueues.StopTimeout,
		OnFatalError:               h.fail,
	}
	if taskQueue == names.QueueScripts {
		// Scripts that wait in the queue lose nothing; those that starve one another may.
		options.MaxConcurrentActivityExecutionSize = h.settings.Artifacts.ScriptsAtOnce
	}
	if id := h.settings.Deployment.BuildID; id != "" {
		options.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning:             true,
			Version:                   worker.WorkerDeploymentVersion{DeploymentName: h.settings.Deployment.DeploymentName, BuildID: id},
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		}
	}
	return options
}

// fail keeps the first fatal error; the SDK stops that worker itself.
func (h *host) fail(err error) {
	select {
	case h.fatal <- err:
	default:
	}
}

// run works until ctx ends or a worker fails for good.
func (h *host) run(ctx context.Context, logger *slog.Logger) error {
	if len(h.workers) == 0 {
		return errors.New("nothing is registered for these task queues")
	}
	defer h.stop()
	for taskQueue, w := range h.workers {
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker of task queue %s: %w", taskQueue, err)
		}
		logger.Info("working", "task_queue", taskQueue)
	}
	select {
	case <-ctx.Done():
		logger.Info("stopping", "timeout", h.settings.TaskQueues.StopTimeout)
		return nil
	case err := <-h.fatal:
		return fmt.Errorf("worker failed: %w", err)
	}
}

// stop ends all workers at the same time, so that their timeouts don't add up.
func (h *host) stop() {
	var stopping sync.WaitGroup
	for _, w := range h.workers {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
	for _, end := range h.ends {
		end()
	}
}
