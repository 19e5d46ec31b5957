package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"millrace/domain/artifact"
	"millrace/edge/simulator"
)

// Publisher publishes to a topic and returns when the broker has confirmed.
type Publisher interface {
	Publish(ctx context.Context, topic string, body []byte) error
}

// Device does the jobs of one simulated factory.
type Device struct {
	FactoryID string
	Memory    *Memory
	Publisher Publisher
	// Drill is how jobs are to go wrong just now.
	Drill func() Drill
	Now   func() time.Time
	// Again is how long to wait before what failed is tried again; 0 stands for a
	// second.
	Again time.Duration
	Log   *slog.Logger

	work, replies chan struct{}
}

// NewDevice is a device without drills.
func NewDevice(factoryID string, memory *Memory, publisher Publisher, log *slog.Logger) *Device {
	return &Device{
		FactoryID: factoryID, Memory: memory, Publisher: publisher, Drill: func() Drill { return Drill{} }, Now: time.Now, Log: log,
		work: make(chan struct{}, 1), replies: make(chan struct{}, 1),
	}
}

// Take remembers a job that came; after it returned without error the job is
// done whatever happens to the device. A job that was done before is answered
// again. One that can't be understood is answered as failed, where the topic says
// which one it is.
func (d *Device) Take(topic string, body []byte) error {
	factoryID, runID, err := artifact.ParseJobTopic(topic)
	if err != nil || factoryID != d.FactoryID {
		d.Log.Warn("message is no job of ours", "topic", topic)
		return nil
	}
	r := record{RunID: runID, Stage: accepted}
	job, err := artifact.ParseJobDocument(topic, body)
	if err == nil {
		r.Job = &job
	} else {
		now := d.Now().UTC()
		reply := d.failed(runID, now, "job document: "+err.Error())
		r.Stage, r.Reply = done, &reply
	}
	isNew, err := d.Memory.remember(r)
	if errors.Is(err, errForgotten) {
		d.Log.Warn("job ignored", "run_id", runID, "reason", err)
		return nil
	}
	if err != nil {
		return err
	}
	d.Log.Info("job taken", "run_id", runID, "new", isNew)
	wake(d.work)
	wake(d.replies)
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run does jobs, one after the other, and answers them until ctx ends.
func (d *Device) Run(ctx context.Context) {
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		d.loop(ctx, d.replies, d.answer)
	}()
	if d.settle(ctx) {
		d.loop(ctx, d.work, d.job)
	}
	<-answering
}

// loop does one thing after the other, waits where there is none, and tries again
// after a while what failed.
func (d *Device) loop(ctx context.Context, more <-chan struct{}, once func(context.Context) (bool, error)) {
	for ctx.Err() == nil {
		did, err := once(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("job waits", "error", err)
			pause(ctx, d.again())
		}
		if did || err != nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-more:
		}
	}
}

func (d *Device) again() time.Duration {
	if d.Again == 0 {
		return time.Second
	}
	return d.Again
}

// pause waits, and tells whether for the whole time.
func pause(ctx context.Context, how time.Duration) bool {
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// settle answers jobs that a restart interrupted: nobody knows whether they were
// done, and they are not done twice.
func (d *Device) settle(ctx context.Context) bool {
	for ctx.Err() == nil {
		r, ok := d.Memory.next(begun)
		if !ok {
			return true
		}
		reply := d.failed(r.RunID, d.Now().UTC(), "the device restarted during the job: whether it was done is not known")
		reply.ExitCode = -1
		if err := d.Memory.finish(reply, nil); err != nil {
			d.Log.Warn("job waits", "error", err)
			pause(ctx, d.again())
			continue
		}
		d.Log.Warn("job was interrupted", "run_id", r.RunID)
		wake(d.replies)
	}
	return false
}

func (d *Device) failed(runID string, at time.Time, detail string) artifact.JobReply {
	return artifact.JobReply{
		RunID: runID, FactoryID: d.FactoryID, Status: artifact.JobFailed, ExitCode: 1, Detail: detail, StartedAt: at, FinishedAt: at,
	}
}

// job does the next job, if any.
func (d *Device) job(ctx context.Context) (bool, error) {
	r, ok := d.Memory.next(accepted)
	if !ok {
		return false, nil
	}
	if err := d.Memory.begin(r.RunID); err != nil {
		return false, err
	}
	reply, change := d.do(ctx, *r.Job)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	for {
		err := d.Memory.finish(reply, change)
		if err == nil {
			break
		}
		d.Log.Warn("job waits", "run_id", r.RunID, "error", err)
		if !pause(ctx, d.again()) {
			return false, err
		}
	}
	d.Log.Info("job done", "run_id", r.RunID, "status", reply.Status, "detail", reply.Detail)
	wake(d.replies)
	return true, nil
}

// do does a job. A job that is not ended by issued_at + timeout_seconds, by the
// device's clock, is not done: nobody waits for it any more.
func (d *Device) do(ctx context.Context, job artifact.JobDocument) (artifact.JobReply, *simulator.Adjustment) {
	began, drill := d.Now().UTC(), d.Drill()
	ended := func(r artifact.JobReply) artifact.JobReply {
		r.StartedAt, r.FinishedAt = began, d.Now().UTC()
		return r
	}
	deadline := job.IssuedAt.Add(time.Duration(job.TimeoutSeconds) * time.Second)
	if !began.Before(deadline) {
		return ended(d.failed(job.RunID, began, "the job came after its time was over")), nil
	}
	content, err := job.Content()
	if err != nil {
		return ended(d.failed(job.RunID, began, err.Error())), nil
	}
	op, err := parseOperation(content)
	if err != nil {
		return ended(d.failed(job.RunID, began, err.Error())), nil
	}
	if drill.Kind == DrillFail {
		return ended(d.failed(job.RunID, began, "drill: jobs fail")), nil
	}
	if drill.Kind == DrillSlow {
		pause(ctx, min(drill.Delay, deadline.Sub(began)))
		if drill.Delay >= deadline.Sub(began) {
			return ended(d.failed(job.RunID, began, "the job took longer than its timeout")), nil
		}
	}
	reply, change := d.perform(job.RunID, op)
	return ended(reply), change
}

func (d *Device) perform(runID string, op operation) (artifact.JobReply, *simulator.Adjustment) {
	reply := artifact.JobReply{RunID: runID, FactoryID: d.FactoryID, Status: artifact.JobSucceeded}
	switch op.Operation {
	case opFail:
		reply = d.failed(runID, d.Now(), "told to fail")
		reply.Stderr = op.text()
		return reply, nil
	case opEcho:
		reply.Stdout = op.text()
		return reply, nil
	}
	change := op.apply(d.Memory.Adjustment())
	reply.Detail = "offsets: " + change.String()
	reply.Stdout = fmt.Sprintf("%s\n", change)
	return reply, &change
}

// answer sends the next reply, if any.
func (d *Device) answer(ctx context.Context) (bool, error) {
	reply, ok := d.Memory.unanswered()
	if !ok {
		return false, nil
	}
	times := 1
	switch d.Drill().Kind {
	case DrillSilent:
		times = 0
	case DrillDuplicate:
		times = 2
	}
	body, err := reply.Encode()
	if err != nil {
		return false, err
	}
	for range times {
		if err := d.Publisher.Publish(ctx, artifact.JobResultTopic(d.FactoryID, reply.RunID), body); err != nil {
			return false, err
		}
	}
	return true, d.Memory.answered(reply.RunID)
}
