package report

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/factory"
	"millrace/domain/report"
	"millrace/storage/objects"
)

const (
	// maxObject is the greatest processed object that is read, in bytes. One that is
	// larger counts as broken.
	maxObject = 1 << 20
	// snapshotTail is how long before the end of an hour its last state_snapshot is
	// looked for first: there is one a minute even where a factory is silent.
	snapshotTail = 5 * time.Minute
	// getTries is how often an object is asked for before the hour begins anew, and
	// firstWait how long after the first refusal.
	getTries  = 4
	firstWait = 100 * time.Millisecond
)

// Progress is what a heartbeat of an hour tells.
type Progress struct {
	Listed int64 `json:"listed"`
	Read   int64 `json:"read"`
	// Vanished objects were deleted between listing and reading.
	Vanished int64 `json:"vanished,omitempty"`
	// Left objects are beyond the bound of an hour.
	Left int64 `json:"left,omitempty"`
}

// hour gathers the objects of an hour.
type hour interface {
	Add(dataset string, body []byte)
	// AddShared adds an object that an earlier hour reads as well.
	AddShared(dataset string, body []byte)
}

// bounded is an hour that notes objects which were left out.
type bounded interface {
	Unread(count int)
}

// part is one partition of a dataset.
type part struct {
	dataset, prefix string
	// shared tells that the partition begins in an earlier hour.
	shared bool
}

// partsOf are the partitions of datasets that an hour touches.
func partsOf(folder string, datasets []string, window report.Hour) []part {
	var parts []part
	for _, dataset := range datasets {
		for _, partition := range window.Partitions() {
			parts = append(parts, part{dataset: dataset, prefix: factory.ProcessedPrefix(folder, dataset, partition), shared: !window.Contains(partition)})
		}
	}
	return parts
}

// reader lists and reads the objects of an hour, many at a time.
type reader struct {
	bucket     objects.Bucket
	atOnce     int
	maxObjects int
	adding     sync.Mutex
	into       hour

	listed, read, vanished, left atomic.Int64
}

func (a Aggregator) reader(into hour) *reader {
	return &reader{bucket: a.Store.Bucket, atOnce: a.Settings.GetConcurrency, maxObjects: a.Settings.MaxObjectsPerHour, into: into}
}

// beat reports progress until the function that it returns is called.
func (r *reader) beat(ctx context.Context) func() {
	return beating(ctx, func() any { return r.progress() })
}

func (r *reader) progress() Progress {
	return Progress{Listed: r.listed.Load(), Read: r.read.Load(), Vanished: r.vanished.Load(), Left: r.left.Load()}
}

// gather reads all objects of the parts into the hour, up to the bound.
func (r *reader) gather(ctx context.Context, parts []part) error {
	listed := make([][]string, len(parts))
	listing, listCtx := errgroup.WithContext(ctx)
	for i, p := range parts {
		listing.Go(func() error {
			for o, err := range r.bucket.List(listCtx, p.prefix, "") {
				if err != nil {
					return err
				}
				listed[i] = append(listed[i], o.Key)
				r.listed.Add(1)
			}
			return nil
		})
	}
	if err := listing.Wait(); err != nil {
		return err
	}
	r.bound(listed)
	reading, readCtx := errgroup.WithContext(ctx)
	reading.SetLimit(r.atOnce)
	for i, keys := range listed {
		for _, key := range keys {
			reading.Go(func() error { return r.get(readCtx, parts[i], key) })
		}
	}
	return reading.Wait()
}

// bound leaves out what is beyond the bound, first of the longest parts, and has
// the hour say so.
func (r *reader) bound(listed [][]string) {
	total := 0
	for _, keys := range listed {
		total += len(keys)
	}
	if total <= r.maxObjects {
		return
	}
	allowed, left := share(listed, r.maxObjects), total
	for i, keys := range listed {
		listed[i] = keys[:min(len(keys), allowed)]
		left -= len(listed[i])
	}
	r.left.Add(int64(left))
	if b, ok := r.into.(bounded); ok {
		b.Unread(left)
	}
}

// share is how many keys each part may have at most, so that all have no more
// than total.
func share(listed [][]string, total int) int {
	low, high := 0, total
	for low < high {
		middle := (low + high + 1) / 2
		sum := 0
		for _, keys := range listed {
			sum += min(len(keys), middle)
		}
		if sum <= total {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// get reads one object. One that is too large or damaged is broken data, one that
// is gone is none.
func (r *reader) get(ctx context.Context, from part, key string) error {
	body, err := r.body(ctx, key)
	var damaged *objects.IntegrityError
	switch {
	case err == nil:
	case errors.Is(err, objects.ErrNotFound):
		r.vanished.Add(1)
		return nil
	case errors.As(err, &damaged), errors.Is(err, objects.ErrTooLarge):
		body = nil
	default:
		return err
	}
	r.adding.Lock()
	defer r.adding.Unlock()
	if from.shared {
		r.into.AddShared(from.dataset, body)
	} else {
		r.into.Add(from.dataset, body)
	}
	r.read.Add(1)
	return nil
}

// body asks for an object again where the store refused: a whole hour is not to
// begin anew for one of thousands.
func (r *reader) body(ctx context.Context, key string) (body []byte, err error) {
	wait := firstWait
	for try := 1; ; try++ {
		body, err = r.bucket.Get(ctx, key, maxObject)
		var damaged *objects.IntegrityError
		if err == nil || errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrTooLarge) || errors.As(err, &damaged) || try == getTries {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// lastSnapshot reads the last state_snapshot of the hour: their values at its end
// are all that a report wants of them, and there are as many as messages.
func (r *reader) lastSnapshot(ctx context.Context, target string, window report.Hour) error {
	tail := window.End.Add(-snapshotTail)
	for _, partition := range slices.Backward(window.Partitions()) {
		prefix := factory.ProcessedPrefix(target, report.StateSnapshotDataset, partition)
		after := ""
		if tail.Truncate(time.Hour).Equal(partition) {
			after = prefix + tail.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		key, err := r.last(ctx, prefix, after, window)
		if err == nil && key == "" && after != "" {
			key, err = r.last(ctx, prefix, "", window)
		}
		if err != nil {
			return err
		}
		if key != "" {
			return r.get(ctx, part{dataset: report.StateSnapshotDataset, shared: !window.Contains(partition)}, key)
		}
	}
	return nil
}

// last is the last key below a prefix whose leaf is not a time outside the hour.
func (r *reader) last(ctx context.Context, prefix, after string, window report.Hour) (last string, err error) {
	for o, err := range r.bucket.List(ctx, prefix, after) {
		if err != nil {
			return "", err
		}
		r.listed.Add(1)
		at, notTime := factory.ParseInstant(strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), ".json"))
		if notTime == nil && !window.Contains(at) {
			continue
		}
		last = o.Key
	}
	return last, nil
}
