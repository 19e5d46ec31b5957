package factory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/factory"
	"millrace/storage/objects"
)

// rawObject is a listed raw object. Its leaf is the message_id, or a trace id
// where the message had none that is safe.
type rawObject struct {
	objects.Object
	leaf string
	// sourceAt is the source time that the leaf says; zero when it says none.
	sourceAt time.Time
}

const leafSuffix = ".json"

func newRawObject(prefix string, o objects.Object) rawObject {
	leaf := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), leafSuffix)
	return rawObject{Object: o, leaf: leaf, sourceAt: leafTime(leaf)}
}

// leafTime is the time in a leaf {factory}:{type}:{node}:{time}.
func leafTime(leaf string) time.Time {
	const levels = 4
	parts := strings.SplitN(leaf, ":", levels)
	if len(parts) < levels {
		return time.Time{}
	}
	at, err := factory.ParseInstant(parts[levels-1])
	if err != nil {
		return time.Time{}
	}
	return at
}

// ListObjectsV2 counts.
func (c *listCounter) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	c.n++
	c.onList()
	return c.API.ListObjectsV2(ctx, in, options...)
}

// candidates are the raw objects of a scope that were received in the window and
// before the cut-off, and unless the run is complete have a source time in it.
func (r *reconcileRun) candidates(ctx context.Context, s scope) ([]rawObject, error) {
	prefix := factory.RawPrefix(r.request.FactoryID, s.source, s.day)
	listed, err := r.ranges(ctx, prefix, s)
	if err != nil {
		return nil, err
	}
	var found []rawObject
	keep := func(o objects.Object) {
		if o.LastModified.Before(r.request.Before) && !o.LastModified.Before(r.request.From) {
			found = append(found, newRawObject(prefix, o))
		}
	}
	for _, o := range listed.objects {
		keep(o)
	}
	for _, part := range listed.parts {
		for o, err := range r.bucket.List(ctx, part.prefix, part.after) {
			if err != nil {
				return nil, err
			}
			keep(o)
		}
	}
	return found, nil
}

// listing is what is to be listed below a prefix, and what has been already.
type listing struct {
	parts   []listPart
	objects []objects.Object
}

type listPart struct{ prefix, after string }

// ranges are the listings of a scope. Message ids sort by node and then by time,
// so that one listing per node that starts at the window finds its messages
// without the day's other ones; ids of another form are listed whole.
func (r *reconcileRun) ranges(ctx context.Context, prefix string, s scope) (listing, error) {
	if r.request.Complete {
		return listing{parts: []listPart{{prefix: prefix}}}, nil
	}
	var all listing
	at := prefix
	for _, level := range []string{r.request.FactoryID, s.source} {
		below, others, err := r.level(ctx, at, level)
		if err != nil {
			return listing{}, err
		}
		all.objects, all.parts = append(all.objects, others.objects...), append(all.parts, others.parts...)
		if !below {
			return all, nil
		}
		at += level + ":"
	}
	nodes, plain, err := r.bucket.Children(ctx, at, ":")
	if err != nil {
		return listing{}, err
	}
	all.objects = append(all.objects, plain...)
	from := r.request.From.UTC().Format("2006-01-02T15:04:05")
	for _, node := range nodes {
		all.parts = append(all.parts, listPart{prefix: node, after: node + from})
	}
	return all, nil
}

// level tells whether ids go on below at+level and lists all others.
func (r *reconcileRun) level(ctx context.Context, at, level string) (below bool, others listing, err error) {
	prefixes, plain, err := r.bucket.Children(ctx, at, ":")
	if err != nil {
		return false, listing{}, err
	}
	others.objects = plain
	for _, prefix := range prefixes {
		if prefix == at+level+":" {
			below = true
			continue
		}
		others.parts = append(others.parts, listPart{prefix: prefix})
	}
	return below, others, nil
}

// unprocessed are the candidates that have no processed object in the hour that
// their leaf says. Those that say none are looked for in the hour of their
// receipt and the one before.
func (r *reconcileRun) unprocessed(ctx context.Context, s scope, candidates []rawObject) ([]rawObject, error) {
	byHour := make(map[time.Time][]rawObject)
	for _, raw := range candidates {
		hour := raw.hour()
		byHour[hour] = append(byHour[hour], raw)
	}
	var missing []rawObject
	hours := make([]time.Time, 0, len(byHour))
	for hour := range byHour {
		hours = append(hours, hour)
	}
	slices.SortFunc(hours, time.Time.Compare)
	for _, hour := range hours {
		left, err := r.missingIn(ctx, s, hour, byHour[hour])
		if err != nil {
			return nil, err
		}
		missing = append(missing, left...)
	}
	return missing, nil
}

func (o rawObject) hour() time.Time {
	at := o.sourceAt
	if at.IsZero() {
		at = o.LastModified
	}
	return at.UTC().Truncate(time.Hour)
}

// missingIn are those of one hour's candidates that have no processed object.
func (r *reconcileRun) missingIn(ctx context.Context, s scope, hour time.Time, candidates []rawObject) ([]rawObject, error) {
	left, err := r.subtract(ctx, factory.ProcessedPrefix(r.request.FactoryID, s.source, hour), candidates)
	if err != nil || !slices.ContainsFunc(left, func(o rawObject) bool { return o.sourceAt.IsZero() }) {
		return left, err
	}
	var timed, untimed []rawObject
	for _, raw := range left {
		if raw.sourceAt.IsZero() {
			untimed = append(untimed, raw)
		} else {
			timed = append(timed, raw)
		}
	}
	untimed, err = r.subtract(ctx, factory.ProcessedPrefix(r.request.FactoryID, s.source, hour.Add(-time.Hour)), untimed)
	return append(timed, untimed...), err
}

// subtract leaves the candidates whose leaf is not below prefix.
func (r *reconcileRun) subtract(ctx context.Context, prefix string, candidates []rawObject) ([]rawObject, error) {
	done, err := leaves(ctx, r.bucket, prefix)
	if err != nil {
		return nil, err
	}
	var left []rawObject
	for _, raw := range candidates {
		if done[raw.leaf] {
			r.counts.Processed++
			continue
		}
		left = append(left, raw)
	}
	return left, nil
}

// unrefused leaves those that have no quarantine marker.
func (r *reconcileRun) unrefused(ctx context.Context, s scope, missing []rawObject) ([]rawObject, error) {
	prefix := factory.QuarantineKey(factory.RawPrefix(r.request.FactoryID, s.source, s.day))
	refused, err := leaves(ctx, r.bucket, prefix)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(missing, func(raw rawObject) bool {
		if refused[raw.leaf] {
			r.counts.Quarantined++
		}
		return refused[raw.leaf]
	}), nil
}

// leaves are the leaves of the objects below a prefix.
func leaves(ctx context.Context, bucket objects.Bucket, prefix string) (map[string]bool, error) {
	found := make(map[string]bool)
	for o, err := range bucket.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		found[strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), leafSuffix)] = true
	}
	return found, nil
}
