package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/sync/errgroup"

	"millrace/domain/report"
	"millrace/storage/objects"
	workflows "millrace/workflows/report"
)

// MergeDay merges the stored hours of a target's day, and stores the day and the
// context of its report. An hour without a summary counts as missing.
func (a Aggregator) MergeDay(ctx context.Context, req workflows.DayRequest) (workflows.DayResult, error) {
	defer beating(ctx)()
	result, err := a.merge(ctx, req)
	return result, failure(err)
}

func (a Aggregator) merge(ctx context.Context, req workflows.DayRequest) (workflows.DayResult, error) {
	if err := report.CheckTarget(req.Target); err != nil {
		return workflows.DayResult{}, err
	}
	day, err := report.ParseDay(req.Date, req.Timezone)
	if err != nil {
		return workflows.DayResult{}, err
	}
	if req.Target == report.CloudTarget {
		return a.mergeCloud(ctx, day)
	}
	return a.mergeFactory(ctx, req.Target, day)
}

func (a Aggregator) mergeFactory(ctx context.Context, target string, day report.Day) (workflows.DayResult, error) {
	hours, err := readHours[report.FactoryHourSummary](ctx, a, day, target)
	if err != nil {
		return workflows.DayResult{}, err
	}
	daily := report.MergeFactoryDay(target, day, a.Settings, hours)
	return a.storeDay(ctx, day, target, daily, daily.Context(a.Settings), daily.Status)
}

func (a Aggregator) mergeCloud(ctx context.Context, day report.Day) (workflows.DayResult, error) {
	hours, err := readHours[report.CloudHourSummary](ctx, a, day, report.CloudTarget)
	if err != nil {
		return workflows.DayResult{}, err
	}
	daily := report.MergeCloudDay(day, a.Settings, hours)
	return a.storeDay(ctx, day, report.CloudTarget, daily, daily.Context(a.Settings), daily.Status)
}

// hoursAtOnce bounds the summaries that are read side by side.
const hoursAtOnce = 8

// readHours reads the summaries that there are, in the order of the hours.
func readHours[S any](ctx context.Context, a Aggregator, day report.Day, target string) ([]S, error) {
	hours := day.Hours()
	summaries, found := make([]S, len(hours)), make([]bool, len(hours))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hoursAtOnce)
	for i, hour := range hours {
		group.Go(func() error {
			err := a.Store.ReadJSON(ctx, report.HourKey(a.Store.Prefix, day.Date(), target, hour.Label), &summaries[i])
			if errors.Is(err, objects.ErrNotFound) {
				return nil
			}
			found[i] = err == nil
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var present []S
	for i, summary := range summaries {
		if found[i] {
			present = append(present, summary)
		}
	}
	return present, nil
}

// storeDay stores a day, then its context. A day that was merged before keeps its
// bytes where nothing changed.
func (a Aggregator) storeDay(ctx context.Context, day report.Day, target string, daily, told any, status string) (workflows.DayResult, error) {
	result := workflows.DayResult{
		Empty:      status == report.StatusInsufficient,
		DailyKey:   report.DailyKey(a.Store.Prefix, day.Date(), target),
		ContextKey: report.ContextKey(a.Store.Prefix, day.Date(), target),
	}
	if _, err := a.Store.PutJSON(ctx, result.DailyKey, daily); err != nil {
		return result, err
	}
	body, err := a.Store.PutJSON(ctx, result.ContextKey, told)
	if err != nil {
		return result, err
	}
	digest := sha256.Sum256(body)
	result.ContextDigest, result.StoredAt = hex.EncodeToString(digest[:]), a.Now().UTC()
	return result, nil
}
