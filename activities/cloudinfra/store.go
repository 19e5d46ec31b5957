package cloudinfra

import (
	"context"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	"millrace/platform/awsconf"
	workflows "millrace/workflows/cloudinfra"
)

// StoreFast judges what a fast run measured and stores it.
func (c Collector) StoreFast(ctx context.Context, req workflows.StoreFastRequest) (workflows.Result, error) {
	fast := cloudinfra.EvaluateFast(req.Report, c.Rules)
	return c.store(ctx, cloudinfra.Half{At: req.UpdatedAt, Fast: &fast}, req.Writes, fast.Errors)
}

// StoreSlow judges what a slow run measured and stores it.
func (c Collector) StoreSlow(ctx context.Context, req workflows.StoreSlowRequest) (workflows.Result, error) {
	slow := cloudinfra.EvaluateSlow(req.Report, c.Rules, req.UpdatedAt.Time)
	return c.store(ctx, cloudinfra.Half{At: req.UpdatedAt, Slow: &slow}, req.Writes, slow.Errors)
}

// store writes the table, shows the snapshot to the observer, then writes the
// object: a bucket that is down must not keep alerts from people. A repeat after
// a kill in between finds its own history item and does what is left; the object
// is the same, and an alert of the same snapshot counts once.
func (c Collector) store(ctx context.Context, half cloudinfra.Half, writes workflows.Writes, errors []cloudinfra.Error) (workflows.Result, error) {
	result := workflows.Result{Status: workflows.StatusMeasured, UpdatedAt: &half.At, Errors: errors}
	if !writes.ToTable() {
		result.OverallStatus = cloudinfra.Latest{}.With(half).OverallStatus
		return result, nil
	}
	history, outcome, err := c.Store.Commit(ctx, half, c.Now())
	if err != nil {
		return workflows.Result{}, storeError(err)
	}
	if result.Status = outcome; history == nil {
		c.Logger.WarnContext(ctx, "a later run was stored before", "track", half.Track(), "updated_at", half.At.String())
		return result, nil
	}
	result.OverallStatus, result.DynamoDBSK = history.OverallStatus, history.SK
	key := history.SnapshotType.SnapshotKey(history.UpdatedAt)
	c.observe(ctx, *history, key)
	if writes.ToBucket() {
		if err := c.Store.PutSnapshot(ctx, *history); err != nil {
			return workflows.Result{}, storeError(err)
		}
		result.S3Key = key
	}
	return result, nil
}

// storeError keeps trying whatever the store says, but for a request that it
// will never take.
func storeError(err error) error {
	if awsconf.IsRequestFault(err) {
		return temporal.NewNonRetryableApplicationError("store snapshot: "+err.Error(), "InvalidInput", err)
	}
	return err
}

func (c Collector) observe(ctx context.Context, history cloudinfra.History, key string) {
	if c.Observer == nil {
		return
	}
	observe := c.Observer.ObserveSlow
	if history.SnapshotType == cloudinfra.TrackFast {
		observe = c.Observer.ObserveFast
	}
	body, err := factory.EncodeJSON(history.Snapshot())
	if err == nil {
		err = observe(ctx, body, key)
	}
	if err != nil {
		c.Logger.WarnContext(ctx, "alerts not signalled, the next run does", "track", history.SnapshotType, "error", err)
	}
}
