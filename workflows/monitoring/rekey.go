package monitoring

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/monitoring"
)

// RekeyStatusQuery is the query that a running RekeyTokens answers with its
// RekeyReport.
const RekeyStatusQuery = "status"

const (
	// rekeyPages is how many pages of 100 tokens one activity works through: some
	// seconds' work, so that progress shows.
	rekeyPages = 10
	// maxPasses bounds how often the index is read from its beginning. It lags
	// behind the table for less than a second; each pass but the last follows a
	// pause of passPause.
	maxPasses = 5
	passPause = 3 * time.Second
	// maxBroken is how many tokens with a broken copy the report names.
	maxBroken = 20
)

// rekeyOptions: a stretch of a thousand conditional transactions takes ten
// seconds or so, a throttled table ten times that. A heartbeat follows every token.
var rekeyOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 10 * time.Minute,
	HeartbeatTimeout:    15 * time.Second,
	RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
}

// RekeyInput starts a RekeyTokens; Carry is only for its own continuation.
type RekeyInput struct {
	// KeyID is the older key, whose saved copies are sealed under the current one.
	KeyID string      `json:"key_id"`
	Carry *RekeyCarry `json:"carry,omitempty"`
}

// RekeyCarry is what a RekeyTokens carries from run to run.
type RekeyCarry struct {
	Report RekeyReport `json:"report"`
	Cursor string      `json:"cursor,omitempty"`
	// Pass is what the current pass over the index did.
	Pass RekeyCounts `json:"pass"`
}

// RekeyReport tells how far the work is, and at its end what was done.
type RekeyReport struct {
	KeyID        string      `json:"key_id"`
	CurrentKeyID string      `json:"current_key_id,omitempty"`
	Passes       int         `json:"passes"`
	Counts       RekeyCounts `json:"counts"`
	// Broken are some tokens whose copy does not open.
	Broken []string `json:"broken,omitempty"`
	Done   bool     `json:"done"`
	// Clean tells that the last pass found no copy under the old key, other than
	// broken ones: the key may leave the ring.
	Clean bool `json:"clean"`
}

type rekey struct {
	carry RekeyCarry
}

// RekeyTokens seals every saved copy of a token under an older key again under
// the current one. It passes over the index until a pass finds nothing to do.
func RekeyTokens(ctx workflow.Context, in RekeyInput) (RekeyReport, error) {
	r, err := startRekey(ctx, in)
	if err != nil {
		return RekeyReport{}, err
	}
	if err := workflow.SetQueryHandler(ctx, RekeyStatusQuery, func() (RekeyReport, error) { return r.carry.Report, nil }); err != nil {
		return RekeyReport{}, err
	}
	return r.run(ctx)
}

func startRekey(ctx workflow.Context, in RekeyInput) (*rekey, error) {
	if err := monitoring.CheckKeyID(in.KeyID); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "InvalidInput", err)
	}
	if in.Carry == nil {
		return &rekey{carry: RekeyCarry{Report: RekeyReport{KeyID: in.KeyID, Passes: 1}}}, nil
	}
	if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
		return nil, temporal.NewNonRetryableApplicationError("carry is only for a continued run", "InvalidInput", nil)
	}
	return &rekey{carry: *in.Carry}, nil
}

func (r *rekey) run(ctx workflow.Context) (RekeyReport, error) {
	batches := workflow.WithActivityOptions(ctx, rekeyOptions)
	for {
		passDone, err := r.batch(batches)
		if err != nil {
			return r.carry.Report, err
		}
		workflow.SetCurrentDetails(ctx, r.details())
		if passDone && r.finishPass() {
			break
		}
		if passDone {
			if err := workflow.Sleep(ctx, passPause); err != nil {
				return r.carry.Report, err
			}
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return r.carry.Report, workflow.NewContinueAsNewError(ctx, RekeyTokens, RekeyInput{KeyID: r.carry.Report.KeyID, Carry: &r.carry})
		}
	}
	workflow.SetCurrentDetails(ctx, r.details())
	return r.carry.Report, nil
}

// batch works through one stretch and tells whether it was the last of the pass.
func (r *rekey) batch(ctx workflow.Context) (bool, error) {
	report := &r.carry.Report
	var result RekeyBatchResult
	err := workflow.ExecuteActivity(ctx, RekeyBatchActivity, RekeyBatch{KeyID: report.KeyID, Cursor: r.carry.Cursor, Pages: rekeyPages}).Get(ctx, &result)
	if err != nil {
		return false, fmt.Errorf("seal tokens under key %s again: %w", report.KeyID, err)
	}
	report.CurrentKeyID = result.CurrentKeyID
	report.Counts.Add(result.Counts)
	r.carry.Pass.Add(result.Counts)
	for _, id := range result.Broken {
		if len(report.Broken) < maxBroken && !slices.Contains(report.Broken, id) {
			report.Broken = append(report.Broken, id)
		}
	}
	r.carry.Cursor = result.Cursor
	return r.carry.Cursor == "", nil
}

// finishPass tells whether the work is done: the pass found nothing but broken
// copies, or it was the last one allowed. The counts are of tokens: what a pass
// meets again counts once.
func (r *rekey) finishPass() bool {
	report := &r.carry.Report
	pass := r.carry.Pass
	report.Clean = pass.Seen == pass.Broken
	report.Done = report.Clean || report.Passes == maxPasses
	if !report.Done {
		report.Counts.Seen -= pass.Broken
		report.Counts.Broken -= pass.Broken
		report.Passes++
		r.carry.Pass = RekeyCounts{}
	}
	return report.Done
}

// details is the work as a Markdown table for the Temporal UI.
func (r *rekey) details() string {
	report := r.carry.Report
	return strings.Join([]string{
		"| key | current key | pass | seen | sealed | overtaken | broken |",
		"|---|---|---|---|---|---|---|",
		fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d |", report.KeyID, report.CurrentKeyID, report.Passes,
			report.Counts.Seen, report.Counts.Sealed, report.Counts.Overtaken, report.Counts.Broken),
	}, "\n")
}
