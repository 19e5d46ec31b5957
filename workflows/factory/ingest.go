package factory

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// DrainStretch is how long one drain activity takes messages. A workflow never
// runs per message: one activity drains thousands of them.
const DrainStretch = 5 * time.Minute

// drainOptions leave a minute for finishing what is held. The heartbeat comes
// every 15 s from its own goroutine, so two missed ones mean a dead worker: another
// goes on well before factories look stale (60 s).
// An outage is dealt with inside the activity; what ends it early is retried for
// as long as the consumer is meant to run.
var drainOptions = workflow.ActivityOptions{
	StartToCloseTimeout: DrainStretch + time.Minute,
	HeartbeatTimeout:    30 * time.Second,
	WaitForCancellation: true,
	RetryPolicy: &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
	},
}

// IngestInput starts a consumer; Carry is only for its own continuation.
type IngestInput struct {
	Request DrainRequest `json:"request"`
	Carry   *IngestCarry `json:"carry,omitempty"`
}

// IngestCarry is what a consumer carries from run to run.
type IngestCarry struct {
	Runs     int64            `json:"runs"`
	Received int64            `json:"received"`
	Deleted  int64            `json:"deleted"`
	Outcomes map[string]int64 `json:"outcomes,omitempty"`
}

// IngestStatus is the answer to the query "status".
type IngestStatus struct {
	Consumer int          `json:"consumer"`
	Totals   IngestCarry  `json:"totals"`
	Last     *DrainResult `json:"last,omitempty"`
}

// StatusQuery is the query that every long-running workflow answers.
const StatusQuery = "status"

// TelemetryIngest is one interchangeable consumer of the telemetry queue. It
// runs one drain after the other, each in a run of its own.
func TelemetryIngest(ctx workflow.Context, in IngestInput) error {
	return runDrain(ctx, in, DrainTelemetryActivity, TelemetryIngest)
}

// RuleErrorDrain takes messages whose IoT rule failed, stores their originals
// and puts them into the telemetry queue.
func RuleErrorDrain(ctx workflow.Context, in IngestInput) error {
	return runDrain(ctx, in, DrainRuleErrorsActivity, RuleErrorDrain)
}

func runDrain(ctx workflow.Context, in IngestInput, activity string, self any) error {
	status, err := startDrain(ctx, in)
	if err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (IngestStatus, error) { return *status, nil }); err != nil {
		return err
	}
	var result DrainResult
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, drainOptions), activity, in.Request).Get(ctx, &result)
	if err != nil {
		return err
	}
	status.add(result)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return workflow.NewContinueAsNewError(ctx, self, IngestInput{Request: in.Request, Carry: &status.Totals})
}

func startDrain(ctx workflow.Context, in IngestInput) (*IngestStatus, error) {
	status := &IngestStatus{Consumer: in.Request.Consumer}
	if in.Carry == nil {
		return status, nil
	}
	if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
		return nil, temporal.NewNonRetryableApplicationError("carry is only for a continued run", "InvalidInput", nil)
	}
	status.Totals = *in.Carry
	return status, nil
}

func (s *IngestStatus) add(result DrainResult) {
	s.Last = &result
	s.Totals.Runs++
	s.Totals.Received += result.Received
	s.Totals.Deleted += result.Deleted
	if s.Totals.Outcomes == nil {
		s.Totals.Outcomes = make(map[string]int64, len(result.Outcomes))
	}
	for _, outcome := range workflow.DeterministicKeys(result.Outcomes) {
		s.Totals.Outcomes[outcome] += result.Outcomes[outcome]
	}
}
