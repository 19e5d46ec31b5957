package factory

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/workflows/schedule"
)

const (
	// hourlyWindow overlaps two hourly runs, so that one may fail.
	hourlyWindow = 3
	// completeWindow overlaps two daily complete runs by two hours.
	completeWindow = 26
	// maxWindow bounds what a run can be asked for; older objects are a replay's.
	maxWindow = 14 * 24
	maxSettle = 24 * 60 * 60
)

// planOptions: a few requests to S3, SQS and CloudWatch. A run whose plan fails
// for ten minutes ends; the next hour has another.
var planOptions = workflow.ActivityOptions{
	StartToCloseTimeout:    time.Minute,
	ScheduleToCloseTimeout: 10 * time.Minute,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
}

// reconcileOptions: a complete run lists some ten thousand objects in seconds,
// a flood's in minutes; a heartbeat comes with every page of a listing.
var reconcileOptions = workflow.ActivityOptions{
	StartToCloseTimeout:    30 * time.Minute,
	ScheduleToCloseTimeout: 55 * time.Minute,
	HeartbeatTimeout:       time.Minute,
	RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
}

// ReconcileResult is what a run did, for all factories together.
type ReconcileResult struct {
	Plan   ReconcilePlan   `json:"plan"`
	Counts ReconcileCounts `json:"counts"`
}

// RawReconcile finds raw objects that have neither a processed object nor a
// quarantine marker and enqueues them again; it never processes any itself. The
// run of the first hour of a UTC day is a complete one.
func RawReconcile(ctx workflow.Context, req ReconcileRequest) (ReconcileResult, error) {
	var result ReconcileResult
	req, err := settleWindow(ctx, req)
	if err != nil {
		return result, err
	}
	if err := workflow.SetQueryHandler(ctx, StatusQuery, func() (ReconcileResult, error) { return result, nil }); err != nil {
		return result, err
	}
	if err := planReconcile(ctx, req, &result); err != nil || result.Plan.Skipped != "" {
		return result, err
	}
	ctx = workflow.WithActivityOptions(ctx, reconcileOptions)
	for _, id := range result.Plan.FactoryIDs {
		var counts ReconcileCounts
		err := workflow.ExecuteActivity(ctx, ReconcileFactoryActivity, ReconcileFactoryRequest{
			FactoryID: id, From: result.Plan.From, Before: result.Plan.Before, Complete: result.Plan.Complete,
		}).Get(ctx, &counts)
		if err != nil {
			return result, fmt.Errorf("reconcile %s: %w", id, err)
		}
		result.Counts.Add(counts)
		workflow.SetCurrentDetails(ctx, result.details())
	}
	return result, nil
}

// A run that finds the queue busy looks again later, within the hour: what a
// fault lost is to be back in minutes.
const (
	planAttempts = 8
	planPause    = 5 * time.Minute
)

func planReconcile(ctx workflow.Context, req ReconcileRequest, result *ReconcileResult) error {
	options := workflow.WithActivityOptions(ctx, planOptions)
	for attempt := 1; ; attempt++ {
		var plan ReconcilePlan
		err := workflow.ExecuteActivity(options, PlanReconcileActivity, req).Get(ctx, &plan)
		result.Plan = plan
		workflow.SetCurrentDetails(ctx, result.details())
		if err != nil || plan.Skipped == "" || attempt == planAttempts {
			return err
		}
		if err := workflow.Sleep(ctx, planPause); err != nil {
			return err
		}
	}
}

// settleWindow fills in the window and refuses one that can't be.
func settleWindow(ctx workflow.Context, req ReconcileRequest) (ReconcileRequest, error) {
	if req.WindowHours < 0 || req.WindowHours > maxWindow {
		return req, refusal(fmt.Errorf("window_hours: must be 1 to %d", maxWindow))
	}
	if req.SettleSeconds < 0 || req.SettleSeconds > maxSettle {
		return req, refusal(fmt.Errorf("settle_seconds: must be 1 to %d", maxSettle))
	}
	if req.WindowHours > 0 {
		return req, nil
	}
	req.Complete = req.Complete || schedule.Time(ctx).Hour() == 0
	req.WindowHours = hourlyWindow
	if req.Complete {
		req.WindowHours = completeWindow
	}
	return req, nil
}

// details is the run as a Markdown table for the Temporal UI.
func (r ReconcileResult) details() string {
	if r.Plan.Skipped != "" {
		return "Skipped: " + r.Plan.Skipped
	}
	return strings.Join([]string{
		"| factories | looked at | processed | quarantined | enqueued | unreadable | LIST requests |",
		"|---|---|---|---|---|---|---|",
		fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d |", len(r.Plan.FactoryIDs), r.Counts.Looked, r.Counts.Processed,
			r.Counts.Quarantined, r.Counts.Enqueued, r.Counts.Unreadable, r.Counts.Lists),
	}, "\n")
}
