package report

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/report"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Aggregator makes the summaries of hours and days.
type Aggregator struct {
	Store    storage.Store
	Settings report.Settings
	Now      func() time.Time
	Logger   *slog.Logger
}

// cloudFolder is where the snapshots of the cloud infrastructure lie, below
// processed/.
const cloudFolder = "cloud_infra"

// SummariseHour aggregates a local hour of a target and stores the summary.
// Doing it again stores the same bytes, unless objects arrived in between.
func (a Aggregator) SummariseHour(ctx context.Context, req workflows.HourRequest) (workflows.HourResult, error) {
	result, err := a.summarise(ctx, req)
	return result, failure(err)
}

func (a Aggregator) summarise(ctx context.Context, req workflows.HourRequest) (workflows.HourResult, error) {
	if err := report.CheckTarget(req.Target); err != nil {
		return workflows.HourResult{}, err
	}
	day, err := report.ParseDay(req.Date, req.Timezone)
	if err != nil {
		return workflows.HourResult{}, err
	}
	window, err := day.Hour(req.Hour)
	if err != nil {
		return workflows.HourResult{}, err
	}
	if req.Target == report.CloudTarget {
		return a.cloudHour(ctx, day, window)
	}
	return a.factoryHour(ctx, req.Target, day, window)
}

func (a Aggregator) factoryHour(ctx context.Context, target string, day report.Day, window report.Hour) (workflows.HourResult, error) {
	gathered := report.NewFactoryHour(target, day, window, a.Settings)
	parts := partsOf(target, a.Settings.Datasets, window)
	r := a.reader(gathered)
	defer r.beat(ctx)()
	if slices.Contains(a.Settings.AuxDatasets, report.StateSnapshotDataset) {
		if err := r.lastSnapshot(ctx, target, window); err != nil {
			return workflows.HourResult{}, err
		}
	}
	if err := r.gather(ctx, parts); err != nil {
		return workflows.HourResult{}, err
	}
	summary := gathered.Summary()
	counts := summary.InputCounts
	return a.stored(ctx, day, target, window, summary, workflows.HourResult{
		Status: summary.Status, EventCount: int(summary.EventCount),
		InputCounts: map[string]int{
			report.FactoryStateDataset: int(counts.FactoryState), report.RiskScoreDataset: int(counts.RiskScore), report.InfraStateDataset: int(counts.InfraState),
		},
	})
}

func (a Aggregator) cloudHour(ctx context.Context, day report.Day, window report.Hour) (workflows.HourResult, error) {
	gathered := report.NewCloudHour(day, window, a.Settings)
	parts := partsOf(cloudFolder, []string{string(cloudinfra.TrackFast), string(cloudinfra.TrackSlow)}, window)
	r := a.reader(gathered)
	defer r.beat(ctx)()
	if err := r.gather(ctx, parts); err != nil {
		return workflows.HourResult{}, err
	}
	summary := gathered.Summary()
	counts, events := summary.InputCounts, int64(0)
	for _, n := range summary.EventCounts {
		events += n
	}
	return a.stored(ctx, day, report.CloudTarget, window, summary, workflows.HourResult{
		Status: summary.Status, EventCount: int(events), InputCounts: map[string]int{"fast": int(counts.Fast), "slow": int(counts.Slow)},
	})
}

// stored stores a summary.
func (a Aggregator) stored(ctx context.Context, day report.Day, target string, window report.Hour, summary any, result workflows.HourResult) (workflows.HourResult, error) {
	result.Hour, result.SummaryKey = window.Label, report.HourKey(a.Store.Prefix, day.Date(), target, window.Label)
	_, err := a.Store.PutJSON(ctx, result.SummaryKey, summary)
	return result, err
}
