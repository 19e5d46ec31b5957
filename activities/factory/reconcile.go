package factory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"millrace/domain/factory"
	"millrace/platform/queue"
	storage "millrace/storage/factory"
	"millrace/storage/objects"
	workflows "millrace/workflows/factory"
)

// Reconciler finds raw objects that were never processed and enqueues them
// again.
type Reconciler struct {
	Store      storage.Store
	Telemetry  queue.Queue
	FactoryIDs []string
	// OldestAge tells how old the oldest message of the telemetry queue is, as
	// CloudWatch's ApproximateAgeOfOldestMessage does, and whether that is known.
	// Nil where there is no CloudWatch.
	OldestAge func(context.Context) (age time.Duration, known bool, err error)
	Now       func() time.Time
	// Pause is the time between two looks at a queue that is not empty; 3 s where 0.
	Pause time.Duration
	// At, where set, is called after every step; an error ends the work there.
	At     func(Step) error
	Logger *slog.Logger
}

// settleTime is how long a message may take from the queue to its processed
// object: redeliveries after an outage included.
const settleTime = 15 * time.Minute

// Steps of a reconciliation.
const (
	StepListed     Step = "raw objects listed"
	StepCompared   Step = "raw objects compared"
	StepReenqueued Step = "raw objects enqueued"
)

// PlanReconcile says which factories and which time a run looks at. While the
// queue holds messages of unknown age there is no cut-off, and the run is
// skipped.
func (r Reconciler) PlanReconcile(ctx context.Context, req workflows.ReconcileRequest) (workflows.ReconcilePlan, error) {
	now := r.Now().UTC()
	plan := workflows.ReconcilePlan{From: now.Add(-time.Duration(req.WindowHours) * time.Hour), Complete: req.Complete}
	age, skipped, err := r.backlogAge(ctx)
	if err != nil {
		return plan, err
	}
	settle := cmp.Or(time.Duration(req.SettleSeconds)*time.Second, settleTime)
	plan.Before, plan.Skipped = now.Add(-age-settle), skipped
	if skipped != "" {
		r.Logger.Warn("reconciliation skipped", "reason", skipped)
		return plan, nil
	}
	plan.FactoryIDs, err = r.factories(ctx)
	return plan, err
}

func (r Reconciler) backlogAge(ctx context.Context) (age time.Duration, skipped string, err error) {
	if r.OldestAge != nil {
		age, known, err := r.OldestAge(ctx)
		if err != nil || known {
			return age, "", err
		}
	}
	waiting, err := r.waiting(ctx)
	if err != nil || waiting == 0 {
		return 0, "", err
	}
	return 0, fmt.Sprintf("the queue holds %d messages of unknown age", waiting), nil
}

const (
	// looks and lookPause give a queue half a minute to be empty for a moment: one
	// that keeps up is, between two messages.
	looks     = 10
	lookPause = 3 * time.Second
)

// waiting is how many messages the queue holds; 0 when it was seen empty once.
func (r Reconciler) waiting(ctx context.Context) (int64, error) {
	for look := 1; ; look++ {
		depth, err := r.Telemetry.Depth(ctx)
		waiting := depth.Visible + depth.InFlight
		if err != nil || waiting == 0 || look == looks {
			return waiting, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(cmp.Or(r.Pause, lookPause)):
		}
	}
}

// factories are those that are watched and those that ever sent anything.
func (r Reconciler) factories(ctx context.Context) ([]string, error) {
	prefixes, _, err := r.Store.Bucket.Children(ctx, rawRoot, "/")
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(r.FactoryIDs)
	for _, prefix := range prefixes {
		ids = append(ids, strings.TrimSuffix(strings.TrimPrefix(prefix, rawRoot), "/"))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

const rawRoot = "raw/"

// reconcileProgress is what a heartbeat carries: the scopes that are done.
type reconcileProgress struct {
	Scopes int                       `json:"scopes"`
	Counts workflows.ReconcileCounts `json:"counts"`
}

// scope is one listing of raw objects: a source type on a UTC day of receipt.
type scope struct {
	source string
	day    time.Time
}

// ReconcileFactory enqueues the raw objects of one factory that were never
// processed. A retry goes on with the scope in which the last attempt ended; what
// it enqueues twice is a duplicate to the consumer.
func (r Reconciler) ReconcileFactory(ctx context.Context, req workflows.ReconcileFactoryRequest) (workflows.ReconcileCounts, error) {
	var done reconcileProgress
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &done); err != nil {
			done = reconcileProgress{}
		}
	}
	scopes, err := r.scopes(ctx, req)
	if err != nil {
		return done.Counts, err
	}
	for ; done.Scopes < len(scopes); done.Scopes++ {
		activity.RecordHeartbeat(ctx, done)
		run := newReconcileRun(r, req, func() { activity.RecordHeartbeat(ctx, done) })
		if err := run.scope(ctx, scopes[done.Scopes]); err != nil {
			return done.Counts, final(fmt.Errorf("reconcile %s: %w", req.FactoryID, err))
		}
		done.Counts.Add(run.settled())
	}
	return done.Counts, nil
}

// scopes are every source type that a factory sent, known or not, on the days
// of receipt from the window's start to the cut-off.
func (r Reconciler) scopes(ctx context.Context, req workflows.ReconcileFactoryRequest) ([]scope, error) {
	root := rawRoot + req.FactoryID + "/"
	prefixes, _, err := r.Store.Bucket.Children(ctx, root, "/")
	if err != nil {
		return nil, err
	}
	var scopes []scope
	for _, prefix := range prefixes {
		source := strings.TrimSuffix(strings.TrimPrefix(prefix, root), "/")
		for day := dayOf(req.From); !day.After(dayOf(req.Before)); day = day.AddDate(0, 0, 1) {
			scopes = append(scopes, scope{source, day})
		}
	}
	return scopes, nil
}

func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// reconcileRun is the work on one scope.
type reconcileRun struct {
	Reconciler
	request workflows.ReconcileFactoryRequest
	bucket  objects.Bucket
	lists   *listCounter
	counts  workflows.ReconcileCounts
}

func newReconcileRun(r Reconciler, req workflows.ReconcileFactoryRequest, beat func()) *reconcileRun {
	lists := &listCounter{API: r.Store.Bucket.Client, onList: beat}
	return &reconcileRun{Reconciler: r, request: req, lists: lists, bucket: objects.Bucket{Client: lists, Name: r.Store.Bucket.Name}}
}

func (r *reconcileRun) settled() workflows.ReconcileCounts {
	r.counts.Lists = r.lists.n
	return r.counts
}

func (r *reconcileRun) at(step Step) error {
	if r.At == nil {
		return nil
	}
	return r.At(step)
}

func (r *reconcileRun) scope(ctx context.Context, s scope) error {
	candidates, err := r.candidates(ctx, s)
	if err != nil || len(candidates) == 0 {
		return err
	}
	r.counts.Looked += int64(len(candidates))
	if err := r.at(StepListed); err != nil {
		return err
	}
	missing, err := r.unprocessed(ctx, s, candidates)
	if err != nil || len(missing) == 0 {
		return err
	}
	if missing, err = r.unrefused(ctx, s, missing); err != nil {
		return err
	}
	if err := r.at(StepCompared); err != nil {
		return err
	}
	return r.enqueueAll(ctx, s, missing)
}

// enqueueAll reads and enqueues what is missing, ten at a time.
func (r *reconcileRun) enqueueAll(ctx context.Context, s scope, missing []rawObject) error {
	batch := make([]string, 0, queue.MaxBatch)
	for i, raw := range missing {
		message, err := r.message(ctx, s, raw)
		if err != nil {
			return err
		}
		if message != "" {
			batch = append(batch, message)
		}
		if len(batch) == queue.MaxBatch || i == len(missing)-1 {
			if err := r.send(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

func (r *reconcileRun) send(ctx context.Context, batch []string) error {
	if len(batch) == 0 {
		return nil
	}
	if err := r.Telemetry.Send(ctx, batch); err != nil {
		return err
	}
	r.counts.Enqueued += int64(len(batch))
	r.lists.onList()
	return r.at(StepReenqueued)
}

// message is the queue message of a raw object; it is empty when the object
// turns out to be processed, or can be no message at all.
func (r *reconcileRun) message(ctx context.Context, s scope, raw rawObject) (string, error) {
	body, err := r.bucket.Get(ctx, raw.Key, factory.MaxBody)
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return "", nil
	case isUnreadable(err):
		r.counts.Unreadable++
		r.Logger.Error("raw object can't be enqueued", "key", raw.Key, "error", err)
		return "", nil
	case err != nil:
		return "", err
	}
	done, err := r.processedElsewhere(ctx, raw, body)
	if err != nil || done {
		return "", err
	}
	message, err := factory.EncodeJSON(rawEnvelope(r.request.FactoryID, s.source, raw, body))
	return string(message), err
}

// isUnreadable tells that a raw object is damaged or larger than any message.
func isUnreadable(err error) bool {
	var damaged *objects.IntegrityError
	return errors.Is(err, objects.ErrTooLarge) || errors.As(err, &damaged)
}

// processedElsewhere looks for the processed object under the source time that
// the body has, where it is not the one that the key says.
func (r *reconcileRun) processedElsewhere(ctx context.Context, raw rawObject, body []byte) (bool, error) {
	m, err := factory.ParseMessage(body, raw.LastModified)
	if err != nil {
		// It has no processed object, and the consumer refuses it.
		return false, nil //nolint:nilerr // the refusal is the consumer's
	}
	if m.MessageID == raw.leaf && m.SourceTimestamp.Truncate(time.Hour).Equal(raw.sourceAt.Truncate(time.Hour)) {
		return false, nil
	}
	done, err := r.bucket.Exists(ctx, processedKey(m))
	if done {
		r.counts.Processed++
	}
	return done, err
}

// rawEnvelope is the queue message of a raw object, as the rule engine would
// send it.
func rawEnvelope(factoryID, source string, raw rawObject, body []byte) Envelope {
	return Envelope{
		Body: body, Topic: "aegis/" + factoryID + "/" + source,
		ReceivedAt: raw.LastModified.UnixMilli(), TraceID: raw.leaf, RawKey: raw.Key,
	}
}

// listCounter counts LIST requests and tells of each.
type listCounter struct {
	objects.API
	onList func()
	n      int64
}
