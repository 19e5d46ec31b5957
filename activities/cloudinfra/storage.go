package cloudinfra

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeStorage(ctx context.Context, req workflows.ProbeRequest) (workflows.Found[[]cloudinfra.StorageFactory], error) {
	source := workflows.SourceOf(cloudinfra.ProbeStorage)
	factories := make([]cloudinfra.StorageFactory, len(c.FactoryIDs))
	failures := make([]error, len(c.FactoryIDs))
	var work errgroup.Group
	work.SetLimit(atOnce)
	for i, id := range c.FactoryIDs {
		work.Go(func() error {
			factories[i], failures[i] = c.storageOf(ctx, id, req.AsOf)
			activity.RecordHeartbeat(ctx, id)
			return nil
		})
	}
	_ = work.Wait() // failures has what failed
	var errors []cloudinfra.Error
	var last error
	for i, err := range failures {
		if err != nil {
			last = err
			e := c.errorOf(source, err)
			e.FactoryID = c.FactoryIDs[i]
			errors = append(errors, e)
		}
	}
	if len(errors) == len(factories) && last != nil && nothingFound(factories) {
		return workflows.Found[[]cloudinfra.StorageFactory]{}, c.fail(source, last)
	}
	return found(factories, errors...), nil
}

func nothingFound(factories []cloudinfra.StorageFactory) bool {
	for _, f := range factories {
		if f.LatestRawAt != nil || f.LatestProcessedAt != nil || f.LatestProcessedAggAt != nil {
			return false
		}
	}
	return true
}

// storageOf finds the newest object of each kind of a factory. A listing that
// fails leaves its own kind unknown and is an error.
func (c Collector) storageOf(ctx context.Context, id string, asOf time.Time) (cloudinfra.StorageFactory, error) {
	f := cloudinfra.StorageFactory{FactoryID: id}
	var rawErr, processedErr, aggregateErr error
	f.LatestRawAt, rawErr = c.latestRaw(ctx, id, asOf)
	snapshots := "processed/" + id + "/" + factory.DatasetStateSnapshot + "/"
	f.LatestProcessedAt, processedErr = c.latestByHour(ctx, snapshots, asOf)
	f.LatestProcessedAggAt, aggregateErr = c.latestByHour(ctx, "processed_agg/"+id+"/metrics_5m/", asOf)
	return f, errors.Join(rawErr, processedErr, aggregateErr)
}

// days are the day partitions that the look-back touches, newest first.
func (c Collector) days(asOf time.Time) []time.Time {
	oldest := asOf.Add(-c.Settings.StorageLookback).UTC().Truncate(day)
	var days []time.Time
	for d := asOf.UTC().Truncate(day); !d.Before(oldest); d = d.Add(-day) {
		days = append(days, d)
	}
	return days
}

const day = 24 * time.Hour

// latestByHour finds the newest object below a prefix with day and hour
// partitions: that of the newest hour that there is.
func (c Collector) latestByHour(ctx context.Context, prefix string, asOf time.Time) (*time.Time, error) {
	for _, d := range c.days(asOf) {
		hours, _, err := c.Bucket.Children(ctx, prefix+d.Format("yyyy=2006/mm=01/dd=02/"), "/")
		if err != nil {
			return nil, err
		}
		if len(hours) > 0 {
			return c.newestBelow(ctx, hours[len(hours)-1], asOf)
		}
	}
	return nil, nil
}

// latestRaw finds the newest body of a factory. The raw prefix has no hours, but
// a message_id has: {factory}:{source type}:{node}:{time}. Listing by it finds
// the newest hour of each node, however many bodies lie before it in key order.
func (c Collector) latestRaw(ctx context.Context, id string, asOf time.Time) (*time.Time, error) {
	for _, d := range c.days(asOf) {
		var newest *time.Time
		for _, source := range []factory.SourceType{factory.SourceFactoryState, factory.SourceInfraState} {
			at, err := c.newestOfDay(ctx, factory.RawPrefix(id, string(source), d), id+":"+string(source)+":", asOf)
			if err != nil {
				return nil, err
			}
			newest = later(newest, at)
		}
		if newest != nil {
			return newest, nil
		}
	}
	return nil, nil
}

func (c Collector) newestOfDay(ctx context.Context, prefix, stem string, asOf time.Time) (*time.Time, error) {
	nodes, _, err := c.Bucket.Children(ctx, prefix+stem, ":")
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return c.newestBelow(ctx, prefix, asOf) // none, or ids of another form
	}
	var newest *time.Time
	for _, node := range nodes {
		hours, _, err := c.Bucket.Children(ctx, node, ":")
		if err != nil {
			return nil, err
		}
		if len(hours) == 0 {
			continue
		}
		at, err := c.newestBelow(ctx, hours[len(hours)-1], asOf)
		if err != nil {
			return nil, err
		}
		newest = later(newest, at)
	}
	return newest, nil
}

// maxListed bounds the objects that one listing looks at: above what all nodes of
// a factory send in a day.
const maxListed = 100_000

// listPerHeartbeat is one page of a listing.
const listPerHeartbeat = 1000

// newestBelow is when the newest object below a prefix was written, nil when
// there is none within the look-back.
func (c Collector) newestBelow(ctx context.Context, prefix string, asOf time.Time) (*time.Time, error) {
	oldest := asOf.Add(-c.Settings.StorageLookback)
	var newest *time.Time
	listed := 0
	for object, err := range c.Bucket.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		if !object.LastModified.Before(oldest) {
			at := object.LastModified.UTC()
			newest = later(newest, &at)
		}
		if listed++; listed == maxListed {
			break
		}
		if listed%listPerHeartbeat == 0 {
			activity.RecordHeartbeat(ctx, object.Key)
		}
	}
	return newest, nil
}

func later(a, b *time.Time) *time.Time {
	if a == nil || (b != nil && b.After(*a)) {
		return b
	}
	return a
}
