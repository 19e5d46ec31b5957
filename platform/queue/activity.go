package queue

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

const (
	// heartbeatEvery is how often a drain reports that it lives.
	heartbeatEvery = 15 * time.Second
	// finishWithin bounds how long a drain works on what it holds after it stopped
	// receiving, so that it ends before its activity's timeout.
	finishWithin = 45 * time.Second
)

// RunActivity drains within a Temporal activity for one stretch, or until the
// activity is cancelled or its worker stops; then it receives no more and
// finishes what it holds. It heartbeats its counts.
func (d *Drainer) RunActivity(ctx context.Context, stretch time.Duration) Counts {
	stop, cancel := context.WithTimeout(ctx, stretch)
	defer cancel()
	work, cancelWork := context.WithTimeout(context.WithoutCancel(ctx), stretch+finishWithin)
	defer cancelWork()
	finished := make(chan struct{})
	go d.supervise(ctx, cancel, finished)
	d.Run(work, stop)
	close(finished)
	return d.Counts()
}

// supervise sends heartbeats and passes the worker's stop on.
func (d *Drainer) supervise(ctx context.Context, stop context.CancelFunc, finished <-chan struct{}) {
	heartbeat := time.NewTicker(heartbeatEvery)
	defer heartbeat.Stop()
	workerStops := activity.GetWorkerStopChannel(ctx)
	for {
		select {
		case <-finished:
			return
		case <-workerStops:
			stop()
			workerStops = nil
		case <-heartbeat.C:
			activity.RecordHeartbeat(ctx, d.Counts())
		}
	}
}
