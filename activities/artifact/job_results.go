package artifact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"millrace/domain/artifact"
	"millrace/platform/awsconf"
	"millrace/platform/queue"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
	workflows "millrace/workflows/artifact"
)

// JobResults takes the replies of devices from their queue: it keeps what each
// says, finishes its run and tells the lifecycle that waits for it.
type JobResults struct {
	Queue queue.Queue
	Store storage.Store
	// Quarantine gets what can't be used, with the reason.
	Quarantine objects.Bucket
	Temporal   Signaller
	Metrics    *JobMetrics
	Settings   queue.Settings
	// Stretch is how long one activity drains; workflows.JobResultStretch in
	// production.
	Stretch time.Duration
	Now     func() time.Time
	Logger  *slog.Logger
	// At, where set, is called after every step; an error ends the work there.
	At func(JobStep) error
}

// JobStep is a point of taking a reply at which a crash is tried.
type JobStep string

// The steps of taking a reply, in order.
const (
	JobStepKept       JobStep = "output kept"
	JobStepFinished   JobStep = "run finished"
	JobStepSignalled  JobStep = "lifecycle told"
	JobStepQuarantine JobStep = "quarantine written"
)

// Outcomes of replies.
const (
	jobFinished    = "finished"
	jobDuplicate   = "duplicate"
	jobLate        = "late"
	jobQuarantined = "quarantined"
)

// DrainJobResults takes replies for one stretch.
func (j JobResults) DrainJobResults(ctx context.Context, _ workflows.JobResultRequest) (workflows.JobResultCounts, error) {
	if j.Queue.URL == "" {
		return workflows.JobResultCounts{}, errNoJobResults
	}
	handler := &jobResultHandler{JobResults: j, outcomes: map[string]int64{}}
	drainer := &queue.Drainer{Queue: j.Queue, Handler: handler, Settings: j.Settings, Logger: j.Logger}
	counts := drainer.RunActivity(ctx, j.Stretch)
	return workflows.JobResultCounts{
		Received: counts.Received, Deleted: counts.Deleted, Abandoned: counts.Abandoned, Outages: counts.Outages, Outcomes: handler.totals(),
	}, nil
}

// errNoJobResults is tried again: another worker may have the setting.
var errNoJobResults = errors.New("MILLRACE_JOB_RESULTS_QUEUE_URL is not set")

type jobResultHandler struct {
	JobResults

	mu       sync.Mutex
	outcomes map[string]int64
}

// Lane is the topic, and so the run: its replies are taken one after the other.
func (h *jobResultHandler) Lane(m queue.Message) string { return decodeJobEnvelope(m, h.Now()).Topic }

// Idle has nothing to do: nothing hangs on the last reply of a run.
func (h *jobResultHandler) Idle(context.Context, string) {}

// Handle takes one reply.
func (h *jobResultHandler) Handle(ctx context.Context, m queue.Message) (func(context.Context) error, error) {
	e := decodeJobEnvelope(m, h.Now())
	outcome, err := h.take(ctx, e)
	if invalid, ok := errors.AsType[*artifact.InvalidError](err); ok {
		outcome, err = jobQuarantined, h.refuse(ctx, e, invalid)
	}
	if err != nil {
		return nil, jobFault(err)
	}
	h.mu.Lock()
	h.outcomes[outcome]++
	h.mu.Unlock()
	h.Metrics.count(outcome, h.Now().Sub(e.receivedAt()))
	return nil, nil
}

func (h *jobResultHandler) totals() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.outcomes)
}

// jobFault tells outages from failures of one reply, so that nothing becomes
// poison while a service is out.
func jobFault(err error) error {
	if errors.Is(err, context.Canceled) || awsconf.IsRequestFault(err) {
		return err
	}
	return fmt.Errorf("%w: %w", queue.ErrOutage, err)
}

func (j JobResults) at(step JobStep) error {
	if j.At == nil {
		return nil
	}
	return j.At(step)
}

// take does all that a reply is for. It may happen again at any point: the first
// reply of a run is the one that counts, and the lifecycle is told the same again.
func (j JobResults) take(ctx context.Context, e jobEnvelope) (string, error) {
	reply, err := artifact.ParseJobReply(e.Topic, e.Body, j.Now())
	if err != nil {
		return "", err
	}
	owner, run, err := j.runOf(ctx, reply)
	if err != nil {
		return "", err
	}
	outcome := jobDuplicate
	if run.Status == storage.Running {
		outcome = jobFinished
		if run, err = j.finish(ctx, owner, run, reply); err != nil {
			return "", err
		}
	}
	if run.Status != storage.Succeeded && run.Status != storage.RunFailed {
		// Nobody waits for it any more: what it says is kept beside its reason.
		return jobLate, j.refuse(ctx, e, &artifact.InvalidError{Field: "run_id", Rule: fmt.Sprintf("had been given up as %s", run.Status)})
	}
	return outcome, j.tell(ctx, owner, run)
}

// runOf finds the run that a reply is about, as it was sent to that factory.
func (j JobResults) runOf(ctx context.Context, reply artifact.JobReply) (storage.RunOwner, storage.Run, error) {
	owner, found, err := j.Store.RunOwner(ctx, reply.RunID)
	switch {
	case err != nil:
		return storage.RunOwner{}, storage.Run{}, err
	case !found:
		return storage.RunOwner{}, storage.Run{}, &artifact.InvalidError{Field: "run_id", Rule: "names no run that was sent to a device"}
	case owner.FactoryID != reply.FactoryID:
		return storage.RunOwner{}, storage.Run{}, &artifact.InvalidError{Field: "factory_id", Rule: "must be that of the factory that the job was sent to"}
	}
	run, err := j.Store.Run(ctx, owner.ArtifactID, reply.RunID)
	if errors.Is(err, storage.ErrNotFound) {
		err = &artifact.InvalidError{Field: "run_id", Rule: "names a run that never began"}
	}
	return owner, run.Run, err
}

// finish keeps what the device said and finishes the run, unless somebody else
// did meanwhile; it gives the run as it stands then. finished_at is by the
// device's clock, as in its telemetry.
func (j JobResults) finish(ctx context.Context, owner storage.RunOwner, run storage.Run, reply artifact.JobReply) (storage.Run, error) {
	run.Status, run.ExitCode, run.Detail, run.Truncated = storage.RunFailed, reply.ExitCode, reply.Detail, reply.Truncated
	if reply.Status == artifact.JobSucceeded {
		run.Status = storage.Succeeded
	}
	run.FinishedAt, run.DurationMS = &reply.FinishedAt, reply.FinishedAt.Sub(reply.StartedAt).Milliseconds()
	if err := j.Store.KeepOutput(ctx, &run, strings.NewReader(reply.Stdout), strings.NewReader(reply.Stderr)); err != nil {
		return storage.Run{}, err
	}
	if err := j.at(JobStepKept); err != nil {
		return storage.Run{}, err
	}
	err := j.Store.Finish(ctx, owner.ArtifactID, run)
	if errors.Is(err, storage.ErrConflict) {
		current, err := j.Store.Run(ctx, owner.ArtifactID, run.RunID)
		return current.Run, err
	}
	return run, errors.Join(err, j.at(JobStepFinished))
}

// tell signals the lifecycle. One that has ended waits for nothing.
func (j JobResults) tell(ctx context.Context, owner storage.RunOwner, run storage.Run) error {
	result := workflows.JobResult{
		RunID: run.RunID, FactoryID: owner.FactoryID, Status: string(run.Status), ExitCode: run.ExitCode, Detail: run.Detail,
	}
	if run.FinishedAt != nil {
		result.FinishedAt = *run.FinishedAt
	}
	err := j.Temporal.SignalWorkflow(ctx, owner.WorkflowID, "", workflows.JobResultSignal, result)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("signal %s: %w", owner.WorkflowID, err)
	}
	return j.at(JobStepSignalled)
}
