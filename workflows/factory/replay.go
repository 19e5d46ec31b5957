package factory

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/factory"
)

const (
	// replayChunk is how many messages one activity replays: about a minute's
	// work on AWS, so that progress shows and little is repeated after a kill.
	replayChunk = 2000
	// defaultLateDays covers an outbox that waited for a week.
	defaultLateDays = 7
	maxLateDays     = 60
	// maxReplayDays keeps one replay to a year; more is several replays.
	maxReplayDays = 366
)

// replayOptions: a chunk takes about a minute; a throttled table or bucket may
// take ten times that. A heartbeat follows every batch of some dozen messages.
var replayOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 30 * time.Minute,
	HeartbeatTimeout:    time.Minute,
	RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
}

// restoreOptions: one read and at most five conditional writes.
var restoreOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 30 * time.Second,
	RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
}

// ReplayInput starts a replay; Carry is only for its own continuation.
type ReplayInput struct {
	Request ReplayRequest `json:"request"`
	Carry   *ReplayCarry  `json:"carry,omitempty"`
}

// ReplayCarry is what a replay carries from run to run.
type ReplayCarry struct {
	StartedAt time.Time       `json:"started_at"`
	Day       time.Time       `json:"day"`
	After     ReplayPosition  `json:"after"`
	State     *factory.Latest `json:"state,omitempty"`
	Counts    ReplayCounts    `json:"counts"`
}

// ReplayStatus is the answer to the query "status", and the replay's result.
type ReplayStatus struct {
	Request ReplayRequest `json:"request"`
	// Day is the UTC day of receipt that is being replayed, LastDay the last one.
	Day     time.Time `json:"day"`
	LastDay time.Time `json:"last_day"`
	// Position is the receipt of the last message replayed.
	Position time.Time    `json:"position,omitzero"`
	Counts   ReplayCounts `json:"counts"`
	Done     bool         `json:"done"`
}

// replay is the state of the workflow.
type replay struct {
	request ReplayRequest
	lastDay time.Time
	carry   ReplayCarry
	done    bool
}

// RawReplay builds the processed objects, the history within its TTL and the
// current state of a factory again from raw/. It goes through the messages in
// the order of their receipt, as ingest did, so that what was late is late
// again; twice leaves the same items as once.
func RawReplay(ctx workflow.Context, in ReplayInput) (ReplayStatus, error) {
	r, err := startReplay(ctx, in)
	if err != nil {
		return ReplayStatus{}, err
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (ReplayStatus, error) { return r.status(), nil }); err != nil {
		return ReplayStatus{}, err
	}
	return r.run(ctx)
}

func startReplay(ctx workflow.Context, in ReplayInput) (*replay, error) {
	r := &replay{request: in.Request}
	if err := r.request.settle(); err != nil {
		return nil, refusal(err)
	}
	if in.Carry != nil {
		if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
			return nil, refusal(errors.New("carry is only for a continued run"))
		}
		r.carry = *in.Carry
	} else {
		// A device's clock may run ahead, so that a message is received on the day
		// before its source time; and the state needs a few messages to warm up.
		r.carry = ReplayCarry{StartedAt: workflow.Now(ctx).UTC(), Day: dayOf(r.request.From).AddDate(0, 0, -1)}
	}
	r.lastDay = dayOf(r.request.To).AddDate(0, 0, r.request.LateDays)
	if today := dayOf(r.carry.StartedAt); r.lastDay.After(today) {
		r.lastDay = today
	}
	return r, nil
}

// settle checks the request, in UTC, and fills in its defaults.
func (r *ReplayRequest) settle() error {
	if err := factory.CheckFactoryID(r.FactoryID); err != nil {
		return err
	}
	r.From, r.To = r.From.UTC(), r.To.UTC()
	switch {
	case r.From.IsZero() || r.To.IsZero():
		return errors.New("from, to: are required")
	case !r.From.Before(r.To):
		return errors.New("to: must be after from")
	case r.To.Sub(r.From) > maxReplayDays*24*time.Hour:
		return fmt.Errorf("to: must be at most %d days after from", maxReplayDays)
	case r.LateDays < 0 || r.LateDays > maxLateDays:
		return fmt.Errorf("late_days: must be 0 to %d", maxLateDays)
	case r.LateDays == 0:
		r.LateDays = defaultLateDays
	}
	return nil
}

// Check refuses a request that can't be replayed, naming the field and the rule.
func (r ReplayRequest) Check() error { return r.settle() }

func (r *replay) run(ctx workflow.Context) (ReplayStatus, error) {
	chunks := workflow.WithActivityOptions(ctx, replayOptions)
	for !r.carry.Day.After(r.lastDay) {
		if err := r.chunk(chunks); err != nil {
			return r.status(), err
		}
		workflow.SetCurrentDetails(ctx, r.details())
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return r.status(), workflow.NewContinueAsNewError(ctx, RawReplay, ReplayInput{Request: r.request, Carry: &r.carry})
		}
	}
	if err := r.restore(workflow.WithActivityOptions(ctx, restoreOptions)); err != nil {
		return r.status(), err
	}
	r.done = true
	workflow.SetCurrentDetails(ctx, r.details())
	return r.status(), nil
}

// chunk replays one stretch and moves on.
func (r *replay) chunk(ctx workflow.Context) error {
	var result ReplayChunkResult
	err := workflow.ExecuteActivity(ctx, ReplayRawActivity, ReplayChunk{
		Request: r.request, StartedAt: r.carry.StartedAt, Day: r.carry.Day, After: r.carry.After, State: r.carry.State, Limit: replayChunk,
	}).Get(ctx, &result)
	if err != nil {
		return fmt.Errorf("replay messages received on %s: %w", r.carry.Day.Format(time.DateOnly), err)
	}
	r.carry.Counts.Add(result.Counts)
	r.carry.After, r.carry.State = result.After, result.State
	if result.DayDone {
		r.carry.Day, r.carry.After = r.carry.Day.AddDate(0, 0, 1), ReplayPosition{}
	}
	return nil
}

func (r *replay) restore(ctx workflow.Context) error {
	if r.carry.State == nil {
		return nil
	}
	var result RestoreResult
	err := workflow.ExecuteActivity(ctx, RestoreLatestStateActivity, RestoreRequest{State: *r.carry.State, DryRun: r.request.DryRun}).Get(ctx, &result)
	if err != nil {
		return fmt.Errorf("restore the current state: %w", err)
	}
	if result.Restored {
		r.carry.Counts.Latest = 1
	}
	return nil
}

func (r *replay) status() ReplayStatus {
	return ReplayStatus{
		Request: r.request, Day: r.carry.Day, LastDay: r.lastDay, Position: r.carry.After.ReceivedAt, Counts: r.carry.Counts, Done: r.done,
	}
}

// details is the replay as a Markdown table for the Temporal UI.
func (r *replay) details() string {
	c := r.carry.Counts
	return strings.Join([]string{
		"| received on | messages | processed | overwritten | history | late | quarantined |",
		"|---|---|---|---|---|---|---|",
		fmt.Sprintf("| %s of %s | %d | %d | %d | %d | %d | %d |", r.carry.Day.Format(time.DateOnly), r.lastDay.Format(time.DateOnly),
			c.Messages, c.Processed, c.Overwritten, c.History, c.Late, c.Quarantined),
	}, "\n")
}

func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
